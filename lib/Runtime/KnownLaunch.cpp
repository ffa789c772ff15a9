//===- KnownLaunch.cpp - launches that were prepared before --- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/KnownLaunch.h"

#include "attn/Runtime/Overlap.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

using namespace attn;
using namespace attn::runtime;

//===----------------------------------------------------------------------===//
// Packed launches
//===----------------------------------------------------------------------===//

PackedLaunch::PackedLaunch(LaunchCall prepared) : call(std::move(prepared)) {
  slots = kernelParameters(call, nullptr);
  for (const KernelCall &info : call.kernels) {
    Kernel &kernel = kernels.emplace_back();
    kernel.maps.resize(info.tensorMaps.size());
    for (uint64_t &slot : slots)
      kernel.parameters.push_back(&slot);
    kernel.parameters.resize(slots.size() + kernel.maps.size());
  }
}

void PackedLaunch::place(void *memory) {
  auto base = reinterpret_cast<uintptr_t>(memory);
  for (const RelayoutCall &relayout : call.relayouts)
    slots[relayout.slot] = slots[relayout.slot + 1] =
        base + relayout.place.offset;
  size_t slot = call.parameters.size();
  for (const WorkspaceCall &workspace : call.workspaces) {
    slots[slot] = slots[slot + 1] = base + workspace.offset;
    slot += 3 + 2 * workspace.sizes.size();
  }
}

//===----------------------------------------------------------------------===//
// Known launches
//===----------------------------------------------------------------------===//

static void findScalars(const LaunchExpr &expr, std::vector<bool> &found) {
  if (expr.kind == LaunchExpr::Kind::Scalar)
    found[expr.argument] = true;
  for (const LaunchExpr &operand : expr.operands)
    findScalars(operand, found);
}

// The arguments whose values decide more than parameters.
static std::vector<bool> countedScalars(const Artifact &artifact) {
  std::vector<bool> found(artifact.arguments.size(), false);
  for (const LaunchCheck &check : artifact.checks) {
    findScalars(check.lhs, found);
    findScalars(check.rhs, found);
  }
  for (const VariantInfo &variant : artifact.variants) {
    for (const WorkspaceInfo &workspace : variant.workspaces)
      for (const LaunchExpr &size : workspace.sizes)
        findScalars(size, found);
    for (const KernelInfo &kernel : variant.kernels)
      for (const LaunchExpr &blocks : kernel.grid)
        findScalars(blocks, found);
  }
  return found;
}

// Bits that are 0 in the addresses of a tensor.
static uint64_t alignmentMask(const ArgumentInfo &info) {
  return static_cast<uint64_t>(
             std::max(info.alignment, elementBytes(info.element))) -
         1;
}

std::unique_ptr<KnownLaunch> KnownLaunch::make(const Artifact &artifact,
                                               ArgumentSpan arguments,
                                               LaunchCall &call) {
  bool isFit = call.relayouts.empty();
  for (size_t i = 0; i < arguments.size() && isFit; ++i)
    isFit = (alignmentMask(artifact.arguments[i]) &
             (alignmentMask(artifact.arguments[i]) + 1)) == 0;
  if (!isFit)
    return nullptr;
  std::unique_ptr<KnownLaunch> known(new KnownLaunch(std::move(call)));
  known->addArguments(artifact, arguments);
  known->addPairs(artifact);
  known->addMaps(artifact);
  return known;
}

