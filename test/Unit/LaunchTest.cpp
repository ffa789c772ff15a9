//===- x - LaunchTest.cpp - what the runtime tells the driver -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Runs with the fake driver in place of libcuda.so.1, GPU or not.
//
//===----------------------------------------------------------------------===//

#include "Inputs/FakeDriver.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Module.h"
#include "attn/Runtime/Stream.h"

#include "gtest/gtest.h"

#include <set>

using namespace attn;
using namespace attn::runtime;

namespace {
struct LaunchTest : testing::Test {
  LaunchTest() {
    *fakeRecord() = FakeRecord();
    *fakeThread() = FakeThread();
    artifact.name = "scale";
    artifact.target = "sm_80";
    artifact.ptx = ".entry scale_kernel";
    KernelInfo &kernel = artifact.variants[0].kernels.emplace_back();
    kernel.entry = "scale_kernel";
    kernel.results = {2};
    kernel.threads = 128;
    kernel.sharedBytes = 100000;
    ArgumentInfo in;
    in.name = "in";
    in.shape = {-1, 8};
    ArgumentInfo factor;
    factor.name = "factor";
    factor.isTensor = false;
    ArgumentInfo out = in;
    out.name = "out";
    out.isOutput = true;
    artifact.arguments = {in, factor, out};
    LaunchExpr rows, block;
    rows.kind = LaunchExpr::Kind::Dim;
    block.value = 4;
    kernel.grid[0].kind = LaunchExpr::Kind::CeilDiv;
    kernel.grid[0].operands = {rows, block};
    kernel.grid[1].value = kernel.grid[2].value = 1;
  }

  Arguments arguments() {
    return {Argument::tensor(data, 2, sizes, strides), Argument::scalar(2.0),
            Argument::tensor(out, 2, sizes, strides)};
  }

  Artifact artifact;
  alignas(16) float data[128] = {0};
  /// Far from all else, whatever the sizes; nobody looks there.
  float *out = reinterpret_cast<float *>(uintptr_t(1) << 44);
  int64_t sizes[2] = {10, 8};
  int64_t strides[2] = {12, 1};
};

/// What a module clears when it is loaded, if launches leave zeros behind.
constexpr int kReserved =
    StreamMemory::kCapturedBytes * StreamMemory::kMaxCaptured;
} // namespace

TEST_F(LaunchTest, DeviceIsThePrimaryContext) {
  Result<Device> device = Device::current();
  ASSERT_TRUE(device.ok()) << device.message();
  EXPECT_EQ(device->name, "Fake GPU");
  EXPECT_EQ(device->computeMajor, 9);
  EXPECT_EQ(device->sharedBytesPerBlock, 232448);
  EXPECT_EQ(device->driverVersion, 12040);
  EXPECT_EQ(fakeThread()->current, device->context);
  EXPECT_EQ(device->memory()->second, 2000u);
  EXPECT_EQ(Device::open(1).message(), "no GPU number 1: this process sees 1");
}

TEST_F(LaunchTest, OpeningLeavesTheCurrentContext) {
  CUcontext other = reinterpret_cast<CUcontext>(uintptr_t(77));
  for (CUcontext current : {CUcontext(), other}) {
    fakeThread()->current = current;
    Result<Device> device = Device::open(0);
    ASSERT_TRUE(device.ok()) << device.message();
    EXPECT_NE(device->context, other);
    EXPECT_TRUE(Module::load(*device, artifact).ok());
    EXPECT_EQ(fakeThread()->current, current);
  }
}

