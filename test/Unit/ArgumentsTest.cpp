//===- ArgumentsTest.cpp - launch expressions and arguments --- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Overlap.h"
#include "attn/Runtime/Relayout.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <set>

using namespace attn;
using namespace attn::runtime;

static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

static LaunchExpr constant(int64_t value) {
  LaunchExpr expr;
  expr.value = value;
  return expr;
}

static LaunchExpr dim(int64_t argument, int64_t dimension) {
  LaunchExpr expr;
  expr.kind = LaunchExpr::Kind::Dim;
  expr.argument = argument;
  expr.value = dimension;
  return expr;
}

static LaunchExpr binary(LaunchExpr::Kind kind, LaunchExpr lhs,
                         LaunchExpr rhs) {
  LaunchExpr expr;
  expr.kind = kind;
  expr.operands = {std::move(lhs), std::move(rhs)};
  return expr;
}

static int64_t fold(LaunchExpr::Kind kind, int64_t lhs, int64_t rhs) {
  Result<int64_t> value =
      evaluate(binary(kind, constant(lhs), constant(rhs)), {});
  EXPECT_TRUE(value.ok()) << value.message();
  return value.ok() ? *value : 0;
}

static std::string foldError(LaunchExpr::Kind kind, int64_t lhs, int64_t rhs) {
  return evaluate(binary(kind, constant(lhs), constant(rhs)), {}).message();
}

TEST(Evaluate, Arithmetic) {
  EXPECT_EQ(fold(LaunchExpr::Kind::Add, 2, 3), 5);
  EXPECT_EQ(fold(LaunchExpr::Kind::Sub, 2, 3), -1);
  EXPECT_EQ(fold(LaunchExpr::Kind::Mul, -2, 3), -6);
  EXPECT_EQ(fold(LaunchExpr::Kind::Min, -2, 3), -2);
  EXPECT_EQ(fold(LaunchExpr::Kind::Max, -2, 3), 3);
}

TEST(Evaluate, DivisionRoundsAsNamed) {
  for (int64_t lhs : {-7, -6, -1, 0, 1, 6, 7})
    for (int64_t rhs : {-3, -1, 1, 3}) {
      double quotient = static_cast<double>(lhs) / static_cast<double>(rhs);
      EXPECT_EQ(fold(LaunchExpr::Kind::FloorDiv, lhs, rhs),
                static_cast<int64_t>(std::floor(quotient)));
      EXPECT_EQ(fold(LaunchExpr::Kind::CeilDiv, lhs, rhs),
                static_cast<int64_t>(std::ceil(quotient)));
      EXPECT_EQ(fold(LaunchExpr::Kind::Mod, lhs, rhs),
                lhs - rhs * static_cast<int64_t>(std::floor(quotient)));
    }
}

TEST(Evaluate, ModuloZero) {
  EXPECT_EQ(fold(LaunchExpr::Kind::Mod, 0, 0), 0);
  EXPECT_EQ(fold(LaunchExpr::Kind::Mod, 8, 0), 8);
}

TEST(Evaluate, RefusesWhatHasNoValue) {
  for (auto kind : {LaunchExpr::Kind::FloorDiv, LaunchExpr::Kind::CeilDiv}) {
    EXPECT_EQ(foldError(kind, 1, 0), "launch expression divides by zero");
    EXPECT_EQ(foldError(kind, kMin, -1), "launch expression overflows 64 bits");
  }
  EXPECT_EQ(foldError(LaunchExpr::Kind::Add, kMax, 1),
            "launch expression overflows 64 bits");
  EXPECT_EQ(foldError(LaunchExpr::Kind::Sub, kMin, 1),
            "launch expression overflows 64 bits");
  EXPECT_EQ(foldError(LaunchExpr::Kind::Mul, kMax, 2),
            "launch expression overflows 64 bits");
}

