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

namespace {
/// CUtensorMap: opaque, as cuda.h aligns it.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
} // namespace

static Status encode(const Driver &driver, const TensorMapCall &call,
                     TensorMap &map) {
  if (!driver.tensorMapEncodeTiled)
    return Status::error("this kernel needs cuTensorMapEncodeTiled, which the "
                         "driver does not have (CUDA 12 or later does)");
  // CU_TENSOR_MAP_DATA_TYPE_…, CU_TENSOR_MAP_SWIZZLE_…, …_L2_128B of cuda.h.
  constexpr int kFloat16 = 6, kBFloat16 = 9;
  constexpr int kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3;
  constexpr int kNoInterleave = 0, kPromote128 = 2, kFillZero = 0;
  constexpr unsigned kOnes[] = {1, 1, 1, 1};
  int swizzle = call.swizzleBytes == 128  ? kSwizzle128
                : call.swizzleBytes == 64 ? kSwizzle64
                                          : kSwizzle32;
  return driver.check(
      driver.tensorMapEncodeTiled(
          &map, call.element == ElementKind::F16 ? kFloat16 : kBFloat16, 4,
          call.data, call.sizes.data(), call.strides.data(), call.box.data(),
          kOnes, kNoInterleave, swizzle, kPromote128, kFillZero),
      "cuTensorMapEncodeTiled");
}

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
  std::vector<TensorMap> maps(call->tensorMaps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    Status status = encode(driver, call->tensorMaps[i], maps[i]);
    if (!status.ok())
      return status;
    parameters.push_back(&maps[i]);
  }
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
