//===- x - KnownLaunchTest.cpp - launches that were prepared before -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch like an earlier one takes a shorter way: to the same parameters, and
// the same errors. On the fake driver.
//
//===----------------------------------------------------------------------===//

#include "Inputs/FakeDriver.h"
#include "attn/Runtime/Module.h"

#include "gtest/gtest.h"

#include <random>

using namespace attn;
using namespace attn::runtime;

namespace {
struct KnownLaunchTest : testing::Test {
  KnownLaunchTest() {
    *fakeRecord() = FakeRecord();
    *fakeThread() = FakeThread();
    artifact.name = "scale";
    artifact.target = "sm_90a";
    artifact.ptx = ".entry scale_kernel .entry scale_relayout16";
    ArgumentInfo in;
    in.name = "in";
    in.element = ElementKind::BF16;
    in.shape = {-1, 8};
    in.alignment = 16;
    ArgumentInfo count;
    count.name = "count";
    count.element = ElementKind::I32;
    count.isTensor = false;
    ArgumentInfo factor = count;
    factor.name = "factor";
    factor.element = ElementKind::I8;
    ArgumentInfo out = in;
    out.name = "out";
    out.isOutput = true;
    ArgumentInfo sum = out;
    sum.name = "sum";
    sum.element = ElementKind::F32;
    sum.shape = {-1};
    sum.alignment = 0;
    artifact.arguments = {in, count, factor, out, sum};
    KernelInfo &kernel = artifact.variants[0].kernels.emplace_back();
    kernel.entry = "scale_kernel";
    kernel.results = {3, 4};
    kernel.threads = 128;
    LaunchExpr rows, counted;
    rows.kind = LaunchExpr::Kind::Dim;
    counted.kind = LaunchExpr::Kind::Scalar;
    counted.argument = 1;
    kernel.grid[0].kind = LaunchExpr::Kind::Max;
    kernel.grid[0].operands = {rows, counted};
    kernel.grid[1].value = kernel.grid[2].value = 1;
    kernel.tensorMaps = {{0, 8, 8, 0}, {3, 8, 8, 0}};
    artifact.variants[0].workspaces = {{ElementKind::I32, {rows}, true, true}};
    artifact.relayouts = {{"scale_relayout16", 2, 256, 16}};
    LaunchExpr outRows = rows;
    outRows.argument = 3;
    artifact.checks = {{rows, outRows, "rows of 'in' and 'out'"}};
  }

  void launchAtRandom(bool isBuffered);
  Arguments arguments(void *in, void *out, void *sum) {
    return {Argument::tensor(in, 2, sizes, strides),
            Argument::scalar(int64_t(3)), Argument::scalar(int64_t(4)),
            Argument::tensor(out, 2, sizes, strides),
            Argument::tensor(sum, 1, sizes, strides + 1)};
  }

  static void *at(uint64_t address) {
    return reinterpret_cast<void *>(address);
  }

  Artifact artifact;
  int64_t sizes[2] = {10, 8}, strides[2] = {16, 1};
};
} // namespace

TEST_F(KnownLaunchTest, MapsAreMadeOnceForAnAddress) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20, d = 4 << 20;
  auto launch = [&](uint64_t in, uint64_t out) {
    Status status = module->launch(arguments(at(in), at(out), at(c)), nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
  };
  std::vector<FakeTensorMap> &maps = fakeRecord()->tensorMaps;
  launch(a, b);
  ASSERT_EQ(maps.size(), 2u);
  launch(a, b);
  EXPECT_EQ(maps.size(), 2u);
  launch(d, b);
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[2].data, at(d));
  EXPECT_EQ(maps[2].sizes, maps[0].sizes);
  EXPECT_EQ(fakeRecord()->launches, 3);
  // The first of several in turn are still there, the oldest of many is not.
  fakeRecord()->parameters.resize(7 + 1 + 1 + 7 + 5 + 5 + 1);
  auto mapOf = [&](uint64_t in) {
    launch(in, b);
    return fakeRecord()->parameters.back();
  };
  EXPECT_EQ(mapOf(a), 0u);
  EXPECT_EQ(mapOf(d), 2u);
  for (uint64_t i = 1; i <= 6; ++i)
    EXPECT_EQ(mapOf(d + (i << 20)), 2 + i);
  EXPECT_EQ(mapOf(d + (6 << 20)), 8u);
  EXPECT_EQ(mapOf(a), 0u);
  EXPECT_EQ(maps.size(), 9u);
  EXPECT_EQ(mapOf(d + (7 << 20)), 9u);
  EXPECT_EQ(mapOf(d), 2u);
  EXPECT_EQ(mapOf(a), 10u);
  EXPECT_EQ(maps.back().data, at(a));
  maps.clear();
  fakeRecord()->parameters.clear();
  // Another module knows nothing of that.
  std::vector<Module> others;
  for (size_t i = 1; i <= 40; ++i) {
    others.push_back(std::move(*Module::load(*Device::current(), artifact)));
    Arguments values = arguments(at(d), at(b), at(c));
    ASSERT_TRUE(others.back().launch(values, nullptr).ok());
    EXPECT_EQ(maps.size(), 2 * i);
  }
}