TEST(Scalars, Floats) {
  auto bits = [](double value, ElementKind kind) {
    return *scalarBits(Argument::scalar(value), kind);
  };
  EXPECT_EQ(bits(1.0, ElementKind::F16), 0x3c00u);
  EXPECT_EQ(bits(-2.0, ElementKind::F16), 0xc000u);
  EXPECT_EQ(bits(65504.0, ElementKind::F16), 0x7bffu);
  EXPECT_EQ(bits(65520.0, ElementKind::F16), 0x7c00u); // ties to infinity
  EXPECT_EQ(bits(0x1p-24, ElementKind::F16), 0x0001u);
  EXPECT_EQ(bits(0x1p-25, ElementKind::F16), 0x0000u); // ties to even
  EXPECT_EQ(bits(0x1.8p-25, ElementKind::F16), 0x0001u);
  EXPECT_EQ(bits(0x1.ffcp-15, ElementKind::F16), 0x0400u); // carries
  EXPECT_EQ(bits(1.0 + 0x1p-11, ElementKind::F16), 0x3c00u);
  EXPECT_EQ(bits(1.0 + 0x1.8p-10, ElementKind::F16), 0x3c02u);
  EXPECT_EQ(bits(1.0, ElementKind::BF16), 0x3f80u);
  EXPECT_EQ(bits(1e40, ElementKind::BF16), 0x7f80u);
  EXPECT_EQ(bits(-std::numeric_limits<double>::infinity(), ElementKind::BF16),
            0xff80u);
  EXPECT_EQ(bits(std::numeric_limits<double>::quiet_NaN(), ElementKind::F16) &
                0x7e00u,
            0x7e00u);
  EXPECT_EQ(bits(1.0, ElementKind::F32), 0x3f800000u);
  EXPECT_EQ(bits(1.0, ElementKind::F64), 0x3ff0000000000000u);
  EXPECT_EQ(*scalarBits(Argument::scalar(int64_t(1)), ElementKind::F32),
            0x3f800000u);
}

TEST(Scalars, Integers) {
  auto message = [](int64_t value, ElementKind kind) {
    return scalarBits(Argument::scalar(value), kind).message();
  };
  EXPECT_EQ(*scalarBits(Argument::scalar(int64_t(-1)), ElementKind::I32),
            uint64_t(-1));
  EXPECT_EQ(message(int64_t(1) << 32, ElementKind::I32),
            "value 4294967296 does not fit i32");
  EXPECT_EQ(message((int64_t(1) << 32) - 1, ElementKind::I32), "");
  EXPECT_EQ(message(2, ElementKind::I1), "value 2 does not fit i1");
  EXPECT_EQ(message(-129, ElementKind::I8), "value -129 does not fit i8");
  EXPECT_EQ(message(kMin, ElementKind::I64), "");
  EXPECT_EQ(scalarBits(Argument::scalar(1.0), ElementKind::I32).message(),
            "wanted an integer");
}

//===----------------------------------------------------------------------===//
// Arguments of a kernel (q: ?x8x?x64 bf16, n: i32) -> o
//===----------------------------------------------------------------------===//

namespace {
struct Call : testing::Test {
  Call() {
    artifact.name = "attention";
    ArgumentInfo q;
    q.name = "q";
    q.element = ElementKind::BF16;
    q.shape = {-1, 8, -1, 64};
    q.alignment = 16;
    ArgumentInfo n;
    n.name = "n";
    n.element = ElementKind::I32;
    n.isTensor = false;
    ArgumentInfo o = q;
    o.name = "o";
    o.isOutput = true;
    artifact.arguments = {q, n, o};
    artifact.variants[0].kernels.emplace_back();
    artifact.variants[0].kernels[0].entry = "attention";
    artifact.variants[0].kernels[0].results = {2};
    artifact.variants[0].kernels[0].grid = {
        binary(LaunchExpr::Kind::CeilDiv, dim(0, 2), constant(64)), dim(0, 1),
        dim(0, 0)};
    artifact.checks = {{dim(0, 2), dim(2, 2), "lengths of q and o differ"}};
  }

