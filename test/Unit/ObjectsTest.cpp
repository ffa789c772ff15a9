//===- x - ObjectsTest.cpp - tensors of Python for C --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attnViewObjects and attnLaunchObjects, with a Python and a library of tensors
// made up here, on the fake driver.
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

// Few arguments are converted in one place, many in another.
TEST(RunTest, AnyNumberOfArguments) {
  for (size_t count : {1, 2, 15, 16, 17, 40}) {
    *fakeRecord() = FakeRecord();
    *fakeThread() = FakeThread();
    Artifact artifact;
    artifact.name = "scale";
    artifact.target = "sm_80";
    artifact.ptx = ".entry scale_kernel";
    KernelInfo &info = artifact.variants[0].kernels.emplace_back();
    info.entry = "scale_kernel";
    info.threads = 32;
    info.results = {0};
    for (LaunchExpr &blocks : info.grid)
      blocks.value = 1;
    ArgumentInfo out;
    out.name = "out";
    out.shape = {-1};
    out.isOutput = true;
    artifact.arguments.push_back(out);
    ArgumentInfo scalar;
    scalar.name = "number";
    scalar.element = ElementKind::I64;
    scalar.isTensor = false;
    artifact.arguments.resize(count, scalar);
    std::string bytes = artifact.serialize();
    AttnArtifact *parsed = attnArtifactParse(bytes.data(), bytes.size());
    AttnKernel *kernel = attnLoad(parsed, 0);
    attnArtifactDestroy(parsed);
    ASSERT_TRUE(kernel) << attnErrorMessage();
    int64_t size = 8, stride = 1;
    std::vector<AttnArgument> arguments(count + 1);
    for (size_t i = 0; i <= count; ++i) {
      arguments[i].kind = ATTN_INTEGER;
      arguments[i].value.integer = static_cast<int64_t>(i);
    }
    arguments[0].kind = ATTN_TENSOR;
    arguments[0].value.tensor = {&size, 1, &size, &stride};
    fakeRecord()->parameters.resize(5 + count - 1);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(attnLaunch(kernel, arguments.data(), count, nullptr), 0)
          << attnErrorMessage();
      for (size_t i = 1; i < count; ++i)
        EXPECT_EQ(fakeRecord()->parameters[4 + i], i);
    }
    EXPECT_EQ(attnLaunch(kernel, arguments.data(), count + 1, nullptr), 1);
    EXPECT_EQ(std::string(attnErrorMessage()),
              "kernel 'scale' takes " + std::to_string(count) +
                  " arguments (results included), got " +
                  std::to_string(count + 1));
    arguments[count - 1].kind = 7;
    EXPECT_EQ(attnLaunch(kernel, arguments.data(), count, nullptr), 1);
    EXPECT_EQ(std::string(attnErrorMessage()), "attnLaunch: argument " +
                                                   std::to_string(count - 1) +
                                                   " has unknown kind 7");
    EXPECT_EQ(attnLaunch(kernel, nullptr, count, nullptr), 1);
    EXPECT_EQ(fakeRecord()->launches, 2);
    attnKernelDestroy(kernel);
  }
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

namespace {
/// An object of Python, with its tensor in front.
struct Object {
  Tensor tensor = {};
  void *type = nullptr;
  void *isNegative = nullptr, *needsGradients = nullptr;
  int64_t integer = 0;
  double real = 0;
  int uses = 1;
};
int locks = 0;

struct LaunchObjectsTest : ObjectsTest {
  LaunchObjectsTest() {
    Object *kinds[] = {&integerType, &boolType, &realType, &tensorType};
    for (Object *kind : kinds)
      kind->uses = 1000;
    first.tensor = in;
    last.tensor = out;
    for (Object *object : {&first, &last}) {
      object->type = &tensorType;
      object->isNegative = object->needsGradients = &no;
    }
    factor.type = &realType;
    factor.real = 2.5;
    python.struct_size = sizeof(AttnPython);
    python.tuple_size = [](void *tuple) {
      return static_cast<ptrdiff_t>(
          static_cast<std::vector<Object *> *>(tuple)->size());
    };
    python.tuple_item = [](void *tuple, ptrdiff_t i) -> void * {
      return (
          *static_cast<std::vector<Object *> *>(tuple))[static_cast<size_t>(i)];
    };
    python.type = [](void *object) {
      return taken(static_cast<Object *>(object)->type);
    };
    python.attribute = [](void *object, void *) {
      return taken(static_cast<Object *>(object)->needsGradients);
    };
    python.call = isNegative;
    python.release = [](void *object) {
      --static_cast<Object *>(object)->uses;
    };
    python.integer = [](void *object, int *overflow) -> long long {
      *overflow = static_cast<Object *>(object)->real > 0;
      return static_cast<Object *>(object)->integer;
    };
    python.real = [](void *object) {
      return static_cast<Object *>(object)->real;
    };
    python.unlock = []() -> void * { return &(--locks, locks); };
    python.lock = [](void *thread) { ++*static_cast<int *>(thread); };
    python.no = &no;
    python.integer_type = &integerType;
    python.bool_type = &boolType;
    python.real_type = &realType;
    python.tensor_types[0] = python.tensor_types[1] = &tensorType;
    python.exchange = &exchange;
    python.device_type = 2;
    python.device = -1;
    locks = 1;
  }