// What was right once does not excuse what is wrong now.
TEST_F(KnownLaunchTest, ErrorsStay) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20;
  Arguments good = arguments(at(a), at(b), at(c));
  int64_t moreSizes[2] = {11, 8}, zeroStrides[2] = {0, 1};
  struct {
    const char *what;
    size_t number;
    Argument value;
  } cases[] = {
      {"null", 0, Argument::tensor(nullptr, 2, sizes, strides)},
      {"odd address", 0, Argument::tensor(at(a + 1), 2, sizes, strides)},
      {"rank", 0, Argument::tensor(at(a), 3, sizes, strides)},
      {"large rank", 0,
       Argument::tensor(at(a), int64_t(1) << 60, sizes, strides)},
      {"no sizes", 3, Argument::tensor(at(b), 2, nullptr, strides)},
      {"no strides", 3, Argument::tensor(at(b), 2, sizes, nullptr)},
      {"sizes disagree", 3, Argument::tensor(at(b), 2, moreSizes, strides)},
      {"strides", 3, Argument::tensor(at(b), 2, sizes, zeroStrides)},
      {"overlap", 3, Argument::tensor(at(a), 2, sizes, strides)},
      {"last byte", 4,
       Argument::tensor(at(a + 9 * 32 + 12), 1, sizes, strides + 1)},
      {"a result on another", 4,
       Argument::tensor(at(b), 1, sizes, strides + 1)},
      {"kind", 0, Argument::scalar(int64_t(1))},
      {"kind of a scalar", 1, good[0]},
      {"a real", 1, Argument::scalar(1.0)},
      {"does not fit", 2, Argument::scalar(int64_t(256))},
      {"grid", 1, Argument::scalar(int64_t(1) << 31)},
  };
  for (const auto &wrong : cases) {
    ASSERT_TRUE(module->launch(good, nullptr).ok());
    int launches = fakeRecord()->launches;
    Arguments values = good;
    values[wrong.number] = wrong.value;
    std::string message = prepareLaunch(artifact, values, 132).message();
    EXPECT_NE(message, "") << wrong.what;
    EXPECT_EQ(module->launch(values, nullptr).message(), message) << wrong.what;
    EXPECT_EQ(fakeRecord()->launches, launches) << wrong.what;
  }
  Arguments fewer(good.begin(), good.end() - 1);
  EXPECT_EQ(module->launch(fewer, nullptr).message(),
            prepareLaunch(artifact, fewer, 132).message());
}

// Rows of 8 of 16 elements: a result may lie in the gaps of an argument, and
// only there.
TEST_F(KnownLaunchTest, InterleavedTensors) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  constexpr uint64_t a = 1 << 20, c = 3 << 20;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(
        module->launch(arguments(at(a), at(a + 16), at(c)), nullptr).ok());
    EXPECT_TRUE(
        module->launch(arguments(at(a + 64), at(a + 80), at(c)), nullptr).ok());
    EXPECT_EQ(
        module->launch(arguments(at(a), at(a + 32), at(c)), nullptr).message(),
        "argument 3 ('out') overlaps argument 0 ('in'): a result needs memory "
        "of its own");
  }
}

