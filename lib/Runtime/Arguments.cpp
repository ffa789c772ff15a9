//===- Arguments.cpp - what a kernel is called with ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Arguments.h"

#include "attn/Runtime/Overlap.h"
#include "attn/Runtime/Relayout.h"
#include "attn/Runtime/TensorMaps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace attn;
using namespace attn::runtime;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static std::string describe(const Artifact &artifact, size_t index) {
  const ArgumentInfo &info = artifact.arguments[index];
  return "argument " + std::to_string(index) + " ('" + info.name + "')";
}

static bool hasElements(const Argument &tensor) {
  for (int64_t i = 0; i < tensor.rank; ++i)
    if (tensor.sizes[i] == 0)
      return false;
  return true;
}

static std::string listText(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

static std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") +
            (size < 0 ? std::string("?") : std::to_string(size));
  return text;
}

// Rank and sizes.
static Status checkShape(const ArgumentInfo &info, const Argument &tensor) {
  if (tensor.rank != static_cast<int64_t>(info.shape.size()))
    return Status::error("wanted rank " + std::to_string(info.shape.size()) +
                         ", got " + std::to_string(tensor.rank));
  if (tensor.rank > 0 && (!tensor.sizes || !tensor.strides))
    return Status::error("sizes or strides are missing");
  bool fits = true;
  for (int64_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] < 0)
      return Status::error("size of dimension " + std::to_string(i) + " is " +
                           std::to_string(tensor.sizes[i]));
    fits &= info.shape[i] < 0 || info.shape[i] == tensor.sizes[i];
  }
  if (!fits)
    return Status::error("wanted shape " + shapeText(info.shape) + ", got " +
                         shapeText({tensor.sizes, tensor.sizes + tensor.rank}));
  return Status();
}

// That all elements lie in the address space, and those of a result apart.
static Status checkStrides(const ArgumentInfo &info, const Argument &tensor) {
  // Sums and products of two of what passes here do not overflow.
  constexpr int64_t kAddressSpace = int64_t(1) << 57;
  int64_t bytes = elementBytes(info.element);
  int64_t span = 0;
  for (int64_t i = 0; i < tensor.rank; ++i) {
    int64_t size = tensor.sizes[i], stride = tensor.strides[i];
    if (size == 1)
      continue;
    int64_t extent;
    if (stride == std::numeric_limits<int64_t>::min() ||
        __builtin_mul_overflow(size - 1, std::abs(stride), &extent) ||
        __builtin_add_overflow(span, extent, &span) ||
        span >= kAddressSpace / bytes)
      return Status::error("stride of dimension " + std::to_string(i) + " is " +
                           std::to_string(stride) +
                           ", the tensor leaves the address space");
  }
  if (!info.isOutput || !overlapsItself(tensor))
    return Status();
  return Status::error(
      "elements of an output may not overlap, got strides " +
      listText({tensor.strides, tensor.strides + tensor.rank}) + " for sizes " +
      listText({tensor.sizes, tensor.sizes + tensor.rank}));
}

// What no copy mends.
static Status checkTensor(const ArgumentInfo &info, const Argument &tensor) {
  if (tensor.kind != Argument::Kind::Tensor)
    return Status::error("wanted a tensor, got a scalar");
  Status status = checkShape(info, tensor);
  if (!status.ok() || !hasElements(tensor))
    return status;
  if (!tensor.data)
    return Status::error("data pointer is null");
  int64_t bytes = elementBytes(info.element);
  if (reinterpret_cast<uintptr_t>(tensor.data) % bytes != 0)
    return Status::error("data pointer is not aligned to " +
                         std::to_string(bytes) + " bytes");
  return checkStrides(info, tensor);
}

// The spread-out memref descriptor: pointer, pointer, offset, sizes, strides.
static void packTensor(const Argument &tensor,
                       std::vector<uint64_t> &parameters) {
  uint64_t address = reinterpret_cast<uintptr_t>(tensor.data);
  parameters.insert(parameters.end(), {address, address, 0});
  for (int64_t i = 0; i < tensor.rank; ++i)
    parameters.push_back(static_cast<uint64_t>(tensor.sizes[i]));
  for (int64_t i = 0; i < tensor.rank; ++i)
    parameters.push_back(
        i == tensor.rank - 1 ? 1 : static_cast<uint64_t>(tensor.strides[i]));
}