  Result<LaunchCall> prepare() {
    Arguments arguments = {Argument::tensor(qData, 4, qSizes, qStrides),
                           Argument::scalar(n),
                           Argument::tensor(oData, 4, oSizes, oStrides)};
    return prepareLaunch(artifact, arguments);
  }
  std::string message() { return prepare().message(); }

  Artifact artifact;
  void *qData = reinterpret_cast<void *>(0x10000);
  void *oData = reinterpret_cast<void *>(0x2000000);
  int64_t n = 7;
  // q as (batch, length, heads, dim) in memory, o as (batch, heads, length,
  // dim).
  int64_t qSizes[4] = {2, 8, 100, 64};
  int64_t qStrides[4] = {51200, 64, 512, 1};
  int64_t oSizes[4] = {2, 8, 100, 64};
  int64_t oStrides[4] = {51200, 6400, 64, 1};
};
} // namespace

TEST_F(Call, PacksDescriptors) {
  Result<LaunchCall> call = prepare();
  ASSERT_TRUE(call.ok()) << call.message();
  EXPECT_FALSE(call->isEmpty);
  EXPECT_EQ(call->kernels[0].grid, (std::array<uint32_t, 3>{2, 8, 2}));
  std::vector<uint64_t> expected = {
      0x10000,   0x10000,   0, 2, 8, 100, 64, 51200, 64,   512, 1, 7,
      0x2000000, 0x2000000, 0, 2, 8, 100, 64, 51200, 6400, 64,  1};
  EXPECT_EQ(call->parameters, expected);
}

TEST_F(Call, StrideOfASingleElementIsFree) {
  qSizes[0] = oSizes[0] = 1;
  qStrides[0] = 3;
  oStrides[0] = 0;
  EXPECT_EQ(message(), "");
}

TEST_F(Call, EmptyGridDoesNothing) {
  qSizes[2] = oSizes[2] = 0;
  qData = oData = nullptr;
  Result<LaunchCall> call = prepare();
  ASSERT_TRUE(call.ok()) << call.message();
  EXPECT_TRUE(call->isEmpty);
}

TEST_F(Call, EmptyGridMustNotLeaveOutputsUndefined) {
  // What prepares something defines no result, wherever it stands.
  KernelInfo other = artifact.variants[0].kernels[0];
  other.results.clear();
  for (LaunchExpr &blocks : other.grid)
    blocks = constant(1);
  artifact.variants[0].kernels.push_back(other);
  qSizes[2] = 0;
  artifact.checks.clear();
  EXPECT_EQ(message(), "argument 2 ('o'): has elements, but the grid is empty");
}

TEST_F(Call, RefusesWrongShapes) {
  qSizes[1] = 4;
  EXPECT_EQ(message(),
            "argument 0 ('q'): wanted shape ?x8x?x64, got 2x4x100x64");
  qSizes[1] = 8;
  qSizes[2] = -5;
  EXPECT_EQ(message(), "argument 0 ('q'): size of dimension 2 is -5");
  qSizes[2] = 99;
  EXPECT_EQ(message(), "lengths of q and o differ (99 against 100)");
}

TEST_F(Call, RefusesWrongStrides) {
  qStrides[3] = 2;
  EXPECT_EQ(message(), "argument 0 ('q'): stride of dimension 3 is 2, the "
                       "innermost one must be 1");
  qStrides[3] = 1;
  qStrides[2] = 65;
  EXPECT_EQ(message(), "argument 0 ('q'): stride of dimension 2 is 65 elements "
                       "of 2 bytes, wanted a multiple of 16 bytes");
  qStrides[2] = -512;
  EXPECT_EQ(message(), "argument 0 ('q'): stride of dimension 2 is -512, "
                       "kernels take none below 0");
  qStrides[2] = kMax / 64;
  EXPECT_EQ(message(), "argument 0 ('q'): stride of dimension 2 is " +
                           std::to_string(kMax / 64) +
                           ", the tensor leaves the address space");
  qStrides[2] = 0; // one query for all: fine for an input
  EXPECT_EQ(message(), "");
  oStrides[2] = 0;
  EXPECT_EQ(message(), "argument 2 ('o'): elements of an output may not "
                       "overlap, got strides 51200, 6400, 0, 1 for sizes 2, 8, "
                       "100, 64");
  oStrides[2] = 32;
  EXPECT_EQ(message(), "argument 2 ('o'): elements of an output may not "
                       "overlap, got strides 51200, 6400, 32, 1 for sizes 2, "
                       "8, 100, 64");
}

