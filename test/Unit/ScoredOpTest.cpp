//===- ScoredOpTest.cpp - operations that are no attn.attention -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Execute/Session.h"
#include "attn/Plan/Plan.h"
#include "attn/Plan/Results.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

namespace {
/// Query, key and value, and nothing besides.
class TestScoresOp : public Op<TestScoresOp, OpTrait::NOperands<3>::Impl,
                               OpTrait::NRegions<2>::Impl, OpTrait::OneResult,
                               OpTrait::ZeroSuccessors, ScoredOp::Trait> {
public:
  using Op::Op;
  static StringRef getOperationName() { return "test.scores"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  using Tensor = TypedValue<RankedTensorType>;
  Tensor get(unsigned i) { return cast<Tensor>(getOperand(i)); }
  Tensor getQuery() { return get(0); }
  Tensor getKey() { return get(1); }
  Tensor getValue() { return get(2); }
  Tensor getSink() { return {}; }
  OperandRange getDropoutKey() { return getOperands().drop_front(3); }
  OperandRange getCaptures() { return getOperands().drop_front(3); }
  Region &getScore() { return getOperation()->getRegion(0); }
  Region &getMask() { return getOperation()->getRegion(1); }
  ArrayAttr getVariantsAttr() { return {}; }
  std::optional<APFloat> getScale() { return std::nullopt; }
  std::optional<APFloat> getDropoutP() { return std::nullopt; }
  std::optional<ArrayRef<int64_t>> getSortedCaptures() { return std::nullopt; }
  NumericsAttr getNumericsAttr() { return {}; }
  PlanAttr getPlanAttr() {
    return getOperation()->getAttrOfType<PlanAttr>("plan");
  }
  void setPlanAttr(PlanAttr plan) { getOperation()->setAttr("plan", plan); }
};

class TestDialect : public Dialect {
public:
  static StringRef getDialectNamespace() { return "test"; }
  explicit TestDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<TestDialect>()) {
    addOperations<TestScoresOp>();
  }
};
} // namespace

// What asks for a ScoredOp serves another operation as it serves
// attn.attention.
TEST(ScoredOp, AnotherOperation) {
  Session session;
  auto module = session.parse(R"(
    !t = tensor<2x8x512x64xbf16>
    func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<2x8x512xf32>) {
      %o, %lse = attn.attention %q, %k, %v
        : (!t, !t, !t) -> (!t, tensor<2x8x512xf32>)
      return %o, %lse : !t, tensor<2x8x512xf32>
    })");
  ASSERT_TRUE(module.ok()) << module.message();
  auto function = *(*module)->getOps<func::FuncOp>().begin();
  ScoredOp attention;
  function.walk([&](ScoredOp op) { attention = op; });
  ASSERT_TRUE(attention);

  MLIRContext *context = function.getContext();
  context->loadDialect<TestDialect>();
  OpBuilder b(attention);
  OperationState state(attention->getLoc(), TestScoresOp::getOperationName());
  state.addOperands(attention->getOperands().take_front(3));
  state.addTypes(attention.getQuery().getType());
  state.addRegion();
  state.addRegion();
  auto other = cast<ScoredOp>(b.create(state));

  EXPECT_EQ(other.getHeadDim(), 64);
  EXPECT_EQ(other.getScaleValue(), 0.125);
  EXPECT_TRUE(other.getElementType().isBF16());
  EXPECT_FALSE(other.hasScore() || other.hasMask() || other.hasDropout());
  EXPECT_FALSE(other.isSortedCapture(0));
  EXPECT_EQ(other.getNumericsOrDefault(), attention.getNumericsOrDefault());
  for (TargetKind target : {TargetKind::SM80, TargetKind::SM90A}) {
    PlanAttr plan = plan::pick(other, target);
    EXPECT_EQ(plan, plan::pick(attention, target));
    EXPECT_TRUE(succeeded(plan::verify(other, plan)));
    EXPECT_EQ(plan::enumeratePlans(other, target).size(),
              plan::enumeratePlans(attention, target).size());
    other.setPlanAttr(plan);
    EXPECT_EQ(other.getPlanAttr(), plan);
  }
  EXPECT_EQ(plan::getResultKey(other, "sm_80").describe(),
            plan::getResultKey(attention, "sm_80").describe());
  other->erase();
}
