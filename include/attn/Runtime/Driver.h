//===- Driver.h - the CUDA driver, opened at run time --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One list of the driver functions in use, each under the name of the lowest
// version that suffices. `libcuda.so.1` is opened at first use, so nothing here
// needs CUDA to build, link or start; without a driver every call that needs
// one returns an error.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_DRIVER_H
#define ATTN_RUNTIME_DRIVER_H

#include "attn/Runtime/Result.h"

#include <cstddef>
#include <cstdint>

namespace attn::runtime {

// The driver's own types, as its ABI has them.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;

/// CUlaunchAttribute of cuda.h, whose value is an integer here.
struct alignas(8) LaunchAttribute {
  int id = 0;
  int padding = 0;
  int value[16] = {};
};

/// CUlaunchConfig of cuda.h.
struct LaunchConfig {
  unsigned grid[3], threads[3], sharedBytes;
  CUstream stream;
  const LaunchAttribute *attributes;
  unsigned numAttributes;
};

// X(member, exported symbol, parameters)
#define ATTN_DRIVER_FUNCTIONS(X)                                               \
  X(init, cuInit, (unsigned))                                                  \
  X(driverGetVersion, cuDriverGetVersion, (int *))                             \
  X(getErrorName, cuGetErrorName, (CUresult, const char **))                   \
  X(getErrorString, cuGetErrorString, (CUresult, const char **))               \
  X(deviceGetCount, cuDeviceGetCount, (int *))                                 \
  X(deviceGet, cuDeviceGet, (CUdevice *, int))                                 \
  X(deviceGetName, cuDeviceGetName, (char *, int, CUdevice))                   \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *, int, CUdevice))          \
  X(devicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
  X(ctxGetCurrent, cuCtxGetCurrent, (CUcontext *))                             \
  X(ctxSetCurrent, cuCtxSetCurrent, (CUcontext))                               \
  X(ctxPushCurrent, cuCtxPushCurrent_v2, (CUcontext))                          \
  X(ctxPopCurrent, cuCtxPopCurrent_v2, (CUcontext *))                          \
  X(ctxGetDevice, cuCtxGetDevice, (CUdevice *))                                \
  X(ctxSynchronize, cuCtxSynchronize, ())                                      \
  X(moduleLoadDataEx, cuModuleLoadDataEx,                                      \
    (CUmodule *, const void *, unsigned, int *, void **))                      \
  X(moduleUnload, cuModuleUnload, (CUmodule))                                  \
  X(moduleGetFunction, cuModuleGetFunction,                                    \
    (CUfunction *, CUmodule, const char *))                                    \
  X(funcGetAttribute, cuFuncGetAttribute, (int *, int, CUfunction))            \
  X(funcSetAttribute, cuFuncSetAttribute, (CUfunction, int, int))              \
  X(launchKernel, cuLaunchKernel,                                              \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
     unsigned, CUstream, void **, void **))                                    \
  X(memAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                          \
  X(memFree, cuMemFree_v2, (CUdeviceptr))                                      \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                         \
  X(memcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))          \
  X(memcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                \
  X(memsetD8, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))             \
  X(memsetD8Async, cuMemsetD8Async,                                            \
    (CUdeviceptr, unsigned char, size_t, CUstream))                            \
  X(streamCreate, cuStreamCreate, (CUstream *, unsigned))                      \
  X(streamDestroy, cuStreamDestroy_v2, (CUstream))                             \
  X(streamSynchronize, cuStreamSynchronize, (CUstream))                        \
  X(eventCreate, cuEventCreate, (CUevent *, unsigned))                         \
  X(eventDestroy, cuEventDestroy_v2, (CUevent))                                \
  X(eventRecord, cuEventRecord, (CUevent, CUstream))                           \
  X(eventSynchronize, cuEventSynchronize, (CUevent))                           \
  X(eventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent))

// Only in newer drivers; null where missing. launchKernelEx is, too, where
// graphs do not record what it says (before CUDA 12.3).
#define ATTN_DRIVER_NEWER_FUNCTIONS(X)                                         \
  X(memAllocAsync, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))         \
  X(memFreeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream))                     \
  X(streamIsCapturing, cuStreamIsCapturing, (CUstream, int *))                 \
  X(streamGetId, cuStreamGetId, (CUstream, unsigned long long *))              \
  X(threadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,        \
    (int *))                                                                   \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled,                              \
    (void *, int, unsigned, void *, const uint64_t *, const uint64_t *,        \
     const unsigned *, const unsigned *, int, int, int, int))                  \
  X(launchKernelEx, cuLaunchKernelEx,                                          \
    (const LaunchConfig *, CUfunction, void **, void **))                      \
  X(funcGetParamInfo, cuFuncGetParamInfo,                                      \
    (CUfunction, size_t, size_t *, size_t *))

/// The functions of the driver, initialised.
struct Driver {
#define ATTN_DRIVER_MEMBER(member, symbol, params) CUresult(*member) params;
  ATTN_DRIVER_FUNCTIONS(ATTN_DRIVER_MEMBER)
  ATTN_DRIVER_NEWER_FUNCTIONS(ATTN_DRIVER_MEMBER)
#undef ATTN_DRIVER_MEMBER

  /// The one driver of this process, or why there is none.
  static Result<const Driver *> get();

  /// `what` failed unless `code` is CUDA_SUCCESS; the message has the driver's
  /// name and description of the code.
  Status check(CUresult code, const char *what) const;
};

/// Makes `context` the current one of this thread for a scope.
class ScopedContext {
public:
  ScopedContext(const Driver &driver, CUcontext context) : driver(driver) {
    CUcontext current = nullptr;
    CUresult code = driver.ctxGetCurrent(&current);
    if (code != 0 || current != context)
      enter(code, context);
  }
  ~ScopedContext() {
    if (pushed)
      leave();
  }
  ScopedContext(const ScopedContext &) = delete;
  ScopedContext &operator=(const ScopedContext &) = delete;
  const Status &status() const { return result; }

private:
  /// `code` is what asking for the current one gave.
  void enter(CUresult code, CUcontext context);
  void leave();

  const Driver &driver;
  bool pushed = false;
  Status result;
};

/// In a scope this thread may do what allocates, frees or waits although some
/// stream is being captured: elsewhere that fails, and ends the capture.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  void exchange();

  const Driver &driver;
  int mode; // the other one
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_DRIVER_H