void KnownLaunch::addArguments(const Artifact &artifact,
                               ArgumentSpan arguments) {
  std::vector<bool> counted = countedScalars(artifact);
  size_t slot = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &info = artifact.arguments[i];
    const Argument &argument = arguments[i];
    if (!info.isTensor) {
      scalars.push_back({i, slot++, counted[i], argument});
      continue;
    }
    Tensor &tensor = tensors.emplace_back();
    tensor.argument = i;
    tensor.rank = static_cast<size_t>(argument.rank);
    tensor.shape = shapes.size();
    tensor.slot = slot;
    tensor.alignmentMask = alignmentMask(info);
    slot += 3 + 2 * static_cast<size_t>(info.rank());
    auto insert = [&](const int64_t *numbers) {
      shapes.insert(shapes.end(), numbers, numbers + tensor.rank);
    };
    insert(argument.sizes);
    insert(argument.strides);
    tensor.isEmpty =
        std::count(argument.sizes, argument.sizes + tensor.rank, 0) != 0;
    tensor.data = argument.data;
    int64_t bytes = elementBytes(info.element);
    tensor.bytes = bytes;
    // No overflow: the strides were checked.
    for (size_t k = 0; k < tensor.rank && !tensor.isEmpty; ++k) {
      int64_t last = argument.sizes[k] - 1;
      int64_t span = last == 0 ? 0 : last * argument.strides[k] * bytes;
      tensor.begin += std::min<int64_t>(span, 0);
      tensor.bytes += std::abs(span);
    }
  }
}

// As checkApart() in Arguments.cpp asks for them.
void KnownLaunch::addPairs(const Artifact &artifact) {
  auto isResult = [&](const Tensor &tensor) {
    return artifact.arguments[tensor.argument].isOutput;
  };
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t k = 0; k < tensors.size(); ++k) {
      bool isAsked =
          isResult(tensors[i]) && k != i && !(isResult(tensors[k]) && k < i);
      if (isAsked && !tensors[i].isEmpty && !tensors[k].isEmpty)
        pairs.push_back({i, k, false, 0});
    }
}

void KnownLaunch::addMaps(const Artifact &artifact) {
  const VariantInfo &variant = artifact.variants[launch.call.variant];
  for (size_t i = 0; i < launch.call.kernels.size(); ++i)
    for (size_t m = 0; m < launch.call.kernels[i].tensorMaps.size(); ++m)
      if (!launch.call.kernels[i].tensorMaps[m].offset)
        maps.push_back(
            {i, m,
             static_cast<size_t>(variant.kernels[i].tensorMaps[m].argument)});
}

static bool isSame(const Argument &a, const Argument &b) {
  return a.kind == b.kind && a.integer == b.integer &&
         std::memcmp(&a.real, &b.real, sizeof(a.real)) == 0;
}

bool KnownLaunch::fits(const Tensor &tensor, const Argument &argument) const {
  if (argument.kind != Argument::Kind::Tensor ||
      argument.rank != static_cast<int64_t>(tensor.rank) ||
      (tensor.rank != 0 && (!argument.sizes || !argument.strides)))
    return false;
  // Without a branch for each of the few dimensions.
  const int64_t *sizes = shapes.data() + tensor.shape,
                *strides = sizes + tensor.rank;
  int64_t difference = 0;
  for (size_t i = 0; i < tensor.rank; ++i)
    difference |=
        (argument.sizes[i] ^ sizes[i]) | (argument.strides[i] ^ strides[i]);
  auto address = reinterpret_cast<uintptr_t>(argument.data);
  bool isPlaced = address != 0 && (address & tensor.alignmentMask) == 0;
  return difference == 0 && (isPlaced || tensor.isEmpty);
}

bool KnownLaunch::areApart(const Artifact &artifact, ArgumentSpan arguments,
                           Pair &pair) {
  const Tensor &result = tensors[pair.result], &other = tensors[pair.other];
  const Argument &a = arguments[result.argument],
                 &b = arguments[other.argument];
  uint64_t first = reinterpret_cast<uintptr_t>(a.data) +
                   static_cast<uint64_t>(result.begin),
           second = reinterpret_cast<uintptr_t>(b.data) +
                    static_cast<uint64_t>(other.begin);
  // The ranges of addresses, modulo 2^64 as in `overlap`.
  if (second - first >= static_cast<uint64_t>(result.bytes) &&
      first - second >= static_cast<uint64_t>(other.bytes))
    return true;
  if (pair.isKnown && pair.distance == second - first)
    return true;
  auto bytes = [&](const Tensor &tensor) {
    return elementBytes(artifact.arguments[tensor.argument].element);
  };
  if (overlap(a, bytes(result), b, bytes(other)))
    return false;
  pair.isKnown = true;
  pair.distance = second - first;
  return true;
}

