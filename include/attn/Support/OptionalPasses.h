//===- OptionalPasses.h - passes that may be left out -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes between attention and a kernel that may be left out: slower,
// never wrong. OptionalPasses.def lists them, each with what every target does
// by default; options, pipelines and lists for users follow from it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_OPTIONALPASSES_H
#define ATTN_SUPPORT_OPTIONALPASSES_H

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn {

enum class OptionalPass {
#define OPTIONAL_PASS(pass, name, first, runsFrom, use) pass,
#include "attn/Support/OptionalPasses.def"
};

/// Whether a pass runs, and where: on nothing, on what gains by it, or on
/// everything that it can be done to. Most passes know no difference between
/// the last two, and are off or on.
enum class PassUse { Off, Selective, On };

struct OptionalPassInfo {
  OptionalPass pass;
  std::string_view name;
  int64_t first;    // compute capability times 10
  int64_t runsFrom; // likewise
  PassUse use;

  /// It runs on the way to a target of that compute capability, if it is not
  /// left out.
  bool exists(int64_t sm) const { return first <= sm; }
  /// What it does for such a target where nothing else is said.
  PassUse getDefault(int64_t sm) const {
    return runsFrom <= sm ? use : PassUse::Off;
  }
  /// "overlap-products" for tile-overlap-products: its option in the pipelines.
  std::string_view option() const { return name.substr(name.find('-') + 1); }
};

/// No compute capability is as high.
inline constexpr int64_t onRequest = std::numeric_limits<int64_t>::max();

inline constexpr OptionalPassInfo optionalPasses[] = {
#define OPTIONAL_PASS(pass, name, first, runsFrom, use)                        \
  {OptionalPass::pass, name, first, runsFrom, PassUse::use},
#include "attn/Support/OptionalPasses.def"
};

/// The pass of that name in attn-opt; null if there is none.
const OptionalPassInfo *findOptionalPass(std::string_view name);

/// The names of all optional passes on the way to a target, in the order in
/// which they run; of all where the target is "".
std::vector<std::string> listOptionalPasses(std::string_view target);

/// What is wrong with the name of a pass, and which ones there are; empty if it
/// is one on the way to the target.
std::string findPassFault(std::string_view name, std::string_view target);

/// Passes by the names they have in attn-opt: what to leave out, and what to
/// run although the target does not by default. A pass that is named in both
/// runs.
struct PassRequest {
  std::vector<std::string> disabled, enabled;

  void add(std::string_view name, bool run) {
    (run ? enabled : disabled).emplace_back(name);
  }
};

/// What each optional pass does on one way to a kernel.
class PassSelection {
public:
  /// What runs for the target of that name by default.
  explicit PassSelection(std::string_view target);

  PassUse getUse(OptionalPass pass) const { return uses[size_t(pass)]; }
  void setUse(OptionalPass pass, PassUse use) { uses[size_t(pass)] = use; }
  bool runs(OptionalPass pass) const { return getUse(pass) != PassUse::Off; }

  /// The passes that do not do what they do in `usual`: those that do not run,
  /// and those that do.
  std::pair<std::vector<OptionalPass>, std::vector<OptionalPass>>
  changesFrom(const PassSelection &usual) const;

private:
  std::array<PassUse, std::size(optionalPasses)> uses;
};

} // namespace attn

#endif // ATTN_SUPPORT_OPTIONALPASSES_H
