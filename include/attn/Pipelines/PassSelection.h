//===- PassSelection.h - which of the optional passes run -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PASSSELECTION_H
#define ATTN_PIPELINES_PASSSELECTION_H

#include "attn/Pipelines/GPU.h"
#include "attn/Pipelines/Tile.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/Diagnostics.h"

#include <string>

namespace attn {

/// Passes by the names they have in attn-opt: what to leave out, and what to
/// run although the target does not by default. A pass that is named in both
/// runs.
struct PassRequest {
  std::vector<std::string> disabled, enabled;

  bool empty() const { return disabled.empty() && enabled.empty(); }
};

/// The names of all optional passes on the way to a target, in the order in
/// which they run.
std::vector<std::string> listOptionalPasses(StringRef target);

/// Splits "tile-overlap-products, warp-buffer" at commas.
std::vector<std::string> splitPassNames(StringRef text);

/// The passes between attention and a kernel that may be left out: slower,
/// never wrong.
struct PassSelection {
  TileOptions tile;
  WarpOptions warp;

  /// What runs for `target`, as far as `request` does not say otherwise.
  static FailureOr<PassSelection> make(Location loc, StringRef target,
                                       const PassRequest &request);
  /// Does what `request` says. A name that is no optional pass on the way to
  /// the target is an error with the names that are.
  LogicalResult apply(Location loc, const PassRequest &request);
};

} // namespace attn

#endif // ATTN_PIPELINES_PASSSELECTION_H
