//===- MergeFactors.cpp - constant factors of scores and of gradients -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Precision.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

namespace attn::tile {
#define GEN_PASS_DEF_TILEMERGEFACTORS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// All rows and columns of a tile of f32: what is computed once for a row stays
/// as it is written.
static bool isTile(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type && type.getRank() == 2 && type.getElementType().isF32() &&
         type.getDimSize(0) > 1 && type.getDimSize(1) > 1;
}

namespace {

/// A value as base * factor.
struct Scaled {
  Value base;
  double factor = 1;
};

/// Takes the operations of one kernel in the order in which they stand: those
/// before the present one are merged.
class FactorMerger {
public:
  FactorMerger(RewriterBase &rewriter, KernelOp kernel)
      : rewriter(rewriter), exact(DecisionPaths::find(kernel->getRegion(0))) {}

  void visit(Operation *op);

  int64_t numMerged = 0;

private:
  Value splat(Value like, double number) {
    auto type = cast<VectorType>(like.getType());
    return arith::ConstantOp::create(
        rewriter, like.getLoc(),
        DenseElementsAttr::get(type, static_cast<float>(number)));
  }
  std::optional<double> getConstant(Value value) const;
  Scaled split(Value value) const;
  Value join(Scaled product);
  unsigned getLatest(Value value);
  Value multiply(arith::MulFOp op, Value x, Value y);
  void replace(Operation *op, Value value) {
    latest.erase(op);
    rewriter.replaceOp(op, value);
    ++numMerged;
  }
  void replace(Operation *op, Scaled product) { replace(op, join(product)); }

  void visitQuotient(arith::DivFOp op);
  void visitProduct(arith::MulFOp op);
  void visitChoice(arith::SelectOp op);
  void visitSum(math::FmaOp op);
  void visitRest(arith::SubFOp op);

  RewriterBase &rewriter;
  DecisionPaths exact;
  /// Of constants made here, before they were rounded.
  DenseMap<Value, double> unrounded;
  DenseMap<Operation *, unsigned> latest;
  unsigned numContractions = 0;
};

} // namespace

std::optional<double> FactorMerger::getConstant(Value value) const {
  auto known = unrounded.find(value);
  if (known != unrounded.end())
    return known->second;
  APFloat constant(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&constant)) || !constant.isNormal())
    return std::nullopt;
  return constant.convertToDouble();
}

/// The factor of a product that nobody else uses.
Scaled FactorMerger::split(Value value) const {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (product && product->hasOneUse() && !exact.contains(product))
    if (std::optional<double> factor = getConstant(product.getRhs()))
      return {product.getLhs(), *factor};
  return {value};
}

Value FactorMerger::join(Scaled product) {
  if (static_cast<float>(product.factor) == 1.0f)
    return product.base;
  Value factor = splat(product.base, product.factor);
  unrounded[factor] = product.factor;
  return arith::MulFOp::create(rewriter, product.base.getLoc(), product.base,
                               factor);
}

/// Numbers of f32 that a few roundings leave where they are.
static bool isOrdinary(double factor) {
  return std::fabs(factor) > 0x1p-60 && std::fabs(factor) < 0x1p60;
}

/// x / c is x * (1 / c).
void FactorMerger::visitQuotient(arith::DivFOp op) {
  std::optional<double> divisor = getConstant(op.getRhs());
  if (!divisor || !isOrdinary(*divisor))
    return;
  Scaled dividend = split(op.getLhs());
  dividend.factor /= *divisor;
  if (isOrdinary(dividend.factor))
    replace(op, dividend);
}

/// The number of the last matrix product that `value` waits for; 0 for none.
unsigned FactorMerger::getLatest(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto known = latest.find(op);
  if (known != latest.end())
    return known->second;
  unsigned number = 0;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        number = std::max(number, getLatest(operand));
  });
  if (isa<vector::ContractionOp>(op))
    number = ++numContractions;
  return latest[op] = number;
}