TEST_F(LaunchTest, PassesEverythingOn) {
  Result<Device> device = Device::current();
  Result<Module> module = Module::load(*device, artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->image(), Image::PTX);
  EXPECT_EQ(module->log(), "info: 12 registers");
  EXPECT_EQ(module->registers(), 77);
  EXPECT_EQ(module->localBytes(), 0);
  EXPECT_EQ(fakeRecord()->sharedLimit, 100000);
  fakeRecord()->parameters.resize(15);
  Status status =
      module->launch(arguments(), reinterpret_cast<CUstream>(uintptr_t(7)));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fakeRecord()->grid, (std::array<unsigned, 3>{3, 1, 1}));
  EXPECT_EQ(fakeRecord()->threads, 128u);
  EXPECT_EQ(fakeRecord()->shared, 100000u);
  EXPECT_EQ(fakeRecord()->stream, reinterpret_cast<CUstream>(uintptr_t(7)));
  uint64_t address = reinterpret_cast<uintptr_t>(data);
  uint64_t result = reinterpret_cast<uintptr_t>(out);
  std::vector<uint64_t> expected = {address, address,    0,      10,     8, 12,
                                    1,       0x40000000, result, result, 0, 10,
                                    8,       12,         1};
  EXPECT_EQ(fakeRecord()->parameters, expected);
}

TEST_F(LaunchTest, MakesTensorMaps) {
  artifact.arguments[0].element = ElementKind::BF16;
  artifact.arguments[0].shape = {-1, -1, -1, 8};
  artifact.arguments[0].alignment = 16;
  artifact.variants[0].kernels[0].tensorMaps = {{0, 64, 32, 64}};
  alignas(16) static uint16_t storage[4096];
  // One head: its stride says nothing, and is no multiple of 16 bytes.
  int64_t manySizes[4] = {2, 1, 10, 8}, manyStrides[4] = {160, 3, 16, 1};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  Arguments call = arguments();
  call[0] = Argument::tensor(storage, 4, manySizes, manyStrides);
  fakeRecord()->parameters.resize(20);
  Status status = module->launch(call, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(fakeRecord()->tensorMaps.size(), 1u);
  const FakeTensorMap &map = fakeRecord()->tensorMaps.front();
  EXPECT_EQ(map.type, 9);
  EXPECT_EQ(map.swizzle, 2);
  EXPECT_EQ(map.data, storage);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{8, 10, 1, 2}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{32, 16, 320}));
  EXPECT_EQ(map.box, (std::vector<unsigned>{32, 64, 1, 1}));
  // It is the last parameter.
  EXPECT_EQ(fakeRecord()->parameters.back(), 0u);

  // A tensor without elements shows zeros, in memory of the launch.
  EXPECT_EQ(*module->workspaceBytes(call), 0);
  manySizes[1] = 0;
  EXPECT_EQ(*module->workspaceBytes(call), 256);
  alignas(256) static unsigned char own[256];
  own[0] = 1;
  WorkspaceMemory given{own, sizeof(own)};
  ASSERT_TRUE(module->launch(call, nullptr, &given).ok());
  EXPECT_EQ(fakeRecord()->tensorMaps.back().sizes,
            (std::vector<uint64_t>{1, 1, 1, 1}));
  EXPECT_EQ(fakeRecord()->tensorMaps.back().data, own);
  EXPECT_EQ(own[0], 0);
}

