//===- ThreadsTest.cpp - the runtime, the cache and the C API in threads --===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program may do in several threads at once, on the fake driver; with
// -DATTN_SANITIZE=thread it also shows that nothing is shared without a lock.
//
//===----------------------------------------------------------------------===//

#include "Inputs/FakeDriver.h"
#include "attn-c/attn.h"
#include "attn/Runtime/Cache.h"
#include "attn/Runtime/Module.h"
#include "attn/Runtime/Stream.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <functional>
#include <thread>
#include <unistd.h>

using namespace attn;
using namespace attn::runtime;

namespace {
constexpr int kThreads = 4, kRounds = 25;

struct ThreadsTest : testing::Test {
  ThreadsTest() {
    *fakeRecord() = FakeRecord();
    *fakeThread() = FakeThread();
    fakeRecord()->isShared = true;
    artifact.name = "scale";
    artifact.target = "sm_80";
    artifact.ptx = ".entry scale_kernel .entry scale_relayout32";
    KernelInfo &kernel = artifact.variants[0].kernels.emplace_back();
    kernel.entry = "scale_kernel";
    kernel.results = {1};
    kernel.threads = 128;
    for (LaunchExpr &blocks : kernel.grid)
      blocks.value = 1;
    ArgumentInfo in;
    in.name = "in";
    in.shape = {-1, 8};
    in.alignment = 16;
    ArgumentInfo out = in;
    out.name = "out";
    out.isOutput = true;
    artifact.arguments = {in, out};
    LaunchExpr one;
    one.value = 1;
    artifact.variants[0].workspaces = {{ElementKind::I32, {one}, true, true}};
    artifact.relayouts = {{"scale_relayout32", 4, 256, 16}};
  }

  /// Runs `work` in every thread; what it returns is what went wrong.
  void inThreads(const std::function<std::string(int)> &work) {
    std::vector<std::thread> threads;
    std::string faults[kThreads];
    for (int number = 0; number < kThreads; ++number)
      threads.emplace_back([&, number] { faults[number] = work(number); });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &fault : faults)
      EXPECT_EQ(fault, "");
  }

  Artifact artifact;
};

/// The arguments of a call: rows of 8, copied where they lie 9 apart.
struct Tensors {
  explicit Tensors(int64_t stride) : strides{stride, 1} {}
  alignas(16) float data[128] = {0}, out[128] = {0};
  int64_t sizes[2] = {10, 8};
  int64_t strides[2];

  Arguments arguments() {
    return {Argument::tensor(data, 2, sizes, strides),
            Argument::tensor(out, 2, sizes, strides)};
  }
};
} // namespace

TEST_F(ThreadsTest, LaunchOneModule) {
  Result<Device> device = Device::current();
  ASSERT_TRUE(device.ok()) << device.message();
  {
    Result<Module> module = Module::load(*device, artifact);
    ASSERT_TRUE(module.ok()) << module.message();
    inThreads([&](int number) -> std::string {
      Tensors tensors(number % 2 ? 9 : 8);
      for (int round = 0; round < kRounds; ++round) {
        // Old streams and new ones, some of them another thread's too.
        auto stream = reinterpret_cast<CUstream>(uintptr_t(1 + number + round));
        if (Status status = module->launch(tensors.arguments(), stream);
            !status.ok())
          return status.message();
      }
      return "";
    });
    EXPECT_EQ(module->relayouts(), kThreads / 2 * kRounds * 2);
    EXPECT_EQ(fakeRecord()->launches, 2 * kThreads * kRounds);
  }
  EXPECT_EQ(fakeRecord()->buffers, 0);
}

TEST_F(ThreadsTest, LoadAndUnload) {
  inThreads([&](int) -> std::string {
    for (int round = 0; round < kRounds; ++round) {
      Result<Device> device = Device::current();
      if (!device.ok())
        return device.message();
      Result<Module> module = Module::load(*device, artifact);
      if (!module.ok())
        return module.message();
    }
    return "";
  });
  EXPECT_EQ(fakeRecord()->modules, 0);
}

TEST_F(ThreadsTest, ShareACache) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(testing::TempDir()) /
                    ("attn-threads-" + std::to_string(getpid()));
  Cache cache(folder.string());
  inThreads([&](int number) -> std::string {
    for (int round = 0; round < kRounds; ++round) {
      // Two of all, and one of its own.
      CacheKey key{"op", "", "sm_80", "compiler",
                   round % 3 ? std::to_string(round % 3)
                             : "own " + std::to_string(number)};
      Artifact mine = artifact;
      mine.name = key.options;
      if (Status status = cache.store(key, mine); !status.ok())
        return status.message();
      std::optional<Artifact> found = cache.find(key);
      if (!found || found->name != mine.name)
        return "not found, or another: " + key.options;
    }
    return "";
  });
  fs::remove_all(folder);
}

TEST_F(ThreadsTest, TheCInterface) {
  std::string bytes = artifact.serialize();
  AttnArtifact *shared = attnArtifactParse(bytes.data(), bytes.size());
  ASSERT_TRUE(shared) << attnErrorMessage();
  AttnKernel *kernel = attnLoad(shared, 0);
  ASSERT_TRUE(kernel) << attnErrorMessage();
  inThreads([&](int number) -> std::string {
    Tensors tensors(number % 2 ? 9 : 8);
    AttnArgument arguments[2] = {};
    float *data[] = {tensors.data, tensors.out};
    for (int i = 0; i < 2; ++i) {
      arguments[i].kind = ATTN_TENSOR;
      arguments[i].value.tensor = {data[i], 2, tensors.sizes, tensors.strides};
    }
    for (int round = 0; round < kRounds; ++round) {
      // Errors are those of a thread.
      std::string wrong = "wrong " + std::to_string(number);
      if (attnArtifactParse(wrong.data(), wrong.size()))
        return "parsed " + wrong;
      std::string told = attnErrorMessage();
      AttnArtifact *own = attnArtifactParse(bytes.data(), bytes.size());
      AttnKernel *loaded = own ? attnLoad(own, -1) : nullptr;
      const char *text = nullptr;
      if (!loaded || attnLaunch(loaded, arguments, 2, nullptr) ||
          attnLaunch(kernel, arguments, 2, nullptr) ||
          attnDescribeLaunch(kernel, arguments, 2, &text) ||
          attnSynchronize(kernel))
        return attnErrorMessage();
      if (told != attnErrorMessage() || !*text != (number % 2 == 0))
        return "told " + told + ", then " + attnErrorMessage();
      attnKernelDestroy(loaded);
      attnArtifactDestroy(own);
    }
    return "";
  });
  attnKernelDestroy(kernel);
  attnArtifactDestroy(shared);
  EXPECT_EQ(fakeRecord()->modules, 0);
  EXPECT_EQ(fakeRecord()->buffers, 0);
}
