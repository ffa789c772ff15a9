//===- Buffer.cpp - device memory that frees itself ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Buffer.h"

using namespace attn::runtime;

// A copy from pageable memory, or a fill, may return before it has happened.
static Status finish(const Driver &driver, CUresult code, const char *what) {
  Status status = driver.check(code, what);
  if (!status.ok())
    return status;
  return driver.check(driver.streamSynchronize(nullptr), "cuStreamSynchronize");
}

Result<Buffer> Buffer::allocate(const Device &device, size_t bytes) {
  Buffer buffer;
  buffer.device = device;
  buffer.bytes = bytes;
  if (bytes == 0)
    return buffer;
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  Status status = device.driver->check(
      device.driver->memAlloc(&buffer.address, bytes), "cuMemAlloc");
  if (!status.ok())
    return Status::error(status.message() + " for " + std::to_string(bytes) +
                         " bytes");
  return buffer;
}

Buffer::~Buffer() {
  if (!address)
    return;
  ScopedContext scope(*device.driver, device.context);
  (void)device.driver->memFree(address);
}

Status Buffer::copyFrom(const void *host) {
  if (!bytes)
    return Status();
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return finish(*device.driver, device.driver->memcpyHtoD(address, host, bytes),
                "cuMemcpyHtoD");
}

Status Buffer::copyTo(void *host) const {
  if (!bytes)
    return Status();
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return device.driver->check(device.driver->memcpyDtoH(host, address, bytes),
                              "cuMemcpyDtoH");
}

Status Buffer::fill(unsigned char value) {
  if (!bytes)
    return Status();
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return finish(*device.driver, device.driver->memsetD8(address, value, bytes),
                "cuMemsetD8");
}
