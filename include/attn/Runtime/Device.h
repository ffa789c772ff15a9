//===- Device.h - the GPU in use ------------------------------ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_DEVICE_H
#define ATTN_RUNTIME_DEVICE_H

#include "attn/Runtime/Driver.h"

#include <cstdint>

namespace attn::runtime {

/// A device and the context that work on it belongs to.
struct Device {
  const Driver *driver = nullptr;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  std::string name;
  int computeMajor = 0, computeMinor = 0;
  int64_t sharedBytesPerBlock = 0; // with the opt-in
  int multiprocessors = 0;
  int driverVersion = 0; // 12040: CUDA 12.4

  /// The device of the thread's current context; where there is none, the
  /// primary context of device 0 becomes current (what the CUDA runtime and
  /// PyTorch use too).
  static Result<Device> current();
  /// The primary context of device `ordinal`. What is current stays so: callers
  /// work on one GPU while kernels run on another.
  static Result<Device> open(int ordinal);

  /// Waits for all work of the context.
  Status synchronize() const;
  /// Free and total bytes of device memory.
  Result<std::pair<size_t, size_t>> memory() const;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_DEVICE_H
