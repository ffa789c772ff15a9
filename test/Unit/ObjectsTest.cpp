//===- x - ObjectsTest.cpp - tensors of Python for C --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attnViewObjects, with a library of tensors made up here, on the fake driver.
//
//===----------------------------------------------------------------------===//

#include "Inputs/FakeDriver.h"
#include "attn-c/attn.h"
#include "attn/Support/Artifact.h"

#include "gtest/gtest.h"

using namespace attn;

namespace {
// As DLPack 1.x has them.
struct Tensor {
  void *data;
  int32_t deviceType, device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *sizes, *strides;
  uint64_t byteOffset;
};

struct Exchange {
  uint32_t major = 1, minor = 3;
  void *older = nullptr;
  void *others[3] = {nullptr, nullptr, nullptr};
  int (*view)(void *, Tensor *) = [](void *object, Tensor *tensor) {
    *tensor = *static_cast<Tensor *>(object);
    return tensor->lanes == 0 ? -1 : 0;
  };
};

struct ObjectsTest : testing::Test {
  ObjectsTest() {
    *fakeRecord() = FakeRecord();
    *fakeThread() = FakeThread();
    Artifact artifact;
    artifact.name = "scale";
    artifact.target = "sm_80";
    artifact.ptx = ".entry scale_kernel";
    KernelInfo &info = artifact.variants[0].kernels.emplace_back();
    info.entry = "scale_kernel";
    info.results = {2};
    info.threads = 128;
    for (LaunchExpr &blocks : info.grid)
      blocks.value = 1;
    ArgumentInfo in;
    in.name = "in";
    in.element = ElementKind::BF16;
    in.shape = {-1, 8};
    ArgumentInfo factor;
    factor.name = "factor";
    factor.isTensor = false;
    ArgumentInfo out = in;
    out.name = "out";
    out.element = ElementKind::F32;
    out.isOutput = true;
    artifact.arguments = {in, factor, out};
    std::string bytes = artifact.serialize();
    AttnArtifact *parsed = attnArtifactParse(bytes.data(), bytes.size());
    kernel = attnLoad(parsed, 0);
    attnArtifactDestroy(parsed);
  }
  ~ObjectsTest() override { attnKernelDestroy(kernel); }

  int view(int device = -1) {
    return attnViewObjects(kernel, &exchange, objects, 3, 2, device, arguments,
                           shapes, room);
  }

  AttnKernel *kernel = nullptr;
  Exchange exchange;
  alignas(16) char data[1024] = {0};
  int64_t sizes[2] = {10, 8}, strides[2] = {8, 1};
  Tensor in{data, 2, 1, 2, 4, 16, 1, sizes, strides, 64};
  Tensor out{data + 512, 2, 1, 2, 2, 32, 1, sizes, strides, 0};
  void *objects[3] = {&in, nullptr, &out};
  AttnArgument arguments[3] = {};
  int64_t shapes[8] = {0};
  size_t room = 8;
};
} // namespace

TEST_F(ObjectsTest, ViewsTensorsAndLeavesScalars) {
  ASSERT_TRUE(kernel) << attnErrorMessage();
  arguments[1].kind = ATTN_REAL;
  arguments[1].value.real = 2.5;
  ASSERT_EQ(view(), 0) << attnErrorMessage();
  EXPECT_EQ(arguments[0].kind, ATTN_TENSOR);
  EXPECT_EQ(arguments[0].value.tensor.data, data + 64);
  EXPECT_EQ(arguments[0].value.tensor.rank, 2);
  EXPECT_EQ(arguments[0].value.tensor.sizes, shapes);
  EXPECT_EQ(arguments[0].value.tensor.strides, shapes + 2);
  EXPECT_EQ(arguments[1].kind, ATTN_REAL);
  EXPECT_EQ(arguments[2].value.tensor.data, data + 512);
  EXPECT_EQ(arguments[2].value.tensor.sizes[0], 10);
  EXPECT_EQ(arguments[2].value.tensor.strides[0], 8);
  EXPECT_EQ(view(1), 0);
  EXPECT_EQ(attnLaunch(kernel, arguments, 3, nullptr), 0) << attnErrorMessage();
}

TEST_F(ObjectsTest, OthersAreNotViewed) {
  ASSERT_EQ(view(), 0) << attnErrorMessage();
  auto isRefused = [&](Tensor changed) {
    Tensor kept = in;
    in = changed;
    int failed = view();
    in = kept;
    return failed == 1;
  };
  Tensor other = in;
  other.code = 2;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.bits = 32;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.lanes = 2;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.rank = 3;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.deviceType = 1;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.strides = nullptr;
  EXPECT_TRUE(isRefused(other));
  other = in;
  other.lanes = 0; // its library does not show it
  EXPECT_TRUE(isRefused(other));
  EXPECT_EQ(view(0), 1); // the GPU's number
  EXPECT_STREQ(attnErrorMessage(),
               "attnViewObjects: object 0 is no such tensor");
  EXPECT_EQ(view(), 0);
}

TEST_F(ObjectsTest, WrongCalls) {
  room = 7;
  EXPECT_EQ(view(), 1);
  room = 8;
  objects[0] = nullptr;
  EXPECT_EQ(view(), 1);
  objects[0] = &in;
  exchange.major = 2;
  EXPECT_EQ(view(), 1);
  exchange.major = 1;
  exchange.view = nullptr;
  EXPECT_EQ(view(), 1);
  EXPECT_EQ(attnViewObjects(kernel, nullptr, objects, 3, 2, -1, arguments,
                            shapes, room),
            1);
  exchange = Exchange();
  EXPECT_EQ(attnViewObjects(kernel, &exchange, objects, 2, 2, -1, arguments,
                            shapes, room),
            1);
  EXPECT_STREQ(attnErrorMessage(), "attnViewObjects: wanted 3 objects, got 2");
  EXPECT_EQ(view(), 0);
}
