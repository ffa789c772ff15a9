//===- Wgmma.h - wgmma.mma_async m64nNk16 -----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_WGMMA_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_WGMMA_H

#include "Product.h"

namespace attn::warp {

/// The product and a wait for it, in one block; only the issue.
ProductEmitter emitWgmma, issueWgmma;
/// Waits until at most `pending` products are in flight. `tied`: the registers
/// of the accumulators in flight, which it gives anew; `left`: those of the
/// left operand of the product that is waited for.
SmallVector<Value> waitForWgmma(OpBuilder &builder, Location loc,
                                int64_t pending, ValueRange tied,
                                ValueRange left);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_WGMMA_H