/// x * y, where (p * q) * y is (p * y) * q if q is the last to be known: of p
/// and y one number is kept until then.
Value FactorMerger::multiply(arith::MulFOp op, Value x, Value y) {
  for (auto [product, other] : {std::pair(x, y), std::pair(y, x)}) {
    auto inner = product.getDefiningOp<arith::MulFOp>();
    if (!inner || !inner->hasOneUse() || exact.contains(inner))
      continue;
    Value early = inner.getLhs(), late = inner.getRhs();
    if (getLatest(early) > getLatest(late))
      std::swap(early, late);
    if (getLatest(late) <= std::max(getLatest(early), getLatest(other)))
      continue;
    Value first = arith::MulFOp::create(rewriter, op.getLoc(), early, other);
    return arith::MulFOp::create(rewriter, op.getLoc(), first, late);
  }
  if (op.getLhs() == x && op.getRhs() == y)
    return op;
  return arith::MulFOp::create(rewriter, op.getLoc(), x, y);
}

/// (x * a) * b is x * (a * b), (x * a) * y is (x * y) * a.
void FactorMerger::visitProduct(arith::MulFOp op) {
  std::optional<double> factor = getConstant(op.getRhs());
  Scaled lhs = split(op.getLhs());
  if (factor) {
    lhs.factor *= *factor;
    if (lhs.base != op.getLhs() && isOrdinary(lhs.factor))
      replace(op, lhs);
    return;
  }
  Scaled rhs = split(op.getRhs());
  double both = lhs.factor * rhs.factor;
  if (!isOrdinary(both))
    return;
  Value product = multiply(op, lhs.base, rhs.base);
  if (product != op.getResult())
    replace(op, Scaled{product, both});
}

/// A choice of x * a and -inf is one of x and -inf, times a > 0.
void FactorMerger::visitChoice(arith::SelectOp op) {
  Scaled product = split(op.getTrueValue());
  if (product.base == op.getTrueValue() || product.factor <= 0 ||
      !isMinusInf(op.getFalseValue()))
    return;
  product.base =
      arith::SelectOp::create(rewriter, op.getLoc(), op.getCondition(),
                              product.base, op.getFalseValue());
  replace(op, product);
}

/// fma(x * a, b, y) is fma(x, a * b, y).
void FactorMerger::visitSum(math::FmaOp op) {
  std::optional<double> factor = getConstant(op.getB());
  Scaled product = split(op.getA());
  if (!factor || product.base == op.getA() ||
      !isOrdinary(product.factor * *factor))
    return;
  Value merged = splat(product.base, product.factor * *factor);
  replace(op, math::FmaOp::create(rewriter, op.getLoc(), product.base, merged,
                                  op.getC()));
}

/// 1 - x * y is fma(-x, y, 1).
void FactorMerger::visitRest(arith::SubFOp op) {
  auto product = op.getRhs().getDefiningOp<arith::MulFOp>();
  if (!product || !product->hasOneUse() || exact.contains(product) ||
      !getConstant(op.getLhs()))
    return;
  Value negated =
      arith::NegFOp::create(rewriter, op.getLoc(), product.getLhs());
  replace(op, math::FmaOp::create(rewriter, op.getLoc(), negated,
                                  product.getRhs(), op.getLhs()));
}

void FactorMerger::visit(Operation *op) {
  if (isa<vector::ContractionOp>(op))
    getLatest(op->getResult(0));
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)) ||
      exact.contains(op))
    return;
  rewriter.setInsertionPoint(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](arith::DivFOp op) { visitQuotient(op); })
      .Case([&](arith::MulFOp op) { visitProduct(op); })
      .Case([&](arith::SelectOp op) { visitChoice(op); })
      .Case([&](math::FmaOp op) { visitSum(op); })
      .Case([&](arith::SubFOp op) { visitRest(op); });
}

int64_t attn::tile::mergeFactors(RewriterBase &rewriter, KernelOp kernel) {
  FactorMerger merger(rewriter, kernel);
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    merger.visit(op);
  return merger.numMerged;
}

namespace {
struct TileMergeFactors final
    : attn::SchedulePass<
          attn::tile::impl::TileMergeFactorsBase<TileMergeFactors>, KernelOp,
          TileForm::Flat, CleanUp::CSE> {
  using Base::Base;

  bool isWanted(KernelOp kernel) override { return !isPrecise(kernel); }

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    report("factors", mergeFactors(rewriter, kernel), "");
  }
};
} // namespace
