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

PassSelection::PassSelection(std::string_view target) {
  const TargetInfo *info = findTarget(target);
  for (const OptionalPassInfo &pass : optionalPasses)
    setUse(pass.pass, pass.getDefault(info ? info->sm : 0));
}