bool KnownLaunch::write(const Artifact &artifact, Scalar &scalar,
                        const Argument &value) {
  if (scalar.isFixed)
    return false;
  Result<uint64_t> bits =
      scalarBits(value, artifact.arguments[scalar.argument].element);
  if (!bits.ok())
    return false;
  launch.slots[scalar.slot] = *bits;
  scalar.value = value;
  return true;
}

void KnownLaunch::move(ArgumentSpan arguments) {
  for (Tensor &tensor : tensors) {
    tensor.data = arguments[tensor.argument].data;
    launch.slots[tensor.slot] = launch.slots[tensor.slot + 1] =
        reinterpret_cast<uintptr_t>(tensor.data);
  }
  for (const Map &map : maps)
    launch.call.kernels[map.kernel].tensorMaps[map.number].data =
        arguments[map.argument].data;
  launch.filledAt.reset();
}

// What stands in the parameters was right: only what differs is looked at.
bool KnownLaunch::update(const Artifact &artifact, ArgumentSpan arguments) {
  if (arguments.size() != tensors.size() + scalars.size())
    return false;
  bool isMoved = false;
  for (const Tensor &tensor : tensors) {
    const Argument &argument = arguments[tensor.argument];
    if (!fits(tensor, argument))
      return false;
    isMoved |= argument.data != tensor.data;
  }
  for (size_t i = 0; i < pairs.size() && isMoved; ++i)
    if (!areApart(artifact, arguments, pairs[i]))
      return false;
  for (Scalar &scalar : scalars) {
    const Argument &value = arguments[scalar.argument];
    if (!isSame(scalar.value, value) && !write(artifact, scalar, value))
      return false;
  }
  if (isMoved)
    move(arguments);
  return true;
}

//===----------------------------------------------------------------------===//
// Those of a thread
//===----------------------------------------------------------------------===//

KnownLaunches &KnownLaunches::here() {
  thread_local KnownLaunches launches;
  return launches;
}

uint64_t KnownLaunches::nextModule() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

KnownLaunches::Set &KnownLaunches::setOf(uint64_t module,
                                         ArgumentSpan arguments) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15; // 2^64 over phi
  uint64_t hash = module;
  for (const Argument &argument : arguments)
    if (argument.kind == Argument::Kind::Tensor)
      for (int64_t i = 0; i < argument.rank; ++i)
        hash = (hash ^ static_cast<uint64_t>(argument.sizes[i])) * kMultiplier;
  static_assert(kSets == 16);
  return sets[hash >> 60];
}

// Whether sizes and strides can be read.
static bool haveRanks(const Artifact &artifact, ArgumentSpan arguments) {
  if (arguments.size() != artifact.arguments.size())
    return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &info = artifact.arguments[i];
    const Argument &argument = arguments[i];
    bool isTensor = argument.kind == Argument::Kind::Tensor;
    if (isTensor != info.isTensor)
      return false;
    if (isTensor &&
        (argument.rank != static_cast<int64_t>(info.shape.size()) ||
         (argument.rank != 0 && (!argument.sizes || !argument.strides))))
      return false;
  }
  return true;
}

KnownLaunch *KnownLaunches::find(uint64_t module, const Artifact &artifact,
                                 ArgumentSpan arguments) {
  auto isFound = [&](const Entry &entry) {
    return entry.module == module && entry.launch->update(artifact, arguments);
  };
  Entry *&last = latest[module % kModules];
  if (last && isFound(*last))
    return last->launch.get();
  if (!haveRanks(artifact, arguments))
    return nullptr;
  for (Entry &entry : setOf(module, arguments).entries)
    if (&entry != last && isFound(entry)) {
      last = &entry;
      return entry.launch.get();
    }
  return nullptr;
}

KnownLaunch &KnownLaunches::keep(uint64_t module, ArgumentSpan arguments,
                                 std::unique_ptr<KnownLaunch> launch) {
  Set &set = setOf(module, arguments);
  Entry &entry = set.entries[set.next];
  set.next = (set.next + 1) % kWays;
  entry = {module, std::move(launch)};
  latest[module % kModules] = &entry;
  return *entry.launch;
}
