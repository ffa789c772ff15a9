//===- AttentionOpTest.cpp - attn.attention built from C++ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace {

struct AttentionOpTest : testing::Test {
  AttentionOpTest() : b(&context) {
    context.loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect>();
    module = ModuleOp::create(b.getUnknownLoc());
  }

  /// A function whose arguments have these types; the builder stands in it.
  func::FuncOp makeFunction(ArrayRef<Type> types) {
    b.setInsertionPointToEnd(module->getBody());
    auto func = func::FuncOp::create(b, b.getUnknownLoc(), "f",
                                     b.getFunctionType(types, {}));
    b.setInsertionPointToStart(func.addEntryBlock());
    auto end = func::ReturnOp::create(b, b.getUnknownLoc());
    b.setInsertionPoint(end);
    return func;
  }

  RankedTensorType tensor(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, b.getBF16Type());
  }

  MLIRContext context;
  OpBuilder b;
  OwningOpRef<ModuleOp> module;
  static constexpr int64_t unknown = ShapedType::kDynamic;
};

TEST_F(AttentionOpTest, ResultTypesFollowFromOperands) {
  func::FuncOp func =
      makeFunction({tensor({unknown, 8, 16, 64}), tensor({2, 4, unknown, 64}),
                    tensor({unknown, 4, unknown, 128})});
  auto op = AttentionOp::create(b, func.getLoc(), func.getArgument(0),
                                func.getArgument(1), func.getArgument(2));
  EXPECT_EQ(op.getOutput().getType(), tensor({2, 8, 16, 128}));
  EXPECT_EQ(op.getLse().getType(),
            RankedTensorType::get({2, 8, 16}, b.getF32Type()));
  EXPECT_FALSE(op.hasScore());
  EXPECT_FALSE(op.hasMask());
  EXPECT_EQ(op.getHeadDim(), 64);
  EXPECT_EQ(op.getValueHeadDim(), 128);
  EXPECT_TRUE(op.getElementType().isBF16());
  EXPECT_DOUBLE_EQ(op.getScaleValue(), 1 / std::sqrt(64.0));
  EXPECT_TRUE(op.getNumericsOrDefault().getFastMath());
  op.setScale(APFloat(0.5));
  EXPECT_DOUBLE_EQ(op.getScaleValue(), 0.5);
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(AttentionOpTest, RegionsSeePositionsThenCaptures) {
  RankedTensorType qkv = tensor({1, 1, unknown, 64});
  func::FuncOp func = makeFunction({qkv, b.getI32Type()});
  Value q = func.getArgument(0), n = func.getArgument(1);
  auto op = AttentionOp::create(
      b, func.getLoc(), q, q, q, n,
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        EXPECT_EQ(v.size(), AttentionOp::kScoreArguments + 1);
        return arith::NegFOp::create(b, loc, v[0]);
      },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        EXPECT_EQ(v.size(), AttentionOp::kMaskArguments + 1);
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, v[3],
                                     v[4]);
      });
  EXPECT_TRUE(op.hasScore());
  EXPECT_TRUE(op.hasMask());
  EXPECT_TRUE(succeeded(verify(*module)));
}

} // namespace
