//===- OptionalPasses.cpp - passes that may be left out -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/OptionalPasses.h"

#include "attn/Support/TargetInfo.h"

using namespace attn;

static int64_t capability(std::string_view target) {
  const TargetInfo *info = findTarget(target);
  return info ? info->sm : 0;
}

const OptionalPassInfo *attn::findOptionalPass(std::string_view name) {
  for (const OptionalPassInfo &pass : optionalPasses)
    if (pass.name == name)
      return &pass;
  return nullptr;
}

std::vector<std::string> attn::listOptionalPasses(std::string_view target) {
  std::vector<std::string> names;
  for (const OptionalPassInfo &pass : optionalPasses)
    if (target.empty() || pass.exists(capability(target)))
      names.emplace_back(pass.name);
  return names;
}

std::string attn::findPassFault(std::string_view name,
                                std::string_view target) {
  std::string known;
  for (const std::string &other : listOptionalPasses(target)) {
    if (other == name)
      return "";
    known += (known.empty() ? "" : ", ") + other;
  }
  return "'" + std::string(name) + "' is no optional pass" +
         (target.empty() ? "" : " on the way to " + std::string(target)) +
         ", expected one of " + known;
}

PassSelection::PassSelection(std::string_view target) {
  for (const OptionalPassInfo &pass : optionalPasses)
    setUse(pass.pass, pass.getDefault(capability(target)));
}

std::pair<std::vector<OptionalPass>, std::vector<OptionalPass>>
PassSelection::changesFrom(const PassSelection &usual) const {
  std::vector<OptionalPass> without, with;
  for (const OptionalPassInfo &info : optionalPasses)
    if (getUse(info.pass) != usual.getUse(info.pass))
      (runs(info.pass) ? with : without).push_back(info.pass);
  return {std::move(without), std::move(with)};
}
