//===- ModuleTest.cpp - which image a device runs ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Module.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Stream.h"

#include "gtest/gtest.h"

using namespace attn;
using namespace attn::runtime;

static Artifact artifact(std::string target, bool hasPTX, bool hasCubin) {
  Artifact artifact;
  artifact.name = "attention";
  artifact.target = std::move(target);
  if (hasPTX)
    artifact.ptx = ".version 7.0";
  if (hasCubin)
    artifact.cubin = {0x7f};
  return artifact;
}

TEST(ChooseImage, CubinWhereItRuns) {
  EXPECT_EQ(*chooseImage(artifact("sm_80", true, true), 8, 0), Image::Cubin);
  EXPECT_EQ(*chooseImage(artifact("sm_80", true, true), 8, 9), Image::Cubin);
  EXPECT_EQ(*chooseImage(artifact("sm_80", true, true), 9, 0), Image::PTX);
  EXPECT_EQ(*chooseImage(artifact("sm_80", true, false), 8, 0), Image::PTX);
  EXPECT_EQ(*chooseImage(artifact("sm_90a", true, true), 9, 0), Image::Cubin);
  EXPECT_EQ(*chooseImage(artifact("sm_120", true, true), 12, 0), Image::Cubin);
}

TEST(ChooseImage, SaysWhyNone) {
  EXPECT_EQ(chooseImage(artifact("sm_80", true, true), 7, 5).message(),
            "artifact 'attention' is for sm_80, the device is only sm_75");
  EXPECT_EQ(chooseImage(artifact("sm_86", true, true), 8, 0).message(),
            "artifact 'attention' is for sm_86, the device is only sm_80");
  EXPECT_EQ(chooseImage(artifact("sm_80", false, true), 9, 0).message(),
            "artifact 'attention' holds code for sm_80 only and no PTX; the "
            "device is sm_90");
  EXPECT_EQ(chooseImage(artifact("sm_90a", true, true), 10, 0).message(),
            "artifact 'attention' holds code for sm_90a only and no PTX; the "
            "device is sm_100");
  EXPECT_EQ(chooseImage(artifact("sm_80", false, false), 8, 0).message(),
            "artifact 'attention' holds no code");
  EXPECT_EQ(chooseImage(artifact("cpu", true, false), 8, 0).message(),
            "artifact is for target 'cpu', wanted one for a GPU ('sm_80', …)");
  for (const char *target : {"sm_", "sm_8", "sm_80b", "sm_80aa", "sm_99999"})
    EXPECT_EQ(chooseImage(artifact(target, true, false), 8, 0).message(),
              "artifact is for unknown target '" + std::string(target) + "'");
}

TEST(Device, WithoutADriverIsAnError) {
  Result<Device> device = Device::current();
  if (device.ok())
    GTEST_SKIP() << "this machine has " << device->name;
  EXPECT_FALSE(device.message().empty());
  EXPECT_EQ(Device::open(0).message(), device.message());
}

TEST(Device, RefusesANumberThatIsNotThere) {
  if (!Driver::get().ok())
    GTEST_SKIP() << Driver::get().message();
  EXPECT_EQ(Device::open(-1).message().substr(0, 15), "no GPU number -");
}

// A kernel written by hand, so that loading and launching are tested without
// the compiler: out[i] = in[i] + n for one block per 32 elements.
static const char kPTX[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_n(
  .param .u64 a0, .param .u64 a1, .param .u64 a2, .param .u64 a3,
  .param .u64 a4, .param .u32 n,
  .param .u64 b0, .param .u64 b1, .param .u64 b2, .param .u64 b3,
  .param .u64 b4)
{
  .reg .pred p;
  .reg .u32 t, c, v, m;
  .reg .u64 i, s, a, b;
  mov.u32 t, %tid.x;
  mov.u32 c, %ctaid.x;
  mad.lo.u32 t, c, 32, t;
  cvt.u64.u32 i, t;
  ld.param.u64 s, [a3];
  setp.ge.u64 p, i, s;
  @p ret;
  ld.param.u64 a, [a1];
  ld.param.u64 b, [b1];
  ld.param.u32 m, [n];
  mad.lo.u64 a, i, 4, a;
  mad.lo.u64 b, i, 4, b;
  ld.global.u32 v, [a];
  add.u32 v, v, m;
  st.global.u32 [b], v;
  ret;
}
)";