//===----------------------------------------------------------------------===//
// The whole launch
//===----------------------------------------------------------------------===//

// Checks `tensor` and makes of it what the kernels see; where they cannot take
// its layout, plans a copy.
static Status fit(const Artifact &artifact, size_t number, Argument &tensor,
                  LaunchCall &call) {
  const ArgumentInfo &info = artifact.arguments[number];
  Status status = checkTensor(info, tensor);
  if (!status.ok())
    return status;
  bool isSeenAsItIs =
      info.view.empty() &&
      (!hasElements(tensor) || describeMisfit(info, tensor).empty());
  if (isSeenAsItIs)
    return status;
  Result<std::vector<std::vector<Dimension>>> parts = viewParts(info, tensor);
  if (!parts.ok())
    return parts.status();
  ViewCall &view = call.views[number];
  view.sizes = viewSizes(*parts);
  std::optional<std::vector<int64_t>> strides = viewStrides(*parts);
  view.strides = strides ? *strides : std::vector<int64_t>(parts->size(), 0);
  Argument seen = Argument::tensor(tensor.data, info.rank(), view.sizes.data(),
                                   info.view.empty() ? tensor.strides
                                                     : view.strides.data());
  std::string reason = strides ? describeMisfit(info, seen)
                               : "its dimensions do not lie one after the "
                                 "other";
  void *data = tensor.data;
  tensor = seen;
  if (!hasElements(seen) || reason.empty())
    return Status();
  Result<RelayoutCall> relayout = planRelayout(artifact, number, data, *parts,
                                               std::move(reason), view.strides);
  if (!relayout.ok())
    return relayout.status();
  call.relayouts.push_back(std::move(*relayout));
  tensor.strides = view.strides.data();
  return Status();
}

// A result is written while arguments are read.
static Status checkApart(const Artifact &artifact, const Arguments &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &result = artifact.arguments[i];
    if (!result.isOutput)
      continue;
    for (size_t k = 0; k < arguments.size(); ++k) {
      const ArgumentInfo &other = artifact.arguments[k];
      bool isSeen = k == i || (other.isOutput && k < i);
      if (other.isTensor && !isSeen &&
          overlap(arguments[i], elementBytes(result.element), arguments[k],
                  elementBytes(other.element)))
        return Status::error(describe(artifact, i) + " overlaps " +
                             describe(artifact, k) +
                             ": a result needs memory of its own");
    }
  }
  return Status();
}

// `views` become the arguments as the kernels see them; they refer to `call`.
static Status checkAndPack(const Artifact &artifact, Arguments &views,
                           LaunchCall &call) {
  if (views.size() != artifact.arguments.size())
    return Status::error("kernel '" + artifact.name + "' takes " +
                         std::to_string(artifact.arguments.size()) +
                         " arguments (results included), got " +
                         std::to_string(views.size()));
  call.views.resize(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    const ArgumentInfo &info = artifact.arguments[i];
    if (info.isTensor) {
      size_t before = call.relayouts.size();
      Status status = fit(artifact, i, views[i], call);
      if (!status.ok())
        return Status::error(describe(artifact, i) + ": " + status.message());
      if (call.relayouts.size() > before)
        call.relayouts.back().slot = call.parameters.size();
      packTensor(views[i], call.parameters);
      continue;
    }
    Result<uint64_t> bits = scalarBits(views[i], info.element);
    if (!bits.ok())
      return Status::error(describe(artifact, i) + ": " + bits.message());
    call.parameters.push_back(*bits);
  }
  return Status();
}