// A tensor that lies otherwise than before is copied.
TEST_F(KnownLaunchTest, AddressesThatKernelsDoNotTake) {
  Result<Module> module = Module::load(*Device::current(), artifact);
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20;
  EXPECT_TRUE(module->launch(arguments(at(a), at(b), at(c)), nullptr).ok());
  EXPECT_EQ(module->relayouts(), 0);
  EXPECT_TRUE(module->launch(arguments(at(a + 2), at(b), at(c)), nullptr).ok());
  EXPECT_EQ(module->relayouts(), 1);
  EXPECT_TRUE(module->launch(arguments(at(a), at(b), at(c)), nullptr).ok());
  EXPECT_EQ(module->relayouts(), 1);
}

// What lies in the memory of a launch moves with it, tensors or not.
TEST_F(KnownLaunchTest, MemoryMoves) {
  KernelInfo &kernel = artifact.variants[0].kernels[0];
  WorkspaceInfo rows = artifact.variants[0].workspaces[0];
  rows.element = ElementKind::F32;
  rows.sizes.emplace_back().value = 8;
  artifact.variants[0].workspaces = {rows};
  kernel.tensorMaps = {{0, 8, 8, 0}, {5, 8, 8, 0}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20, d = 4 << 20;
  alignas(256) static unsigned char own[2][1024];
  std::vector<FakeTensorMap> &maps = fakeRecord()->tensorMaps;
  std::vector<uint64_t> &parameters = fakeRecord()->parameters;
  for (int round = 0; round < 12; ++round) {
    int piece = round / 2 % 2;
    uint64_t in = round / 4 % 2 ? d : a;
    Arguments values = arguments(at(in), at(b), at(c));
    values[2].integer = 4 + round % 3;
    WorkspaceMemory memory{own[piece], sizeof(own[piece])};
    parameters.assign(7 + 1 + 1 + 7 + 5 + 7 + 2, 0);
    Status status = module->launch(values, nullptr, &memory);
    ASSERT_TRUE(status.ok()) << status.message();
    uint64_t workspaceMap = parameters.back();
    parameters.pop_back();
    uint64_t inMap = parameters.back();
    parameters.pop_back();
    EXPECT_EQ(parameters,
              kernelParameters(*prepareLaunch(artifact, values), own[piece]));
    ASSERT_LT(std::max(inMap, workspaceMap), maps.size());
    EXPECT_EQ(maps[inMap].data, at(in));
    EXPECT_EQ(maps[workspaceMap].data, own[piece]);
  }
  EXPECT_EQ(maps.size(), 4u);
}

// Nor does a launch go where the maps of it could not be made, or another time
// by what is left of it.
TEST_F(KnownLaunchTest, MapsThatCannotBeMade) {
  artifact.variants[0].kernels[0].tensorMaps = {{0, 8, 8, 0}, {3, 512, 8, 0}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20;
  for (int round = 0; round < 3; ++round) {
    Status status = module->launch(arguments(at(a), at(b), at(c)), nullptr);
    EXPECT_EQ(status.message(),
              "cuTensorMapEncodeTiled failed: CUDA_ERROR_OTHER (fake)");
  }
  EXPECT_EQ(fakeRecord()->launches, 0);
}

// An update that failed leaves nothing behind that a later one takes for known.
TEST_F(KnownLaunchTest, LaunchesAfterWrongOnes) {
  artifact.variants[0].kernels[0].tensorMaps = {{0, 8, 8, 0}};
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  constexpr uint64_t a = 1 << 20, b = 2 << 20, c = 3 << 20, d = 4 << 20;
  alignas(256) static unsigned char own[256];
  WorkspaceMemory memory{own, sizeof(own)};
  Arguments good = arguments(at(a), at(b), at(c));
  ASSERT_TRUE(module->launch(good, nullptr, &memory).ok());
  // Addresses that are wrong together with a scalar that is right, and the
  // other way round.
  Arguments moved = arguments(at(d), at(d), at(c));
  moved[2].integer = 9;
  EXPECT_FALSE(module->launch(moved, nullptr, &memory).ok());
  EXPECT_FALSE(module->launch(moved, nullptr, &memory).ok());
  Arguments large = arguments(at(d), at(b), at(c));
  large[2].integer = 256;
  EXPECT_FALSE(module->launch(large, nullptr, &memory).ok());
  std::vector<uint64_t> &parameters = fakeRecord()->parameters;
  for (Arguments &values : std::vector<Arguments>{good, good}) {
    parameters.assign(7 + 1 + 1 + 7 + 5 + 5 + 1, 0);
    ASSERT_TRUE(module->launch(values, nullptr, &memory).ok());
    EXPECT_EQ(parameters.back(), 0u); // the first map
    parameters.pop_back();
    EXPECT_EQ(parameters,
              kernelParameters(*prepareLaunch(artifact, values), own));
  }
}

// Any launches, in any order: as if each were the first. `isBuffered`: with
// their parameters in one buffer.
void KnownLaunchTest::launchAtRandom(bool isBuffered) {
  artifact.variants[0].kernels[0].tensorMaps.clear();
  if (isBuffered) {
    std::vector<std::pair<size_t, size_t>> &layout = fakeRecord()->layout;
    for (size_t i = 0; i < 7; ++i)
      layout.push_back({8 * i, 8});
    layout.insert(layout.end(), {{56, 4}, {60, 1}});
    for (size_t i = 0; i < 7 + 5 + 5; ++i)
      layout.push_back({64 + 8 * i, 8});
  }
  Result<Module> module = Module::load(*Device::current(), artifact);
  ASSERT_TRUE(module.ok()) << module.message();
  FakeRecord &record = *fakeRecord();
  std::mt19937 random(1);
  auto draw = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  int numGood = 0, numWrong = 0;
  for (int round = 0; round < 20000; ++round) {
    int64_t rows = draw({10, 10, 10, 11, 0, 1 + int64_t(random() % 40)});
    int64_t inSizes[2] = {rows, 8}, outSizes[2] = {rows, 8};
    int64_t inStrides[2] = {draw({16, 16, 8, 24}), 1};
    int64_t outStrides[2] = {draw({16, 16, 16, 32}), draw({1, 1, 1, 1, 2})};
    int64_t sumStrides[1] = {draw({1, 1, 1, 8, -1})};
    if (random() % 16 == 0)
      outSizes[0] = draw({10, 11, 12});
    int64_t base = int64_t(1) << 20;
    Arguments values = {
        Argument::tensor(at(base + draw({0, 0, 0, 16, 256, 2})), 2, inSizes,
                         inStrides),
        Argument::scalar(draw({1, 3, 11, -5})),
        Argument::scalar(draw({4, 5, 127, 255, 256})),
        Argument::tensor(at(base + draw({4096, 4096, 8192, 16, 32})), 2,
                         outSizes, outStrides),
        Argument::tensor(at(base + draw({65536, 65540, 4096, 4112, 0})), 1,
                         outSizes, sumStrides)};
    Result<LaunchCall> expected = prepareLaunch(artifact, values, 132);
    size_t numParameters = 7 + 1 + 1 + 7 + 5 + 5;
    record.parameters.assign(numParameters, 0);
    record.grids.clear();
    // Copies have fewer parameters.
    if (expected.ok() && !expected->relayouts.empty())
      record.parameters.clear();
    alignas(256) static unsigned char own[1 << 16];
    WorkspaceMemory memory{own, sizeof(own)};
    Status status = module->launch(values, nullptr, &memory);
    ASSERT_EQ(status.message(), expected.message());
    (status.ok() ? numGood : numWrong) += 1;
    if (!expected.ok() || expected->isEmpty) {
      ASSERT_TRUE(record.grids.empty());
      continue;
    }
    ASSERT_EQ(record.grids.size(), 1 + expected->relayouts.size());
    ASSERT_EQ(*module->workspaceBytes(values), expected->workspaceBytes);
    if (!expected->relayouts.empty())
      continue;
    ASSERT_EQ(record.grid, expected->kernels[0].grid);
    std::vector<uint64_t> wanted = kernelParameters(*expected, own);
    if (isBuffered) { // what the kernel has room for
      wanted[7] &= 0xffffffff;
      wanted[8] &= 0xff;
    }
    ASSERT_EQ(record.parameters, wanted);
    ASSERT_EQ(record.isBuffered, isBuffered);
  }
  EXPECT_GT(numGood, 2000);
  EXPECT_GT(numWrong, 2000);
}

TEST_F(KnownLaunchTest, RandomLaunches) { launchAtRandom(false); }

TEST_F(KnownLaunchTest, RandomLaunchesOfBuffers) { launchAtRandom(true); }
