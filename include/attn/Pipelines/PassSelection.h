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
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassOptions.h"

#include <deque>
#include <string>

namespace attn {

/// Passes by the names they have in attn-opt: what to leave out, and what to
/// run although the target does not by default. A pass that is named in both
/// runs.
struct PassRequest {
  std::vector<std::string> disabled, enabled;

  bool empty() const { return disabled.empty() && enabled.empty(); }
  void add(StringRef name, bool run) {
    (run ? enabled : disabled).push_back(name.str());
  }
};

/// The names of all optional passes on the way to a target, in the order in
/// which they run.
std::vector<std::string> listOptionalPasses(StringRef target);

/// A line for each optional pass: its name, what it does, and for which targets
/// it runs where nothing else is said.
std::string describeOptionalPasses();

/// Splits "tile-overlap-products, warp-buffer" at commas.
std::vector<std::string> splitPassNames(StringRef text);

/// What runs for `target`, as far as `request` does not say otherwise. A name
/// that is no optional pass on the way to the target is an error with the names
/// that are.
FailureOr<PassSelection> selectPasses(Location loc, StringRef target,
                                      const PassRequest &request);

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
