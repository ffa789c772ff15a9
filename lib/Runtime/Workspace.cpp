//===- Workspace.cpp - memory for one launch ------------------ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Workspace.h"

using namespace attn::runtime;

// CUDA_ERROR_NOT_SUPPORTED: the device or the system has no memory pools.
static constexpr CUresult kNotSupported = 801;

Result<Workspace> Workspace::allocate(const Driver &driver, size_t bytes,
                                      CUstream stream) {
  Workspace workspace;
  workspace.driver = &driver;
  workspace.stream = stream;
  if (bytes == 0)
    return workspace;
  CUresult code = kNotSupported;
  if (driver.memAllocAsync && driver.memFreeAsync)
    code = driver.memAllocAsync(&workspace.address, bytes, stream);
  workspace.isOrdered = code == 0;
  if (code == kNotSupported)
    code = driver.memAlloc(&workspace.address, bytes);
  if (code == 0)
    return workspace;
  workspace.address = 0;
  std::string what =
      "allocating a workspace of " + std::to_string(bytes) + " bytes";
  return driver.check(code, what.c_str());
}

Workspace::~Workspace() {
  if (!address)
    return;
  if (isOrdered) {
    (void)driver->memFreeAsync(address, stream);
    return;
  }
  (void)driver->streamSynchronize(stream);
  (void)driver->memFree(address);
}