static Status runChecks(const Artifact &artifact, const Arguments &arguments,
                        int64_t multiprocessors) {
  for (const LaunchCheck &check : artifact.checks) {
    Result<int64_t> lhs = evaluate(check.lhs, arguments, multiprocessors);
    if (!lhs.ok())
      return lhs.status();
    Result<int64_t> rhs = evaluate(check.rhs, arguments, multiprocessors);
    if (!rhs.ok())
      return rhs.status();
    if (*lhs == *rhs)
      continue;
    // A remainder says little: what was divided does.
    bool isRemainder = check.lhs.kind == LaunchExpr::Kind::Mod && *rhs == 0;
    if (isRemainder) {
      lhs = evaluate(check.lhs.operands[0], arguments, multiprocessors);
      rhs = evaluate(check.lhs.operands[1], arguments, multiprocessors);
    }
    return Status::error(check.message + " (" + std::to_string(*lhs) +
                         (isRemainder ? " over " : " against ") +
                         std::to_string(*rhs) + ")");
  }
  return Status();
}

static Result<KernelCall> prepareKernel(const Artifact &artifact,
                                        const KernelInfo &kernel,
                                        const Arguments &arguments,
                                        int64_t multiprocessors,
                                        const LaunchCall &launch) {
  KernelCall call;
  for (const TensorMapInfo &info : kernel.tensorMaps) {
    Result<TensorMapCall> map =
        describeTensorMap(artifact, info, arguments, launch);
    if (!map.ok())
      return map.status();
    if (!map->data && !map->offset)
      map->offset = launch.zeros.offset;
    for (const RelayoutCall &relayout : launch.relayouts)
      if (relayout.argument == info.argument)
        map->offset = relayout.place.offset;
    call.tensorMaps.push_back(*map);
  }
  constexpr int64_t kMaxGrid[] = {0x7fffffff, 0xffff, 0xffff};
  for (size_t i = 0; i < call.grid.size(); ++i) {
    Result<int64_t> blocks =
        evaluate(kernel.grid[i], arguments, multiprocessors);
    if (!blocks.ok())
      return blocks.status();
    if (*blocks < 0 || *blocks > kMaxGrid[i])
      return Status::error("kernel '" + kernel.entry + "' needs a grid of " +
                           std::to_string(*blocks) + " blocks in dimension " +
                           "xyz"[i] + ", the device has at most " +
                           std::to_string(kMaxGrid[i]));
    call.grid[i] = static_cast<uint32_t>(*blocks);
    call.isEmpty |= *blocks == 0;
  }
  return call;
}

