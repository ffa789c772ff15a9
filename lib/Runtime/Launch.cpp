//===- Launch.cpp - a kernel into a stream -------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Module.h"
#include "attn/Runtime/Relayout.h"
#include "attn/Runtime/Workspace.h"

using namespace attn;
using namespace attn::runtime;

static Status encode(const Driver &driver, const TensorMapCall &call,
                     void *data, TensorMap &map) {
  if (!driver.tensorMapEncodeTiled)
    return Status::error("this kernel needs cuTensorMapEncodeTiled, which the "
                         "driver does not have (CUDA 12 or later does)");
  // CU_TENSOR_MAP_DATA_TYPE_…, CU_TENSOR_MAP_SWIZZLE_…, …_L2_128B of cuda.h.
  constexpr int kFloat16 = 6, kFloat32 = 7, kBFloat16 = 9;
  int element = call.element == ElementKind::F16    ? kFloat16
                : call.element == ElementKind::BF16 ? kBFloat16
                : call.element == ElementKind::F32  ? kFloat32
                                                    : -1;
  if (element < 0)
    return Status::error("a tensor map of elements that are neither f16 nor "
                         "bf16 nor f32");
  constexpr int kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2,
                kSwizzle128 = 3;
  constexpr int kNoInterleave = 0, kPromote128 = 2, kFillZero = 0;
  constexpr unsigned kOnes[] = {1, 1, 1, 1, 1};
  int swizzle = call.swizzleBytes == 128  ? kSwizzle128
                : call.swizzleBytes == 64 ? kSwizzle64
                : call.swizzleBytes == 32 ? kSwizzle32
                                          : kSwizzleNone;
  return driver.check(driver.tensorMapEncodeTiled(
                          &map, element, call.rank, data, call.sizes.data(),
                          call.strides.data(), call.box.data(), kOnes,
                          kNoInterleave, swizzle, kPromote128, kFillZero),
                      "cuTensorMapEncodeTiled");
}

static Status clear(const Driver &driver, const WorkspaceCall &part,
                    void *workspace, CUstream stream) {
  if (!part.isZeroed || part.bytes == 0)
    return Status();
  auto address = reinterpret_cast<CUdeviceptr>(workspace) + part.offset;
  return driver.check(driver.memsetD8Async(address, 0, part.bytes, stream),
                      "clearing a workspace");
}

Status Module::relayout(const LaunchCall &call, bool outputs, void *workspace,
                        CUstream stream) const {
  const Driver &driver = *owner.driver;
  for (const RelayoutCall &copy : call.relayouts) {
    if (copy.isOutput != outputs)
      continue;
    const RelayoutInfo &info = source.relayouts[copy.kernel];
    std::vector<uint64_t> slots = relayoutParameters(
        copy, static_cast<char *>(workspace) + copy.place.offset);
    std::vector<void *> parameters;
    for (uint64_t &slot : slots)
      parameters.push_back(&slot);
    Status status = driver.check(
        driver.launchKernel(relayoutFunctions[copy.kernel], copy.grid[0],
                            copy.grid[1], copy.grid[2],
                            static_cast<unsigned>(info.threads), 1, 1, 0,
                            stream, parameters.data(), nullptr),
        ("launching '" + info.entry + "'").c_str());
    if (!status.ok())
      return status;
    relayoutCount->fetch_add(1, std::memory_order_relaxed);
  }
  return Status();
}

Status Module::fill(PackedLaunch &launch, void *workspace) const {
  Status status;
  launch.filledAt.reset();
  launch.place(workspace);
  for (size_t i = 0; i < launch.kernels.size(); ++i) {
    const KernelCall &kernel = launch.call.kernels[i];
    PackedLaunch::Kernel &packed = launch.kernels[i];
    const ParameterLayout &layout = functions[launch.call.variant][i].layout;
    if (packed.buffer.empty() &&
        layout.isOf(launch.slots.size(), packed.maps.size()))
      packed.buffer.resize(layout.bytes());
    for (size_t m = 0; m < packed.maps.size() && !kernel.isEmpty; ++m) {
      const TensorMapCall &map = kernel.tensorMaps[m];
      void *data =
          map.offset ? static_cast<char *>(workspace) + *map.offset : map.data;
      size_t number = launch.slots.size() + m;
      packed.parameters[number] =
          packed.maps[m].get(data, [&](TensorMap &made) {
            status = encode(*owner.driver, map, data, made);
            return status.ok();
          });
      if (!status.ok())
        return status;
      if (!packed.buffer.empty())
        layout.writeMap(number, packed.parameters[number],
                        packed.buffer.data());
    }
  }
  launch.filledAt = workspace;
  return status;
}

CUresult Module::launchKernel(PackedLaunch &launch, size_t number, bool isFirst,
                              CUstream stream) const {
  const KernelCall &kernel = launch.call.kernels[number];
  const KernelInfo &info = source.variants[launch.call.variant].kernels[number];
  const Function &loaded = functions[launch.call.variant][number];
  PackedLaunch::Kernel &packed = launch.kernels[number];
  // CU_LAUNCH_PARAM_… of cuda.h, which are integers in pointers.
  static void *const kBuffer = reinterpret_cast<void *>(uintptr_t(1)),
                     *const kBytes = reinterpret_cast<void *>(uintptr_t(2));
  size_t bytes = packed.buffer.size();
  void *buffered[] = {kBuffer, packed.buffer.data(), kBytes, &bytes, nullptr};
  bool isBuffered = !packed.buffer.empty();
  if (isBuffered)
    loaded.layout.writeNumbers(launch.slots, packed.buffer.data());
  void **parameters = isBuffered ? nullptr : packed.parameters.data();
  void **options = isBuffered ? buffered : nullptr;
  auto threads = static_cast<unsigned>(info.threads);
  auto sharedBytes = static_cast<unsigned>(info.sharedBytes);
  const Driver &driver = *owner.driver;
  auto [x, y, z] = kernel.grid;
  if (isFirst || !info.startsEarly || !driver.launchKernelEx)
    return driver.launchKernel(loaded.function, x, y, z, threads, 1, 1,
                               sharedBytes, stream, parameters, options);
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: allowed.
  static constexpr LaunchAttribute kEarly = {6, 0, {1}};
  LaunchConfig config = {{x, y, z}, {threads, 1, 1}, sharedBytes,
                         stream,    &kEarly,         1};
  return driver.launchKernelEx(&config, loaded.function, parameters, options);
}