// A scalar of 4 bytes, and a map that does not lie at a multiple of 64.
TEST_F(LaunchTest, PassesOneBuffer) {
  artifact.arguments[0].element = ElementKind::BF16;
  artifact.arguments[0].shape = {-1, -1, -1, 8};
  artifact.arguments[0].alignment = 16;
  artifact.variants[0].kernels[0].tensorMaps = {{0, 64, 32, 64}};
  alignas(16) static uint16_t storage[4096];
  int64_t manySizes[4] = {2, 3, 10, 8}, manyStrides[4] = {240, 80, 8, 1};
  Arguments call = arguments();
  call[0] = Argument::tensor(storage, 4, manySizes, manyStrides);
  constexpr size_t numWords = 11, numParameters = numWords + 1 + 7 + 1;
  auto launch = [&]() {
    fakeRecord()->tensorMaps.assign(1, {}); // the map's number is not 0
    Result<Module> module = Module::load(*Device::current(), artifact);
    EXPECT_TRUE(module.ok()) << module.message();
    for (double factor : {2.0, -4.0}) { // the second is a known launch
      call[1] = Argument::scalar(factor);
      fakeRecord()->parameters.assign(numParameters, 1);
      Status status = module->launch(call, nullptr);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return fakeRecord()->parameters;
  };
  std::vector<uint64_t> expected = launch();
  EXPECT_FALSE(fakeRecord()->isBuffered);
  EXPECT_EQ(expected[numWords], 0xc0800000u);
  EXPECT_EQ(expected.back(), 1u);

  std::vector<std::pair<size_t, size_t>> &layout = fakeRecord()->layout;
  for (size_t i = 0; i + 1 < numParameters; ++i)
    layout.push_back({8 * i, i == numWords ? 4 : 8});
  layout.push_back({176, 128});
  fakeRecord()->wrongParameters = 0;
  EXPECT_EQ(launch(), expected);
  EXPECT_TRUE(fakeRecord()->isBuffered);
  EXPECT_EQ(fakeRecord()->wrongParameters, 0);

  // What the driver says is not what is passed.
  layout.back().second = 64;
  EXPECT_EQ(launch(), expected);
  EXPECT_FALSE(fakeRecord()->isBuffered);
  layout.pop_back();
  EXPECT_EQ(launch(), expected);
  EXPECT_FALSE(fakeRecord()->isBuffered);
}

// Panels of 64 columns: their number stands after the row's.
TEST_F(LaunchTest, MakesTensorMapsOfPanels) {
  artifact.arguments[0].element = ElementKind::BF16;
  artifact.arguments[0].shape = {-1, -1, -1, 128};
  artifact.arguments[0].alignment = 16;
  artifact.variants[0].kernels[0].tensorMaps = {{0, 32, 64, 128, 2}};
  alignas(16) static uint16_t storage[6 * 10 * 128];
  int64_t sizes[4] = {2, 3, 10, 128}, strides[4] = {3840, 128, 384, 1};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  Arguments call = arguments();
  call[0] = Argument::tensor(storage, 4, sizes, strides);
  fakeRecord()->parameters.resize(20);
  Status status = module->launch(call, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(fakeRecord()->tensorMaps.size(), 1u);
  const FakeTensorMap &map = fakeRecord()->tensorMaps.front();
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{64, 10, 2, 3, 2}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{768, 128, 256, 7680}));
  EXPECT_EQ(map.box, (std::vector<unsigned>{64, 32, 2, 1, 1}));
}

// Rows of a workspace, which are not swizzled.
TEST_F(LaunchTest, MakesTensorMapsOfWorkspaces) {
  LaunchExpr rows, columns;
  rows.kind = LaunchExpr::Kind::Dim;
  columns.value = 36;
  artifact.variants[0].workspaces = {
      {ElementKind::F32, {rows, columns}, false}};
  artifact.variants[0].kernels[0].tensorMaps = {{3, 1, 64, 0}};
  fakeRecord()->parameters.resize(15 + 7 + 1);
  {
    Result<Module> module = Module::load(*Device::current(), artifact);
    ASSERT_TRUE(module.ok()) << module.message();
    Status status = module->launch(arguments(), nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(fakeRecord()->tensorMaps.size(), 1u);
    const FakeTensorMap &map = fakeRecord()->tensorMaps.front();
    EXPECT_EQ(map.type, 7);
    EXPECT_EQ(map.swizzle, 0);
    EXPECT_EQ(uint64_t(reinterpret_cast<uintptr_t>(map.data)),
              fakeRecord()->parameters[15]);
    EXPECT_EQ(map.sizes, (std::vector<uint64_t>{36, 10, 1, 1}));
    EXPECT_EQ(map.strides, (std::vector<uint64_t>{144, 16, 16}));
    EXPECT_EQ(map.box, (std::vector<unsigned>{64, 1, 1, 1}));
  }
  artifact.variants[0].workspaces[0].sizes[1].value = 33;
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->launch(arguments(), nullptr).message(),
            "a workspace has a stride of 132 bytes in dimension 0, its tensor "
            "map wants a multiple of 16");
}

