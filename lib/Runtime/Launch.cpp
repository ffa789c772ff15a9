//===- Launch.cpp - a kernel into a stream -------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Module.h"

using namespace attn;
using namespace attn::runtime;

Status Module::launch(const Arguments &arguments, CUstream stream) const {
  Result<LaunchCall> call = prepareLaunch(source, arguments);
  if (!call.ok())
    return call.status();
  if (call->isEmpty)
    return Status();
  std::vector<void *> parameters;
  parameters.reserve(call->parameters.size());
  for (uint64_t &slot : call->parameters)
    parameters.push_back(&slot);
  const Driver &driver = *owner.driver;
  ScopedContext scope(driver, owner.context);
  if (!scope.status().ok())
    return scope.status();
  return driver.check(
      driver.launchKernel(function, call->grid[0], call->grid[1], call->grid[2],
                          static_cast<unsigned>(source.threads), 1, 1,
                          static_cast<unsigned>(source.sharedBytes), stream,
                          parameters.data(), nullptr),
      ("launching '" + source.name + "'").c_str());
}
