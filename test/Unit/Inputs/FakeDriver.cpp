//===- x - FakeDriver.cpp - a CUDA driver that only keeps records -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Built as libcuda.so.1 for LaunchTest: one GPU of compute capability 9.0 whose
// memory is the host's. PTX with the word `nonsense` does not compile; a kernel
// is found if its name is in the image, or that is a cubin; a launch is written
// down, not run.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

using namespace attn::runtime;

static constexpr CUresult kInvalidValue = 1, kInvalidPTX = 218, kNotFound = 500,
                          kCaptureUnsupported = 900;
static constexpr int kRelaxed = 2; // of CUstreamCaptureMode

/// While a stream is captured, what may wait or free wants a thread that says
/// it knows.
static bool isRefused() {
  return fakeRecord()->isCapturing && fakeThread()->captureMode != kRelaxed;
}

FakeRecord *fakeRecord() {
  static FakeRecord record;
  return &record;
}

FakeThread *fakeThread() {
  static thread_local FakeThread thread;
  return &thread;
}

static CUcontext primaryContext() {
  return reinterpret_cast<CUcontext>(fakeRecord());
}

extern "C" {
CUresult cuInit(unsigned) { return 0; }
CUresult cuDriverGetVersion(int *version) {
  *version = 12040;
  return 0;
}
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == kInvalidPTX ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OTHER";
  return 0;
}
CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "fake";
  return 0;
}
CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return 0;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::strncpy(name, "Fake GPU", size);
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  *value = attribute == 75   ? 9
           : attribute == 76 ? 0
           : attribute == 16 ? 132
                             : 232448;
  return 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = primaryContext();
  return 0;
}
CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = fakeThread()->current;
  return 0;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  fakeThread()->current = context;
  return 0;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ++fakeThread()->pushes;
  fakeThread()->pushedOver = fakeThread()->current;
  fakeThread()->current = context;
  return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  --fakeThread()->pushes;
  *context = fakeThread()->current;
  fakeThread()->current = fakeThread()->pushedOver;
  return 0;
}
CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return 0;
}
CUresult cuCtxSynchronize() {
  if (!fakeRecord()->isShared)
    fakeRecord()->mayRun = false;
  return 0;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            int *options, void **values) {
  if (isRefused())
    return kCaptureUnsupported;
  // A cubin may hold zeros; only its first bytes are looked at.
  const char *text = static_cast<const char *>(image);
  bool isBad = std::strstr(text, "nonsense");
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 3)
      std::strcpy(static_cast<char *>(values[i]), "info: 12 registers\n");
    if (options[i] == 5 && isBad)
      std::strcpy(static_cast<char *>(values[i]), "line 3: nonsense\n\n");
  }
  if (isBad)
    return kInvalidPTX;
  ++fakeRecord()->modules;
  *module = reinterpret_cast<CUmodule>(const_cast<void *>(image));
  return 0;
}
CUresult cuModuleUnload(CUmodule) {
  if (isRefused())
    return kCaptureUnsupported;
  --fakeRecord()->modules;
  return 0;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  const char *image = reinterpret_cast<const char *>(module);
  bool isELF = std::memcmp(image,
                           "\x7f"
                           "ELF",
                           4) == 0;
  if (!isELF && !std::strstr(image, name))
    return kNotFound;
  *function = reinterpret_cast<CUfunction>(module);
  return 0;
}
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction) {
  *value = attribute == 0 ? 1024 : attribute == 4 ? 77 : 0;
  return 0;
}
CUresult cuFuncSetAttribute(CUfunction, int attribute, int value) {
  if (attribute != 8)
    return kInvalidValue;
  if (!fakeRecord()->isShared)
    fakeRecord()->sharedLimit = value;
  return 0;
}
CUresult cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *data,
                                const uint64_t *sizes, const uint64_t *strides,
                                const unsigned *box, const unsigned *steps,
                                int interleave, int swizzle, int, int fill) {
  FakeRecord &record = *fakeRecord();
  bool legal = reinterpret_cast<uintptr_t>(map) % 64 == 0 &&
               (rank == 4 || rank == 5) &&
               reinterpret_cast<uintptr_t>(data) % 16 == 0 && interleave == 0 &&
               fill == 0;
  for (unsigned i = 0; i < rank; ++i)
    legal &= sizes[i] > 0 && box[i] > 0 && box[i] <= 256 && steps[i] == 1 &&
             (i == 0 || strides[i - 1] % 16 == 0);
  if (!legal)
    return kInvalidValue;
  if (record.isShared)
    return 0;
  *static_cast<uint64_t *>(map) = record.tensorMaps.size();
  record.tensorMaps.push_back({type,
                               swizzle,
                               data,
                               {sizes, sizes + rank},
                               {strides, strides + rank - 1},
                               {box, box + rank}});
  return 0;
}
CUresult cuFuncGetParamInfo(CUfunction, size_t number, size_t *offset,
                            size_t *bytes) {
  FakeRecord &record = *fakeRecord();
  if (number >= record.layout.size()) {
    if (!record.isShared)
      ++record.wrongParameters;
    return kInvalidValue;
  }
  std::tie(*offset, *bytes) = record.layout[number];
  return 0;
}
/// The parameters of a buffer, in its order.
static CUresult readBuffer(void **options) {
  FakeRecord &record = *fakeRecord();
  size_t end = 0;
  for (auto [offset, bytes] : record.layout)
    end = std::max(end, offset + bytes);
  bool isLegal = options && options[0] == reinterpret_cast<void *>(1) &&
                 options[2] == reinterpret_cast<void *>(2) && !options[4] &&
                 *static_cast<size_t *>(options[3]) == end &&
                 record.parameters.size() <= record.layout.size();
  if (!isLegal)
    return kInvalidValue;
  for (size_t i = 0; i < record.parameters.size(); ++i) {
    auto [offset, bytes] = record.layout[i];
    record.parameters[i] = 0;
    std::memcpy(&record.parameters[i], static_cast<char *>(options[1]) + offset,
                std::min(bytes, sizeof(uint64_t)));
  }
  return 0;
}
CUresult cuLaunchKernel(CUfunction, unsigned x, unsigned y, unsigned z,
                        unsigned threads, unsigned threadsY, unsigned threadsZ,
                        unsigned shared, CUstream stream, void **parameters,
                        void **options) {
  FakeRecord &record = *fakeRecord();
  if (threadsY != 1 || threadsZ != 1 ||
      fakeThread()->current != primaryContext())
    return kInvalidValue;
  ++record.launches;
  if (record.isShared)
    return 0;
  record.mayRun = true;
  record.grid = {x, y, z};
  record.grids.push_back(record.grid);
  record.threads = threads;
  record.shared = shared;
  record.stream = stream;
  record.isBuffered = !parameters;
  if (record.isBuffered)
    return readBuffer(options);
  for (uint64_t &parameter : record.parameters)
    parameter = *static_cast<uint64_t *>(*parameters++);
  return 0;
}
CUresult cuLaunchKernelEx(const LaunchConfig *config, CUfunction function,
                          void **parameters, void **options) {
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, set to 1.
  if (config->numAttributes != 1 || config->attributes->id != 6 ||
      config->attributes->value[0] != 1)
    return kInvalidValue;
  fakeRecord()->earlyLaunches.push_back(fakeRecord()->launches);
  const unsigned *grid = config->grid, *threads = config->threads;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], threads[0],
                        threads[1], threads[2], config->sharedBytes,
                        config->stream, parameters, options);
}
static CUresult allocate(CUdeviceptr *pointer, size_t bytes) {
  if (bytes > (size_t(1) << 40))
    return 2;
  void *memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) // as the driver aligns
    return 2;
  ++fakeRecord()->buffers;
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (isRefused())
    return kCaptureUnsupported;
  return allocate(pointer, bytes);
}
static CUresult release(CUdeviceptr pointer) {
  --fakeRecord()->buffers;
  std::free(reinterpret_cast<void *>(pointer));
  return 0;
}
namespace {
/// What comes from a pool, of all threads.
class PoolMemory {
public:
  void insert(CUdeviceptr pointer) {
    std::lock_guard<std::mutex> guard(mutex);
    memory.insert(pointer);
  }
  bool erase(CUdeviceptr pointer) {
    std::lock_guard<std::mutex> guard(mutex);
    return memory.erase(pointer) != 0;
  }

private:
  std::mutex mutex;
  std::set<CUdeviceptr> memory;
};
} // namespace
static PoolMemory &poolMemory() {
  static PoolMemory memory;
  return memory;
}
/// Other memory is freed when the device has nothing left to do.
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (isRefused())
    return kCaptureUnsupported;
  FakeRecord &record = *fakeRecord();
  bool isOfPool = poolMemory().erase(pointer);
  if (!record.isShared && isOfPool && record.mayRun)
    ++record.freedWhileRunning;
  if (!record.isShared && !isOfPool)
    record.mayRun = false;
  return release(pointer);
}
CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  *available = 1000;
  *total = 2000;
  return 0;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return 0;
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}
CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream) {
  if (!fakeRecord()->hasMemoryPools)
    return 801;
  ++fakeRecord()->orderedAllocations;
  CUresult result = allocate(pointer, bytes);
  if (result == 0)
    poolMemory().insert(*pointer);
  return result;
}
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream) {
  poolMemory().erase(pointer);
  return release(pointer);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                         CUstream) {
  fakeRecord()->clearedBytes += static_cast<int>(bytes);
  return cuMemsetD8_v2(to, value, bytes);
}
CUresult cuStreamCreate(CUstream *stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(uintptr_t(0x51));
  ++fakeRecord()->streams;
  return 0;
}
CUresult cuStreamDestroy_v2(CUstream) {
  --fakeRecord()->streams;
  return 0;
}
CUresult cuStreamIsCapturing(CUstream, int *status) {
  *status = fakeRecord()->isCapturing;
  return 0;
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, fakeThread()->captureMode);
  return 0;
}
CUresult cuStreamGetId(CUstream stream, unsigned long long *number) {
  *number = reinterpret_cast<uintptr_t>(stream);
  return 0;
}
CUresult cuStreamSynchronize(CUstream) {
  ++fakeRecord()->streamWaits;
  return 0;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(uintptr_t(0xe1));
  ++fakeRecord()->events;
  return 0;
}
CUresult cuEventDestroy_v2(CUevent) {
  --fakeRecord()->events;
  return 0;
}
CUresult cuEventRecord(CUevent, CUstream) { return 0; }
CUresult cuEventSynchronize(CUevent) { return 0; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 1.5f;
  return 0;
}
} // extern "C"