TEST_F(Call, RefusesWhatIsMissing) {
  Arguments arguments = {Argument::tensor(qData, 4, nullptr, qStrides),
                         Argument::scalar(n),
                         Argument::tensor(oData, 4, oSizes, oStrides)};
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): sizes or strides are missing");
  arguments[0] = Argument::tensor(qData, 4, qSizes, nullptr);
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): sizes or strides are missing");
  arguments[0] = Argument::tensor(qData, -1, nullptr, nullptr);
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): wanted rank 4, got -1");
}

TEST_F(Call, ResultsHaveMemoryOfTheirOwn) {
  const char *overlaps = "argument 2 ('o') overlaps argument 0 ('q'): a result "
                         "needs memory of its own";
  oData = qData;
  EXPECT_EQ(message(), overlaps);
  // The last byte of q is the first of o, and the other way round.
  auto place = [](void *data, int64_t bytes) {
    return reinterpret_cast<void *>(reinterpret_cast<intptr_t>(data) + bytes);
  };
  constexpr int64_t bytes = 2 * 51200 * 2;
  oData = place(qData, bytes - 16);
  EXPECT_EQ(message(), overlaps);
  oData = place(qData, bytes);
  EXPECT_EQ(message(), "");
  oData = place(qData, 16 - bytes);
  EXPECT_EQ(message(), overlaps);
  oData = place(qData, -bytes);
  EXPECT_EQ(message(), "");

  // Two results.
  artifact.arguments[0].isOutput = true;
  oData = qData;
  EXPECT_EQ(message(), "argument 0 ('q') overlaps argument 2 ('o'): a result "
                       "needs memory of its own");
  artifact.arguments[0].isOutput = false;

  // Slices of a packed (batch, length, 4, heads, dim) lie between each other.
  for (int64_t *strides : {qStrides, oStrides}) {
    strides[0] = 100 * 2048;
    strides[1] = 64;
    strides[2] = 2048;
  }
  for (int64_t slice : {1, 2, 3}) {
    oData = place(qData, slice * 512 * 2);
    EXPECT_EQ(message(), "") << slice;
    std::swap(oData, qData);
    EXPECT_EQ(message(), "") << slice;
    std::swap(oData, qData);
  }
  oData = place(qData, 512 * 2 - 16);
  EXPECT_EQ(message(), overlaps);
  oData = place(qData, 3 * 512 * 2 + 16);
  EXPECT_EQ(message(), overlaps);
  // Nothing overlaps nothing.
  oData = qData;
  qSizes[2] = oSizes[2] = 0;
  EXPECT_EQ(message(), "");
}

// All tensors of up to three short dimensions, against a table.
TEST(Overlap, WithinATensor) {
  int64_t sizes[3], strides[3];
  for (int64_t code = 0; code < 27 * 729; ++code) {
    int64_t rest = code;
    for (int i = 0; i < 3; ++i) {
      sizes[i] = rest % 3 + 1;
      strides[i] = rest / 3 % 9 - 4;
      rest /= 27;
    }
    std::set<int64_t> places;
    for (int64_t a = 0; a < sizes[0]; ++a)
      for (int64_t b = 0; b < sizes[1]; ++b)
        for (int64_t c = 0; c < sizes[2]; ++c)
          places.insert(a * strides[0] + b * strides[1] + c * strides[2]);
    bool expected =
        static_cast<int64_t>(places.size()) != sizes[0] * sizes[1] * sizes[2];
    bool isFull = sizes[0] > 1 && sizes[1] > 1 && sizes[2] > 1;
    bool found = overlapsItself(Argument::tensor(nullptr, 3, sizes, strides));
    // Three dimensions that interlock may be refused without need.
    EXPECT_TRUE(found == expected || (isFull && found)) << code;
  }
}