TEST_F(LaunchTest, WorkspacesStandBehindTheArguments) {
  LaunchExpr rows, two;
  rows.kind = LaunchExpr::Kind::Dim;
  two.value = 2;
  artifact.variants[0].workspaces = {{ElementKind::I32, {rows, two}, false},
                                     {ElementKind::I64, {rows}, true}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(*module->workspaceBytes(arguments()), 512);
  fakeRecord()->parameters.resize(15 + 7 + 5);
  Status status = module->launch(arguments(), nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<uint64_t> &parameters = fakeRecord()->parameters;
  // What must be zero lies in front.
  uint64_t memory = parameters[22];
  EXPECT_EQ(std::vector<uint64_t>(parameters.begin() + 15, parameters.end()),
            (std::vector<uint64_t>{memory + 256, memory + 256, 0, 10, 2, 2, 1,
                                   memory, memory, 0, 10, 1}));
  EXPECT_EQ(fakeRecord()->orderedAllocations, 1);
  EXPECT_EQ(fakeRecord()->clearedBytes, 80);
  EXPECT_EQ(fakeRecord()->buffers, 0); // given back
  EXPECT_EQ(fakeRecord()->streamWaits, 0);

  // A driver without memory pools: the launch waits, and nothing stays.
  fakeRecord()->hasMemoryPools = false;
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->streamWaits, 1);
  EXPECT_EQ(fakeRecord()->buffers, 0);

  // The caller's own memory.
  alignas(256) static unsigned char own[512];
  WorkspaceMemory given{own, sizeof(own)};
  ASSERT_TRUE(module->launch(arguments(), nullptr, &given).ok());
  EXPECT_EQ(fakeRecord()->parameters[22], reinterpret_cast<uintptr_t>(own));
  given.bytes = 511;
  EXPECT_EQ(module->launch(arguments(), nullptr, &given).message(),
            "the workspace has 511 bytes, wanted 512");
  given = {own + 8, 512};
  EXPECT_EQ(module->launch(arguments(), nullptr, &given).message(),
            "the workspace is not aligned to 256 bytes");
}

TEST_F(LaunchTest, RestoredWorkspacesStayWithTheStream) {
  LaunchExpr one;
  one.value = 1;
  artifact.variants[0].workspaces = {{ElementKind::I32, {one}, true, true}};
  CUstream streams[] = {reinterpret_cast<CUstream>(uintptr_t(7)),
                        reinterpret_cast<CUstream>(uintptr_t(8))};
  {
    Result<Module> module = Module::load(*Device::current(), artifact);
    ASSERT_TRUE(module.ok()) << module.message();
    fakeRecord()->parameters.resize(15 + 5);
    std::vector<uint64_t> places;
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(module->launch(arguments(), streams[i % 2]).ok());
      places.push_back(fakeRecord()->parameters[15]);
    }
    EXPECT_EQ(places[0], places[4]);
    EXPECT_EQ(places[1], places[5]);
    EXPECT_NE(places[0], places[1]);
    // Once for each stream.
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved + 2 * 256);
    EXPECT_EQ(fakeRecord()->buffers, 1 + 2);
    EXPECT_EQ(fakeRecord()->orderedAllocations, 2);

    // The caller's own memory may hold anything.
    alignas(256) static unsigned char own[256];
    WorkspaceMemory given{own, sizeof(own)};
    ASSERT_TRUE(module->launch(arguments(), streams[0], &given).ok());
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved + 2 * 256 + 4);
    Module moved = std::move(*module);
    ASSERT_TRUE(moved.launch(arguments(), streams[0]).ok());
    EXPECT_EQ(fakeRecord()->parameters[15], places[0]);
  }
  EXPECT_EQ(fakeRecord()->buffers, 0);
  // The last launch may run on when its module goes.
  EXPECT_EQ(fakeRecord()->freedWhileRunning, 0);
}