  static void *isNegative(void *object, void *, ...) {
    return taken(static_cast<Object *>(object)->isNegative);
  }
  static void *taken(void *object) {
    if (object)
      ++static_cast<Object *>(object)->uses;
    return object;
  }
  /// Whatever comes of it, nothing is kept, and the lock is held.
  int launch(bool recordsGradients = true) {
    int result =
        attnLaunchObjects(kernel, &python, &tuple, recordsGradients, nullptr);
    EXPECT_EQ(locks, 1);
    EXPECT_EQ(no.uses, 1);
    EXPECT_EQ(yes.uses, 1);
    EXPECT_EQ(tensorType.uses, 1000);
    EXPECT_EQ(realType.uses, 1000);
    return result;
  }
  size_t launches() { return fakeRecord()->grids.size(); }

  AttnPython python = {};
  Object no, yes, integerType, boolType, realType, tensorType;
  Object first, factor, last;
  std::vector<Object *> tuple = {&first, &factor, &last};
};
} // namespace

TEST_F(LaunchObjectsTest, TensorsAndNumbers) {
  EXPECT_EQ(launch(), ATTN_LAUNCHED) << attnErrorMessage();
  EXPECT_EQ(launches(), 1u);
  factor.type = &boolType;
  factor.integer = 1;
  factor.real = 0;
  EXPECT_EQ(launch(), ATTN_LAUNCHED) << attnErrorMessage();
  factor.type = &integerType;
  EXPECT_EQ(launch(), ATTN_LAUNCHED) << attnErrorMessage();
  EXPECT_EQ(launches(), 3u);
}

TEST_F(LaunchObjectsTest, OthersAreNotPlain) {
  auto isNotPlain = [&](Object &changed, auto change) {
    Object kept = changed;
    change(changed);
    bool isRefused = launch() == ATTN_NOT_PLAIN;
    changed = kept;
    return isRefused;
  };
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.type = &yes; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.type = nullptr; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.isNegative = &yes; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.isNegative = nullptr; }));
  EXPECT_TRUE(isNotPlain(last, [&](Object &o) { o.needsGradients = &yes; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.tensor.lanes = 0; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.tensor.rank = 1; }));
  EXPECT_TRUE(isNotPlain(first, [&](Object &o) { o.tensor.deviceType = 1; }));
  EXPECT_TRUE(isNotPlain(factor, [&](Object &o) { o.type = &tensorType; }));
  EXPECT_TRUE(isNotPlain(factor, [&](Object &o) { // overflows
    o.type = &integerType;
  }));
  tuple.pop_back();
  EXPECT_EQ(launch(), ATTN_NOT_PLAIN);
  tuple.push_back(&last);
  exchange.view = nullptr;
  EXPECT_EQ(launch(), ATTN_NOT_PLAIN);
  EXPECT_EQ(launches(), 0u);
}

TEST_F(LaunchObjectsTest, GradientsThatNobodyRecords) {
  first.needsGradients = &yes;
  EXPECT_EQ(launch(), ATTN_NOT_PLAIN);
  EXPECT_EQ(launch(/*recordsGradients=*/false), ATTN_LAUNCHED);
}

TEST_F(LaunchObjectsTest, WrongLaunches) {
  last.tensor.data = data; // overlaps the argument
  EXPECT_EQ(launch(), ATTN_FAILED);
  EXPECT_TRUE(std::string(attnErrorMessage()).find("'out'") !=
              std::string::npos)
      << attnErrorMessage();
  python.struct_size = 8;
  EXPECT_EQ(launch(), ATTN_FAILED);
  EXPECT_STREQ(attnErrorMessage(),
               "attnLaunchObjects: python has another struct_size");
  EXPECT_EQ(attnLaunchObjects(kernel, nullptr, &tuple, 0, nullptr),
            ATTN_FAILED);
}