// All pairs of short matrices near each other.
TEST(Overlap, BetweenTensors) {
  std::vector<std::array<int64_t, 4>> shapes;
  for (int64_t rows : {1, 2, 3})
    for (int64_t columns : {1, 2})
      for (int64_t rowStride : {-6, -4, 4, 6, 8})
        for (int64_t columnStride : {-1, 1, 2})
          shapes.push_back({rows, columns, rowStride, columnStride});
  constexpr int64_t bytesOfA = 2, bytesOfB = 1;
  auto places = [](const std::array<int64_t, 4> &shape, int64_t first,
                   int64_t bytes) {
    std::set<int64_t> places;
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < bytes; ++k)
          places.insert(first + (i * shape[2] + j * shape[3]) * bytes + k);
    return places;
  };
  int64_t apart = 0, provenApart = 0;
  for (const auto &a : shapes)
    for (const auto &b : shapes)
      for (int64_t shift = -20; shift <= 20; ++shift) {
        constexpr int64_t base = 1000;
        auto tensor = [](const std::array<int64_t, 4> &shape, int64_t address) {
          return Argument::tensor(reinterpret_cast<void *>(address), 2,
                                  shape.data(), shape.data() + 2);
        };
        std::set<int64_t> placesOfA = places(a, base, bytesOfA), shared;
        for (int64_t place : places(b, base + shift, bytesOfB))
          if (placesOfA.count(place))
            shared.insert(place);
        bool found = overlap(tensor(a, base), bytesOfA, tensor(b, base + shift),
                             bytesOfB);
        ASSERT_TRUE(found || shared.empty());
        apart += shared.empty();
        provenApart += !found;
      }
  // What is no slice of one tensor may be refused without need.
  EXPECT_GT(static_cast<double>(provenApart), 0.8 * static_cast<double>(apart));
}

TEST_F(Call, CopiesWhatKernelsCannotTake) {
  artifact.relayouts = {{"copy32", 4, 64, 1000}, {"copy16", 2, 128, 4096}};
  oStrides[3] = 100;
  oStrides[2] = 1;
  qData = reinterpret_cast<void *>(0x10002);
  Result<LaunchCall> call = prepare();
  ASSERT_TRUE(call.ok()) << call.message();
  ASSERT_EQ(call->relayouts.size(), 2u);
  const RelayoutCall &q = call->relayouts[0], &o = call->relayouts[1];
  EXPECT_EQ(q.kernel, 1);
  EXPECT_FALSE(q.isOutput);
  EXPECT_EQ(q.grid, (std::array<uint32_t, 3>{2, 8, 2}));
  EXPECT_EQ(q.place.bytes, 2 * 8 * 100 * 64 * 2);
  EXPECT_EQ(q.packed, (std::array<int64_t, 4>{51200, 6400, 64, 1}));
  EXPECT_TRUE(o.isOutput);
  EXPECT_EQ(o.place.offset, q.place.offset + q.place.bytes);
  EXPECT_EQ(call->workspaceBytes, 2 * q.place.bytes);
  EXPECT_EQ(describeRelayouts(artifact, *call),
            "'q' is copied first: data pointer is not aligned to 16 bytes\n"
            "'o' is copied after the kernel: stride of dimension 3 is 100, the "
            "innermost one must be 1\n");
  // The kernels see the copies, the copying kernels both.
  std::vector<uint64_t> expected = {
      0x40000, 0x40000, 0, 2, 8, 100, 64, 51200, 6400, 64, 1, 7,
      0x72000, 0x72000, 0, 2, 8, 100, 64, 51200, 6400, 64, 1};
  EXPECT_EQ(kernelParameters(*call, reinterpret_cast<void *>(0x40000)),
            expected);
  expected = {0x40000,   0x40000,   0, 2, 8, 100, 64, 51200, 6400, 64, 1,
              0x2000000, 0x2000000, 0, 2, 8, 100, 64, 51200, 6400, 1,  100};
  EXPECT_EQ(relayoutParameters(o, reinterpret_cast<void *>(0x40000)), expected);

  // What no copy mends.
  qData = reinterpret_cast<void *>(0x10001);
  EXPECT_EQ(message(),
            "argument 0 ('q'): data pointer is not aligned to 2 bytes");
  artifact.relayouts.pop_back();
  qData = reinterpret_cast<void *>(0x10002);
  EXPECT_EQ(message(),
            "argument 0 ('q'): data pointer is not aligned to 16 bytes");
}