TEST_F(LaunchTest, LaunchesInGraphsHaveZerosOfTheirOwn) {
  LaunchExpr one;
  one.value = 1;
  artifact.variants[0].workspaces = {{ElementKind::I32, {one}, true, true}};
  auto stream = reinterpret_cast<CUstream>(uintptr_t(7));
  {
    Result<Module> module = Module::load(*Device::current(), artifact);
    ASSERT_TRUE(module.ok()) << module.message();
    // Set aside, cleared and waited for, with nothing left behind.
    EXPECT_EQ(fakeRecord()->buffers, 1);
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved);
    EXPECT_EQ(fakeRecord()->streamWaits, 1);
    EXPECT_EQ(fakeRecord()->streams, 0);
    fakeRecord()->parameters.resize(15 + 5);
    fakeRecord()->isCapturing = true;
    std::set<uint64_t> places;
    for (size_t i = 0; i < StreamMemory::kMaxCaptured; ++i) {
      ASSERT_TRUE(module->launch(arguments(), stream).ok());
      places.insert(fakeRecord()->parameters[15]);
    }
    EXPECT_EQ(places.size(), StreamMemory::kMaxCaptured);
    EXPECT_EQ(*places.rbegin() - *places.begin(), kReserved - 256u);
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved);
    EXPECT_EQ(fakeRecord()->orderedAllocations, 0);

    // One more is cleared by the graph itself.
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved + 4);
    EXPECT_EQ(fakeRecord()->orderedAllocations, 1);
    fakeRecord()->isCapturing = false;
  }
  EXPECT_EQ(fakeRecord()->buffers, 0);

  // A module may come and go while somebody captures.
  fakeRecord()->isCapturing = true;
  ASSERT_TRUE(Module::load(*Device::current(), artifact).ok());
  EXPECT_EQ(fakeRecord()->clearedBytes, 2 * kReserved + 4);
  EXPECT_EQ(fakeThread()->captureMode, 0);
  EXPECT_EQ(fakeRecord()->modules, 0);
  EXPECT_EQ(fakeRecord()->buffers, 0);
  fakeRecord()->isCapturing = false;

  // Nothing is set aside for launches that ask for no zeros, or leave none.
  artifact.variants[0].workspaces[0].isRestored = false;
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(fakeRecord()->buffers, 0);
}

TEST_F(LaunchTest, NoTileIsDrawnWhereEachHasABlock) {
  LaunchExpr one, rows, multiprocessors, more, counters;
  one.value = 1;
  rows.kind = LaunchExpr::Kind::Dim;
  multiprocessors.kind = LaunchExpr::Kind::Multiprocessors;
  more.kind = LaunchExpr::Kind::Sub;
  more.operands = {rows, multiprocessors};
  counters.kind = LaunchExpr::Kind::Max;
  counters.operands = {LaunchExpr(), more};
  more = counters;
  counters.kind = LaunchExpr::Kind::Min;
  counters.operands = {more, one};
  artifact.variants[0].workspaces = {
      {ElementKind::I32, {counters}, true, true}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  sizes[0] = 132; // as many as the fake GPU has
  EXPECT_EQ(*module->workspaceBytes(arguments()), 0);
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->clearedBytes, kReserved);
  EXPECT_EQ(fakeRecord()->orderedAllocations, 0);
  ++sizes[0];
  EXPECT_EQ(*module->workspaceBytes(arguments()), 256);
}