Status Module::run(PackedLaunch &launch, void *workspace, bool isCleared,
                   CUstream stream) const {
  const Driver &driver = *owner.driver;
  const LaunchCall &call = launch.call;
  if (launch.filledAt != workspace)
    if (Status status = fill(launch, workspace); !status.ok())
      return status;
  if (!isCleared && call.zeroBytes != 0) {
    Status status = clear(driver, call.zeros, workspace, stream);
    for (const WorkspaceCall &part : call.workspaces)
      if (status.ok())
        status = clear(driver, part, workspace, stream);
    if (!status.ok())
      return status;
  }
  if (!call.relayouts.empty())
    if (Status status = relayout(call, /*outputs=*/false, workspace, stream);
        !status.ok())
      return status;
  // It follows what others launched; or it may run beside a kernel that is left
  // out, which would have waited for those before.
  bool isFirst = true;
  for (size_t i = 0; i < launch.kernels.size(); ++i) {
    if (call.kernels[i].isEmpty) {
      isFirst = true;
      continue;
    }
    CUresult code = launchKernel(launch, i, isFirst, stream);
    isFirst = false;
    const std::string &entry = source.variants[call.variant].kernels[i].entry;
    if (code != 0)
      return driver.check(code, ("launching '" + entry + "'").c_str());
  }
  return call.relayouts.empty()
             ? Status()
             : relayout(call, /*outputs=*/true, workspace, stream);
}

Result<PackedLaunch *> Module::prepare(ArgumentSpan arguments,
                                       std::optional<PackedLaunch> &own) const {
  KnownLaunches &launches = KnownLaunches::here();
  if (KnownLaunch *known = launches.find(number, source, arguments))
    return &known->launch;
  Result<LaunchCall> call =
      prepareLaunch(source, arguments.copy(), owner.multiprocessors);
  if (!call.ok())
    return call.status();
  if (auto known = KnownLaunch::make(source, arguments, *call))
    return &launches.keep(number, arguments, std::move(known)).launch;
  return &own.emplace(std::move(*call));
}

Status Module::launch(ArgumentSpan arguments, CUstream stream,
                      const WorkspaceMemory *memory) const {
  std::optional<PackedLaunch> own;
  Result<PackedLaunch *> prepared = prepare(arguments, own);
  if (!prepared.ok())
    return prepared.status();
  PackedLaunch &launch = **prepared;
  const LaunchCall &call = launch.call;
  if (call.isEmpty)
    return Status();
  ScopedContext scope(*owner.driver, owner.context);
  if (!scope.status().ok())
    return scope.status();
  if (!memory && call.workspaceBytes == 0)
    return run(launch, nullptr, /*isCleared=*/false, stream);
  if (!memory && call.isRestored &&
      call.workspaceBytes <= static_cast<int64_t>(StreamMemory::kMaxBytes)) {
    std::unique_lock<std::mutex> lock = streamMemory->lock();
    void *kept =
        streamMemory->find(stream, call.zeroBytes, call.workspaceBytes);
    // Zeros alone are those of one kernel.
    if (call.zeroBytes == call.workspaceBytes)
      lock.unlock();
    if (kept)
      return run(launch, kept, /*isCleared=*/true, stream);
  }
  if (!memory) {
    Result<Workspace> workspace =
        Workspace::allocate(*owner.driver, call.workspaceBytes, stream);
    return workspace.ok()
               ? run(launch, workspace->data(), /*isCleared=*/false, stream)
               : workspace.status();
  }
  if (memory->bytes < static_cast<size_t>(call.workspaceBytes))
    return Status::error("the workspace has " + std::to_string(memory->bytes) +
                         " bytes, wanted " +
                         std::to_string(call.workspaceBytes));
  if (reinterpret_cast<uintptr_t>(memory->data) % kWorkspaceAlignment != 0)
    return Status::error("the workspace is not aligned to " +
                         std::to_string(kWorkspaceAlignment) + " bytes");
  return run(launch, memory->data, /*isCleared=*/false, stream);
}

Result<std::string> Module::describeLaunch(const Arguments &arguments) const {
  Result<LaunchCall> call =
      prepareLaunch(source, arguments, owner.multiprocessors);
  if (!call.ok())
    return call.status();
  return describeRelayouts(source, *call);
}

Result<VariantChoice> Module::chooseVariant(const Arguments &arguments) const {
  Result<LaunchCall> call =
      prepareLaunch(source, arguments, owner.multiprocessors);
  if (!call.ok())
    return call.status();
  return VariantChoice{call->variant, source.rule.explain(call->quantities)};
}

Result<int64_t> Module::workspaceBytes(ArgumentSpan arguments) const {
  std::optional<PackedLaunch> own;
  Result<PackedLaunch *> launch = prepare(arguments, own);
  if (!launch.ok())
    return launch.status();
  return (*launch)->call.workspaceBytes;
}
