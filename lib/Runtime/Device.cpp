//===- Device.cpp - the GPU in use ---------------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Device.h"

using namespace attn::runtime;

// CUdevice_attribute.
static constexpr int kComputeMajor = 75;
static constexpr int kComputeMinor = 76;
static constexpr int kSharedPerBlockOptIn = 97;
static constexpr int kMultiprocessors = 16;

static Result<Device> describe(const Driver &driver, CUdevice handle,
                               CUcontext context) {
  Device device;
  device.driver = &driver;
  device.handle = handle;
  device.context = context;
  char name[256] = {0};
  int shared = 0;
  Status status = driver.check(driver.deviceGetName(name, sizeof(name), handle),
                               "cuDeviceGetName");
  auto attribute = [&](int which, int &value) {
    if (status.ok())
      status = driver.check(driver.deviceGetAttribute(&value, which, handle),
                            "cuDeviceGetAttribute");
  };
  attribute(kComputeMajor, device.computeMajor);
  attribute(kComputeMinor, device.computeMinor);
  attribute(kSharedPerBlockOptIn, shared);
  attribute(kMultiprocessors, device.multiprocessors);
  if (status.ok())
    status = driver.check(driver.driverGetVersion(&device.driverVersion),
                          "cuDriverGetVersion");
  if (!status.ok())
    return status;
  device.name = name;
  device.sharedBytesPerBlock = shared;
  return device;
}

Result<Device> Device::open(int ordinal) {
  Result<const Driver *> found = Driver::get();
  if (!found.ok())
    return found.status();
  const Driver &driver = **found;
  int count = 0;
  Status status =
      driver.check(driver.deviceGetCount(&count), "cuDeviceGetCount");
  if (!status.ok())
    return status;
  if (ordinal < 0 || ordinal >= count)
    return Status::error("no GPU number " + std::to_string(ordinal) +
                         ": this process sees " + std::to_string(count));
  CUdevice handle = 0;
  status = driver.check(driver.deviceGet(&handle, ordinal), "cuDeviceGet");
  if (!status.ok())
    return status;
  // Retained for the life of the process: it is the context everyone shares.
  CUcontext context = nullptr;
  status = driver.check(driver.devicePrimaryCtxRetain(&context, handle),
                        "cuDevicePrimaryCtxRetain");
  if (!status.ok())
    return status;
  return describe(driver, handle, context);
}

Result<Device> Device::current() {
  Result<const Driver *> found = Driver::get();
  if (!found.ok())
    return found.status();
  const Driver &driver = **found;
  CUcontext context = nullptr;
  Status status =
      driver.check(driver.ctxGetCurrent(&context), "cuCtxGetCurrent");
  if (!status.ok())
    return status;
  if (!context) {
    Result<Device> first = open(0);
    if (first.ok())
      status =
          driver.check(driver.ctxSetCurrent(first->context), "cuCtxSetCurrent");
    return status.ok() ? first : Result<Device>(status);
  }
  CUdevice handle = 0;
  status = driver.check(driver.ctxGetDevice(&handle), "cuCtxGetDevice");
  if (!status.ok())
    return status;
  return describe(driver, handle, context);
}

Status Device::synchronize() const {
  ScopedContext scope(*driver, context);
  if (!scope.status().ok())
    return scope.status();
  return driver->check(driver->ctxSynchronize(), "cuCtxSynchronize");
}

Result<std::pair<size_t, size_t>> Device::memory() const {
  ScopedContext scope(*driver, context);
  if (!scope.status().ok())
    return scope.status();
  std::pair<size_t, size_t> bytes;
  Status status = driver->check(driver->memGetInfo(&bytes.first, &bytes.second),
                                "cuMemGetInfo");
  if (!status.ok())
    return status;
  return bytes;
}