TEST_F(LaunchTest, WhatNeedNotBeZeroStaysToo) {
  LaunchExpr one, rows;
  one.value = 1;
  rows.kind = LaunchExpr::Kind::Dim;
  artifact.variants[0].workspaces = {{ElementKind::I32, {rows, rows}, false},
                                     {ElementKind::I32, {one}, true, true}};
  auto stream = reinterpret_cast<CUstream>(uintptr_t(7));
  {
    Result<Module> module = Module::load(*Device::current(), artifact);
    ASSERT_TRUE(module.ok()) << module.message();
    fakeRecord()->parameters.resize(15 + 7 + 5);
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    uint64_t place = fakeRecord()->parameters[22];
    EXPECT_EQ(fakeRecord()->parameters[15], place + 256);
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    EXPECT_EQ(fakeRecord()->parameters[22], place);
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved + 256);
    EXPECT_EQ(fakeRecord()->orderedAllocations, 1);

    // A larger piece takes the place of one that is too small,
    sizes[0] = 100;
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    EXPECT_EQ(fakeRecord()->orderedAllocations, 2);
    EXPECT_EQ(fakeRecord()->buffers, 1 + 1);
    EXPECT_EQ(fakeRecord()->clearedBytes, kReserved + 2 * 256);
    sizes[0] = 10;
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    EXPECT_EQ(fakeRecord()->orderedAllocations, 2);

    // and what is larger than a piece may be does not stay.
    sizes[0] = 1000;
    ASSERT_TRUE(module->launch(arguments(), stream).ok());
    EXPECT_EQ(fakeRecord()->orderedAllocations, 3);
    EXPECT_EQ(fakeRecord()->buffers, 1 + 1);
  }
  EXPECT_EQ(fakeRecord()->buffers, 0);
}

TEST_F(LaunchTest, CopiesStandAroundTheKernels) {
  artifact.arguments[0].alignment = artifact.arguments[2].alignment = 16;
  artifact.relayouts = {{"scale_relayout32", 4, 256, 16}};
  EXPECT_EQ(Module::load(*Device::current(), artifact).message(),
            "finding the kernel 'scale_relayout32' failed: CUDA_ERROR_OTHER "
            "(fake)");
  artifact.ptx += " .entry scale_relayout32";
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(*module->describeLaunch(arguments()), "");
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(module->relayouts(), 0);
  fakeRecord()->grids.clear();
  strides[0] = 9;
  EXPECT_EQ(*module->workspaceBytes(arguments()), 2 * 512);
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->grids, (std::vector<std::array<unsigned, 3>>{
                                     {5, 1, 1}, {3, 1, 1}, {5, 1, 1}}));
  EXPECT_EQ(fakeRecord()->threads, 256u);
  EXPECT_EQ(module->relayouts(), 2);
  EXPECT_EQ(fakeRecord()->buffers, 0);
  EXPECT_NE(module->describeLaunch(arguments())->find("'out' is copied"),
            std::string::npos);
  Module moved = std::move(*module);
  EXPECT_EQ(moved.relayouts(), 2);
}

TEST_F(LaunchTest, KernelsRunInOrder) {
  KernelInfo first = artifact.variants[0].kernels[0];
  first.entry = "prepare";
  first.results = {};
  first.threads = 32;
  LaunchExpr multiprocessors;
  multiprocessors.kind = LaunchExpr::Kind::Multiprocessors;
  first.grid[0] = multiprocessors;
  artifact.variants[0].kernels.insert(artifact.variants[0].kernels.begin(),
                                      first);
  EXPECT_FALSE(Module::load(*Device::current(), artifact).ok());
  artifact.ptx += " .entry prepare";
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  ASSERT_EQ(fakeRecord()->grids.size(), 2u);
  EXPECT_EQ(fakeRecord()->grids[0], (std::array<unsigned, 3>{132, 1, 1}));
  EXPECT_EQ(fakeRecord()->grids[1], (std::array<unsigned, 3>{3, 1, 1}));
  EXPECT_EQ(fakeRecord()->threads, 128u);
}

// The first one of a launch follows what others launched, who may not have
// waited for all that was launched before.
TEST_F(LaunchTest, KernelsStartEarly) {
  std::vector<KernelInfo> &kernels = artifact.variants[0].kernels;
  kernels[0].startsEarly = true;
  kernels.insert(kernels.end(), 2, kernels[0]);
  kernels[1].startsEarly = false;
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  for (int launch = 0; launch < 2; ++launch)
    ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->launches, 6);
  EXPECT_EQ(fakeRecord()->earlyLaunches, (std::vector<int>{2, 5}));
  // Of no blocks is no kernel; the next one is the first.
  fakeRecord()->earlyLaunches.clear();
  kernels[0].grid[1].value = 0;
  kernels[1].startsEarly = true;
  module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->earlyLaunches, std::vector<int>{7});
  // The kernel after one that is left out waits for all: it may be one that
  // runs beside that, which would have waited for those before.
  fakeRecord()->earlyLaunches.clear();
  kernels[0].grid[1].value = 1;
  kernels[1].grid[1].value = 0;
  module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  ASSERT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->launches, 10);
  EXPECT_EQ(fakeRecord()->earlyLaunches, std::vector<int>());
}

