//===- ScoreTrend.h - where scores grow along the keys -------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether the formula of the scores adds something to the product of queries
// and keys that grows, or falls, with the position of the key: a bias like that
// of ALiBi. A factor that is read from memory, or computed from what is, counts
// as positive, as slopes are: what is decided from a trend is a matter of
// speed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_SCORETREND_H
#define ATTN_DIALECT_TILE_ANALYSIS_SCORETREND_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {

enum class ScoreTrend { None, Grows, Falls };

/// The trend of what `loop`, with one `tile.scores`, computes there, apart from
/// its mask.
ScoreTrend readScoreTrend(scf::ForOp loop);

/// True if the keys of an iteration are those of the block that its induction
/// variable numbers.
bool countsKeyBlocks(scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_SCORETREND_H