static void placeNext(WorkspaceCall &workspace, LaunchCall &call) {
  workspace.offset = call.workspaceBytes;
  int64_t chunks =
      (workspace.bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment;
  call.workspaceBytes += chunks * kWorkspaceAlignment;
}

static Status measureWorkspaces(const VariantInfo &variant,
                                const Arguments &arguments,
                                int64_t multiprocessors, LaunchCall &call) {
  for (const WorkspaceInfo &info : variant.workspaces) {
    WorkspaceCall &workspace = call.workspaces.emplace_back();
    workspace.bytes = elementBytes(info.element);
    workspace.isZeroed = info.isZeroed;
    for (const LaunchExpr &expr : info.sizes) {
      Result<int64_t> size = evaluate(expr, arguments, multiprocessors);
      if (!size.ok())
        return size.status();
      if (*size < 0 ||
          __builtin_mul_overflow(workspace.bytes, *size, &workspace.bytes))
        workspace.bytes = std::numeric_limits<int64_t>::max();
      workspace.sizes.push_back(*size);
    }
  }
  return Status();
}

static bool hasEmptyMaps(const VariantInfo &variant, const Artifact &artifact,
                         const Arguments &arguments, const LaunchCall &call) {
  for (const KernelInfo &kernel : variant.kernels)
    for (const TensorMapInfo &map : kernel.tensorMaps)
      if (isOfNothing(artifact, map, arguments, call))
        return true;
  return false;
}

// One after the other in one piece of memory.
static Status placeWorkspaces(const Artifact &artifact,
                              const Arguments &arguments,
                              int64_t multiprocessors, LaunchCall &call) {
  const VariantInfo &variant = artifact.variants[call.variant];
  Status status = measureWorkspaces(variant, arguments, multiprocessors, call);
  if (!status.ok())
    return status;
  if (hasEmptyMaps(variant, artifact, arguments, call)) {
    call.zeros.bytes = kWorkspaceAlignment;
    call.zeros.isZeroed = true;
  }
  std::vector<WorkspaceCall *> places = {&call.zeros};
  for (WorkspaceCall &workspace : call.workspaces)
    places.push_back(&workspace);
  for (RelayoutCall &relayout : call.relayouts)
    places.push_back(&relayout.place);
  std::stable_partition(places.begin(), places.end(),
                        [](WorkspaceCall *place) { return place->isZeroed; });
  constexpr int64_t kMaxBytes = int64_t(1) << 48;
  for (WorkspaceCall *place : places) {
    if (place->bytes > kMaxBytes)
      return Status::error("'" + artifact.name +
                           "' needs a workspace that does not fit the "
                           "address space");
    placeNext(*place, call);
    if (place->isZeroed)
      call.zeroBytes = call.workspaceBytes;
  }
  call.isRestored = call.zeros.bytes == 0 && call.relayouts.empty();
  for (const WorkspaceInfo &info : variant.workspaces)
    call.isRestored &= info.isRestored || !info.isZeroed;
  return Status();
}

Result<LaunchCall> runtime::prepareLaunch(const Artifact &artifact,
                                          const Arguments &arguments,
                                          int64_t multiprocessors) {
  LaunchCall call;
  Arguments views = arguments;
  Status status = checkAndPack(artifact, views, call);
  if (status.ok())
    status = checkApart(artifact, arguments);
  if (status.ok())
    status = runChecks(artifact, views, multiprocessors);
  if (!status.ok())
    return status;
  call.quantities = measureQuantities(artifact, views, multiprocessors);
  call.variant = artifact.rule.choose(call.quantities);
  // However large the grid would be: any number of batches of nothing.
  call.isEmpty = true;
  for (size_t i = 0; i < views.size(); ++i)
    if (artifact.arguments[i].isOutput)
      call.isEmpty &= !hasElements(views[i]);
  if (call.isEmpty)
    return call;
  status = placeWorkspaces(artifact, views, multiprocessors, call);
  if (!status.ok())
    return status;
  const std::vector<KernelInfo> &kernels =
      artifact.variants[call.variant].kernels;
  for (const KernelInfo &kernel : kernels) {
    Result<KernelCall> one =
        prepareKernel(artifact, kernel, views, multiprocessors, call);
    if (!one.ok())
      return one.status();
    call.kernels.push_back(std::move(*one));
  }
  // A result is defined by blocks only.
  auto isWritten = [&](size_t argument) {
    for (size_t k = 0; k < call.kernels.size(); ++k)
      for (int64_t result : kernels[k].results)
        if (static_cast<size_t>(result) == argument && !call.kernels[k].isEmpty)
          return true;
    return false;
  };
  for (size_t i = 0; i < views.size(); ++i)
    if (artifact.arguments[i].isOutput && hasElements(views[i]) &&
        !isWritten(i))
      return Status::error(describe(artifact, i) +
                           ": has elements, but the grid is empty");
  return call;
}

std::vector<uint64_t> runtime::kernelParameters(const LaunchCall &call,
                                                void *memory) {
  std::vector<uint64_t> parameters = call.parameters;
  auto base = reinterpret_cast<uintptr_t>(memory);
  for (const RelayoutCall &relayout : call.relayouts)
    parameters[relayout.slot] = parameters[relayout.slot + 1] =
        base + relayout.place.offset;
  for (const WorkspaceCall &workspace : call.workspaces) {
    uint64_t address = base + workspace.offset;
    parameters.insert(parameters.end(), {address, address, 0});
    parameters.insert(parameters.end(), workspace.sizes.begin(),
                      workspace.sizes.end());
    size_t first = parameters.size();
    uint64_t stride = 1;
    for (size_t i = workspace.sizes.size(); i-- > 0;) {
      parameters.insert(parameters.begin() + first, stride);
      stride *= static_cast<uint64_t>(workspace.sizes[i]);
    }
  }
  return parameters;
}

std::string runtime::describeRelayouts(const Artifact &artifact,
                                       const LaunchCall &call) {
  std::string text;
  for (const RelayoutCall &relayout : call.relayouts)
    text += "'" + artifact.arguments[relayout.argument].name +
            (relayout.isOutput ? "' is copied after the kernel: "
                               : "' is copied first: ") +
            relayout.reason + "\n";
  return text;
}