// Rows are those of a query, [1, 1, rows, 8].
TEST_F(LaunchTest, TheRulePicksTheVariant) {
  artifact.arguments[0].roles = {ArgumentRole::Query};
  for (ArgumentInfo *info : {&artifact.arguments[0], &artifact.arguments[2]})
    info->shape = {-1, -1, -1, 8};
  VariantInfo &first = artifact.variants[0];
  first.kernels[0].grid[0].operands[0].value = 2; // the dimension
  VariantInfo other = first;
  other.kernels[0].entry = "other_kernel";
  other.kernels[0].threads = 256;
  other.workspaces = {{ElementKind::I32, {LaunchExpr()}, true, true}};
  other.workspaces[0].sizes[0].value = 5;
  artifact.variants.push_back(other);
  std::string error;
  artifact.rule = *VariantRule::parse(
      "query_length <= 16 and batch_heads <= 2 * multiprocessors -> 0; 1",
      error);
  artifact.ptx += " .entry other_kernel";
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();

  int64_t shape[4] = {1, 1, 16, 8}, steps[4] = {192, 192, 12, 1};
  Arguments values = {Argument::tensor(data, 4, shape, steps),
                      Argument::scalar(2.0),
                      Argument::tensor(out, 4, shape, steps)};
  struct {
    int64_t heads, rows;
    unsigned threads;
    int64_t workspaceBytes;
    const char *reason;
  } cases[] = {
      {1, 16, 128, 0,
       "query_length <= 16 and batch_heads <= 2 * multiprocessors, with "
       "query_length = 16, batch_heads = 1, multiprocessors = 132"},
      {1, 17, 256, 256,
       "no condition holds, with query_length = 17, batch_heads = 1, "
       "multiprocessors = 132"},
      {265, 16, 256, 256,
       "no condition holds, with query_length = 16, batch_heads = 265, "
       "multiprocessors = 132"}};
  for (const auto &expected : cases) {
    shape[1] = expected.heads;
    shape[2] = expected.rows;
    steps[0] = steps[1] * shape[1];
    EXPECT_EQ(*module->workspaceBytes(values), expected.workspaceBytes);
    Result<VariantChoice> choice = module->chooseVariant(values);
    ASSERT_TRUE(choice.ok()) << choice.message();
    EXPECT_EQ(choice->variant, expected.threads == 256 ? 1u : 0u);
    EXPECT_EQ(choice->reason, expected.reason);
    Status status = module->launch(values, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(fakeRecord()->threads, expected.threads);
    EXPECT_EQ(fakeRecord()->grid[0], unsigned(expected.rows + 3) / 4);
  }

  shape[1] = 1;
  ASSERT_EQ(artifact.fixVariant(1), "");
  Result<Module> fixed = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(fixed->launch(values, nullptr).ok());
  EXPECT_EQ(fakeRecord()->threads, 256u);
  EXPECT_EQ(fixed->chooseVariant(values)->reason, "");
}

TEST_F(LaunchTest, AnEmptyGridIsNotLaunched) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  sizes[0] = 0;
  EXPECT_TRUE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->launches, 0);
}

// Nor is one with more blocks of nothing than the device counts.
TEST_F(LaunchTest, ManyBatchesOfNothing) {
  artifact.arguments[0].shape = artifact.arguments[2].shape = {-1, -1};
  artifact.variants[0].workspaces = {
      {ElementKind::I64, artifact.variants[0].kernels[0].grid[0].operands,
       true}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  sizes[0] = int64_t(1) << 60;
  sizes[1] = 0;
  Status status = module->launch(arguments(), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*module->workspaceBytes(arguments()), 0);
  EXPECT_EQ(fakeRecord()->launches, 0);
}

TEST_F(LaunchTest, WrongArgumentsAreNotLaunched) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  sizes[1] = 9;
  EXPECT_FALSE(module->launch(arguments(), nullptr).ok());
  EXPECT_EQ(fakeRecord()->launches, 0);
}

