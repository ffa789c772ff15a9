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

#include "attn/Support/LLVM.h"
#include "attn/Support/OptionalPasses.h"
#include "mlir/Pass/PassOptions.h"

#include <deque>
#include <string>

namespace attn {

/// A line for each optional pass: its name, what it does, and for which targets
/// it runs where nothing else is said.
std::string describeOptionalPasses();

/// Splits "tile-overlap-products, warp-buffer" at commas.
std::vector<std::string> splitPassNames(StringRef text);

/// The options of a pipeline that say which of its optional passes run:
/// `lazy-max=false` for tile-lazy-max. One that is not given changes nothing.
class PassSwitches {
public:
  /// For the passes of a room, "tile" or "warp", that exist for the compute
  /// capability `sm`.
  PassSwitches(mlir::detail::PassOptions &parent, StringRef room, int64_t sm);

  void apply(PassSelection &selection) const;

private:
  using Option = mlir::detail::PassOptions::Option<PassUse>;
  std::deque<std::pair<OptionalPass, Option>> options;
};

} // namespace attn

#endif // ATTN_PIPELINES_PASSSELECTION_H
