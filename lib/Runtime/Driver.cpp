//===- Driver.cpp - the CUDA driver, opened at run time ------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Driver.h"

#include <dlfcn.h>

using namespace attn::runtime;

static Result<Driver> openDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(
        "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  Driver driver;
#define ATTN_DRIVER_RESOLVE(member, symbol, params)                            \
  driver.member =                                                              \
      reinterpret_cast<CUresult(*) params>(dlsym(library, #symbol));           \
  if (!driver.member)                                                          \
    return Status::error("libcuda.so.1 has no function " #symbol);
  ATTN_DRIVER_FUNCTIONS(ATTN_DRIVER_RESOLVE)
#undef ATTN_DRIVER_RESOLVE
#define ATTN_DRIVER_RESOLVE(member, symbol, params)                            \
  driver.member = reinterpret_cast<CUresult(*) params>(dlsym(library, #symbol));
  ATTN_DRIVER_NEWER_FUNCTIONS(ATTN_DRIVER_RESOLVE)
#undef ATTN_DRIVER_RESOLVE
  Status status = driver.check(driver.init(0), "cuInit");
  if (!status.ok())
    return Status::error("no usable NVIDIA GPU: " + status.message());
  // Graphs record launches that start early since then.
  constexpr int kCuda12_3 = 12030;
  int version = 0;
  if (driver.driverGetVersion(&version) != 0 || version < kCuda12_3)
    driver.launchKernelEx = nullptr;
  return driver;
}

Result<const Driver *> Driver::get() {
  // Never destroyed: buffers and modules may outlive static destructors.
  static const Result<Driver> *const driver = new Result<Driver>(openDriver());
  if (!driver->ok())
    return driver->status();
  return &**driver;
}

Status Driver::check(CUresult code, const char *what) const {
  if (code == 0)
    return Status();
  const char *name = nullptr, *description = nullptr;
  std::string message = std::string(what) + " failed: ";
  if (getErrorName(code, &name) == 0 && name)
    message += name;
  else
    message += "CUDA error " + std::to_string(code);
  if (getErrorString(code, &description) == 0 && description)
    message += std::string(" (") + description + ")";
  return Status::error(std::move(message));
}

void ScopedContext::enter(CUresult code, CUcontext context) {
  result = driver.check(code, "cuCtxGetCurrent");
  if (!result.ok())
    return;
  result = driver.check(driver.ctxPushCurrent(context), "cuCtxPushCurrent");
  pushed = result.ok();
}

void ScopedContext::leave() {
  CUcontext popped = nullptr;
  (void)driver.ctxPopCurrent(&popped);
}

// CU_STREAM_CAPTURE_MODE_RELAXED.
static constexpr int kRelaxed = 2;

RelaxedCapture::RelaxedCapture(const Driver &driver)
    : driver(driver), mode(kRelaxed) {
  exchange();
}

RelaxedCapture::~RelaxedCapture() { exchange(); }

void RelaxedCapture::exchange() {
  if (driver.threadExchangeStreamCaptureMode)
    (void)driver.threadExchangeStreamCaptureMode(&mode);
}