TEST_F(LaunchTest, AThreadWithoutAContextGetsTheModules) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  fakeThread()->current = nullptr;
  Status status = module->launch(arguments(), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fakeThread()->current, nullptr);
  EXPECT_EQ(fakeThread()->pushes, 0);
}

TEST_F(LaunchTest, ErrorsOfLoading) {
  Device device = *Device::current();
  Artifact broken = artifact;
  broken.ptx = "scale_kernel nonsense";
  EXPECT_EQ(Module::load(device, broken).message(),
            "compiling the PTX in the driver failed: CUDA_ERROR_INVALID_PTX "
            "(fake): line 3: nonsense");
  broken = artifact;
  broken.variants[0].kernels.clear();
  EXPECT_EQ(Module::load(*Device::current(), broken).message(),
            "artifact 'scale' has no kernel");
  broken = artifact;
  broken.variants[0].kernels[0].entry = "other";
  EXPECT_EQ(Module::load(device, broken).message(),
            "finding the kernel 'other' failed: CUDA_ERROR_OTHER (fake)");
  broken = artifact;
  broken.variants[0].kernels[0].sharedBytes = 232449;
  EXPECT_EQ(
      Module::load(device, broken).message(),
      "kernel 'scale_kernel' wants 232449 bytes of shared memory per block, "
      "Fake GPU has 232448");
  broken = artifact;
  broken.variants[0].kernels[0].threads = 2048;
  EXPECT_EQ(
      Module::load(device, broken).message(),
      "kernel 'scale_kernel' wants 2048 threads per block, the device can give "
      "it 1 to 1024");
  EXPECT_EQ(fakeRecord()->modules, 0);
}

TEST_F(LaunchTest, EverythingIsReleased) {
  Device device = *Device::current();
  {
    Result<Module> module = Module::load(device, artifact);
    Module moved = std::move(*module);
    Result<Buffer> buffer = Buffer::allocate(device, 64);
    Result<Buffer> other = Buffer::allocate(device, 32);
    *other = std::move(*buffer);
    Result<Stream> stream = Stream::create(device);
    Result<Event> start = Event::create(device), stop = Event::create(device);
    EXPECT_EQ(*stop->millisecondsSince(*start), 1.5f);
    EXPECT_EQ(fakeRecord()->modules, 1);
    EXPECT_EQ(fakeRecord()->buffers, 2);
    EXPECT_EQ(fakeRecord()->streams, 1);
    EXPECT_EQ(fakeRecord()->events, 2);
  }
  EXPECT_EQ(fakeRecord()->modules, 0);
  EXPECT_EQ(fakeRecord()->buffers, 0);
  EXPECT_EQ(fakeRecord()->streams, 0);
  EXPECT_EQ(fakeRecord()->events, 0);
}

TEST_F(LaunchTest, BuffersCopy) {
  Device device = *Device::current();
  Result<Buffer> buffer = Buffer::allocate(device, 4);
  ASSERT_TRUE(buffer.ok());
  int value = 42, back = 0;
  EXPECT_TRUE(buffer->copyFrom(&value).ok());
  EXPECT_TRUE(buffer->copyTo(&back).ok());
  EXPECT_EQ(back, 42);
  EXPECT_TRUE(buffer->fill(0xff).ok());
  EXPECT_TRUE(buffer->copyTo(&back).ok());
  EXPECT_EQ(back, -1);
  EXPECT_EQ(Buffer::allocate(device, 0)->data(), nullptr);
  EXPECT_EQ(Buffer::allocate(device, size_t(1) << 41).message(),
            "cuMemAlloc failed: CUDA_ERROR_OTHER (fake) for 2199023255552 "
            "bytes");
}