static Artifact addN() {
  Artifact result = artifact("sm_80", false, false);
  result.ptx = kPTX;
  KernelInfo &kernel = result.variants[0].kernels.emplace_back();
  kernel.entry = "add_n";
  kernel.results = {2};
  kernel.threads = 32;
  ArgumentInfo in;
  in.name = "in";
  in.element = ElementKind::I32;
  in.shape = {-1};
  ArgumentInfo n;
  n.name = "n";
  n.element = ElementKind::I32;
  n.isTensor = false;
  ArgumentInfo out = in;
  out.name = "out";
  out.isOutput = true;
  result.arguments = {in, n, out};
  LaunchExpr size, block;
  size.kind = LaunchExpr::Kind::Dim;
  block.value = 32;
  kernel.grid[0].kind = LaunchExpr::Kind::CeilDiv;
  kernel.grid[0].operands = {size, block};
  kernel.grid[1].value = kernel.grid[2].value = 1;
  return result;
}

TEST(Module, LaunchesOnTheGPU) {
  Result<Device> device = Device::current();
  if (!device.ok())
    GTEST_SKIP() << device.message();
  Result<Module> module = Module::load(*device, addN());
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->image(), Image::PTX);
  EXPECT_GT(module->registers(), 0);
  int64_t sizes[] = {1000}, strides[] = {1};
  std::vector<int> in(1000), out(1000);
  for (int i = 0; i < 1000; ++i)
    in[i] = 3 * i;
  Result<Buffer> a = Buffer::allocate(*device, 4000);
  Result<Buffer> b = Buffer::allocate(*device, 4000);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE(a->copyFrom(in.data()).ok() && b->fill(0xff).ok());
  Result<Stream> stream = Stream::create(*device);
  Result<Event> start = Event::create(*device), stop = Event::create(*device);
  ASSERT_TRUE(stream.ok() && start.ok() && stop.ok());
  EXPECT_TRUE(start->record(stream->handle()).ok());
  Status status =
      module->launch({Argument::tensor(a->data(), 1, sizes, strides),
                      Argument::scalar(int64_t(-5)),
                      Argument::tensor(b->data(), 1, sizes, strides)},
                     stream->handle());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(stop->record(stream->handle()).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_GE(*stop->millisecondsSince(*start), 0.0f);
  ASSERT_TRUE(b->copyTo(out.data()).ok());
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(out[i], 3 * i - 5);
}

TEST(Module, ReportsWhatTheDriverSays) {
  Result<Device> device = Device::current();
  if (!device.ok())
    GTEST_SKIP() << device.message();
  Artifact broken = addN();
  broken.ptx = ".version 7.0\n.target sm_80\nnonsense\n";
  std::string message = Module::load(*device, broken).message();
  EXPECT_NE(message.find("compiling the PTX in the driver failed: CUDA_ERROR"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("line 3"), std::string::npos) << message;
  Artifact misnamed = addN();
  misnamed.variants[0].kernels[0].entry = "other";
  EXPECT_NE(Module::load(*device, misnamed)
                .message()
                .find("finding the kernel 'other' failed"),
            std::string::npos);
  Artifact greedy = addN();
  greedy.variants[0].kernels[0].sharedBytes = int64_t(1) << 20;
  EXPECT_NE(Module::load(*device, greedy)
                .message()
                .find("wants 1048576 bytes of shared memory per block"),
            std::string::npos);
}