TEST_F(Call, CopiesKeepRowsAligned) {
  artifact.relayouts = {{"copy16", 2, 128, 4096}};
  artifact.arguments[0].shape = {-1, 8, -1, 60};
  qSizes[3] = 60;
  qStrides[2] = -512;
  Result<LaunchCall> call = prepare();
  ASSERT_TRUE(call.ok()) << call.message();
  EXPECT_EQ(call->relayouts[0].packed,
            (std::array<int64_t, 4>{51200, 6400, 64, 1}));
  EXPECT_EQ(call->relayouts[0].reason, "stride of dimension 2 is -512, kernels "
                                       "take none below 0");
}

TEST_F(Call, SeesArgumentsInOtherDimensions) {
  artifact.relayouts = {{"copy16", 2, 128, 4096}};
  // (batch, length, heads * dim), of any batch.
  artifact.arguments[0].shape = {-1, -1, 512};
  artifact.arguments[0].view = {
      {{0, -1, 1}}, {{2, 8, 64}}, {{1, -1, 1}}, {{2, 64, 1}}};
  int64_t sizes[3] = {2, 100, 512}, strides[3] = {60000, 600, 1};
  Arguments arguments = {Argument::tensor(qData, 3, sizes, strides),
                         Argument::scalar(n),
                         Argument::tensor(oData, 4, oSizes, oStrides)};
  Result<LaunchCall> call = prepareLaunch(artifact, arguments);
  ASSERT_TRUE(call.ok()) << call.message();
  EXPECT_TRUE(call->relayouts.empty());
  EXPECT_EQ(std::vector<uint64_t>(call->parameters.begin(),
                                  call->parameters.begin() + 11),
            (std::vector<uint64_t>{0x10000, 0x10000, 0, 2, 8, 100, 64, 60000,
                                   64, 600, 1}));
  sizes[2] = 500;
  artifact.arguments[0].shape[2] = -1;
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): size of dimension 2 is 500, wanted 512");

  // Heads that two dimensions count: one stride where they lie so.
  artifact.arguments[0].shape = {-1, 2, 4, -1, 64};
  artifact.arguments[0].view = {
      {{0, -1, 1}}, {{1, 2, 1}, {2, 4, 1}}, {{3, -1, 1}}, {{4, 64, 1}}};
  int64_t five[5] = {2, 2, 4, 100, 64};
  int64_t steps[5] = {51200, 25600, 6400, 64, 1};
  arguments[0] = Argument::tensor(qData, 5, five, steps);
  call = prepareLaunch(artifact, arguments);
  ASSERT_TRUE(call.ok()) << call.message();
  EXPECT_TRUE(call->relayouts.empty());
  EXPECT_EQ(call->parameters[8], 6400u);
  steps[1] = 12800;
  steps[0] = 100000;
  call = prepareLaunch(artifact, arguments);
  ASSERT_TRUE(call.ok()) << call.message();
  ASSERT_EQ(call->relayouts.size(), 1u);
  EXPECT_EQ(call->relayouts[0].reason,
            "its dimensions do not lie one after the other");
  // Five dimensions, of which groups and length are one.
  EXPECT_EQ(call->relayouts[0].sizes, (std::array<int64_t, 4>{2, 2, 400, 64}));
  EXPECT_EQ(call->relayouts[0].strides,
            (std::array<int64_t, 4>{100000, 12800, 64, 1}));
  EXPECT_EQ(call->relayouts[0].packed,
            (std::array<int64_t, 4>{51200, 25600, 64, 1}));
  steps[3] = 72;
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): its dimensions do not lie one after the other "
            "(no more than 4 dimensions are copied)");
}

