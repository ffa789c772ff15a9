//===- PassSelection.cpp - which of the optional passes run -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/PassSelection.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

/// What the pass says of itself: no text where it is not registered.
static StringRef summaryOf(const OptionalPassInfo &pass) {
  const PassInfo *info = PassInfo::lookup(pass.name);
  return info ? info->getPassDescription() : StringRef();
}

/// "all", "sm_80, sm_90a" or "none".
static std::string targetsOf(const OptionalPassInfo &pass) {
  SmallVector<StringRef> targets;
  for (StringRef target : {"cpu", "sm_80", "sm_90a"})
    if (PassSelection(target).runs(pass.pass))
      targets.push_back(target);
  std::string text = targets.size() == 3 ? "all" : llvm::join(targets, ", ");
  return pass.use == PassUse::Selective ? text + ", where it gains" : text;
}

std::string attn::describeOptionalPasses() {
  std::string text = "OPTIONAL PASSES (of --disable-pass and --enable-pass), "
                     "and who runs them by default:\n\n";
  for (const OptionalPassInfo &pass : optionalPasses)
    text += llvm::formatv("  {0,-22}{1} ({2})\n", pass.name, summaryOf(pass),
                          targetsOf(pass))
                .str();
  return text + "\n";
}

std::vector<std::string> attn::splitPassNames(StringRef text) {
  std::vector<std::string> names;
  for (StringRef name : llvm::split(text, ','))
    if (name = name.trim(); !name.empty())
      names.push_back(name.str());
  return names;
}

PassSwitches::PassSwitches(detail::PassOptions &parent, StringRef room,
                           int64_t sm) {
  for (const OptionalPassInfo &pass : optionalPasses) {
    if (!StringRef(pass.name).starts_with(room) || !pass.exists(sm))
      continue;
    llvm::cl::ValuesClass values{
        clEnumValN(PassUse::Off, "false", "on nothing"),
        clEnumValN(PassUse::On, "true", "on all that it can be done to")};
    if (pass.use == PassUse::Selective)
      values = {
          clEnumValN(PassUse::Off, "false", "on nothing"),
          clEnumValN(PassUse::Selective, "selective", "where it gains"),
          clEnumValN(PassUse::On, "true", "on all that it can be done to")};
    options.emplace_back(
        std::piecewise_construct, std::forward_as_tuple(pass.pass),
        std::forward_as_tuple(parent, StringRef(pass.option()),
                              llvm::cl::desc(summaryOf(pass)), values,
                              llvm::cl::init(pass.use)));
  }
}

void PassSwitches::apply(PassSelection &selection) const {
  for (const auto &[pass, option] : options)
    if (option.hasValue())
      selection.setUse(pass, option.getValue());
}