// What one dimension of the kernel counts may be several of the caller's.
TEST_F(Call, SizesThatNobodyCounts) {
  artifact.arguments[0].shape = {-1, -1, 8, -1, 64};
  artifact.arguments[0].view = {
      {{0, -1, 1}, {1, -1, 1}}, {{2, 8, 1}}, {{3, -1, 1}}, {{4, 64, 1}}};
  int64_t sizes[5] = {int64_t(1) << 40, int64_t(1) << 40, 8, 100, 64};
  int64_t strides[5] = {0, 0, 6400, 64, 1};
  Arguments arguments = {Argument::tensor(qData, 5, sizes, strides),
                         Argument::scalar(n),
                         Argument::tensor(oData, 4, oSizes, oStrides)};
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): its sizes are more than 64 bits count");
  // Of nothing there may be any number, with any strides.
  sizes[3] = oSizes[2] = 0;
  sizes[1] = 0;
  strides[0] = kMax;
  strides[2] = kMin;
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(), "");
}

TEST(Relayout, HereAndBack) {
  int16_t there[24] = {}, packed[24] = {};
  RelayoutCall call;
  call.elementBytes = 2;
  call.sizes = {1, 2, 3, 4};
  call.strides = {0, 12, 1, 3}; // rows lie across
  call.packed = {24, 12, 4, 1};
  call.data = there;
  for (int16_t i = 0; i < 24; ++i)
    there[i] = i;
  relayoutHere(call, packed);
  EXPECT_EQ(packed[1], 3);
  EXPECT_EQ(packed[4], 1);
  EXPECT_EQ(packed[23], 23);
  for (int16_t &value : packed)
    value = static_cast<int16_t>(-value);
  call.isOutput = true;
  relayoutHere(call, packed);
  for (int16_t i = 0; i < 24; ++i)
    EXPECT_EQ(there[i], -i);
}

TEST_F(Call, RefusesWrongPointers) {
  qData = reinterpret_cast<void *>(0x10008);
  EXPECT_EQ(message(),
            "argument 0 ('q'): data pointer is not aligned to 16 bytes");
  artifact.arguments[0].alignment = 0;
  EXPECT_EQ(message(), "");
  qData = reinterpret_cast<void *>(0x10001);
  EXPECT_EQ(message(),
            "argument 0 ('q'): data pointer is not aligned to 2 bytes");
  qData = nullptr;
  EXPECT_EQ(message(), "argument 0 ('q'): data pointer is null");
}

TEST_F(Call, RefusesWrongArguments) {
  EXPECT_EQ(prepareLaunch(artifact, {}).message(),
            "kernel 'attention' takes 3 arguments (results included), got 0");
  n = int64_t(1) << 40;
  EXPECT_EQ(message(),
            "argument 1 ('n'): value 1099511627776 does not fit i32");
  Arguments arguments(3, Argument::scalar(int64_t(1)));
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): wanted a tensor, got a scalar");
  int64_t sizes[1] = {1};
  arguments[0] = Argument::tensor(qData, 1, sizes, sizes);
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 0 ('q'): wanted rank 4, got 1");
  arguments[0] = Argument::tensor(qData, 4, qSizes, qStrides);
  arguments[1] = arguments[0];
  EXPECT_EQ(prepareLaunch(artifact, arguments).message(),
            "argument 1 ('n'): wanted a scalar, got a tensor");
}

TEST_F(Call, RefusesGridsBeyondTheDevice) {
  artifact.variants[0].kernels[0].grid[1] = constant(65536);
  EXPECT_EQ(message(), "kernel 'attention' needs a grid of 65536 blocks in "
                       "dimension y, the device has at most 65535");
  artifact.variants[0].kernels[0].grid[1] = constant(-1);
  EXPECT_EQ(message(), "kernel 'attention' needs a grid of -1 blocks in "
                       "dimension y, the device has at most 65535");
}
