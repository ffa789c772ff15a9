//===- IntegerSizes.cpp - integers that may wrap around -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/IntegerSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn;

/// What is not computed from integers is less than two to this power.
static constexpr unsigned leafBits = 22;

static unsigned getWidth(Value value) {
  return ConstantIntRanges::getStorageBitwidth(value.getType());
}

static ConstantIntRanges getLeafRange(Value value) {
  unsigned width = getWidth(value);
  if (width <= leafBits)
    return ConstantIntRanges::maxRange(width);
  APInt most = APInt::getLowBitsSet(width, leafBits);
  return ConstantIntRanges::fromSigned(-most, most);
}

static bool isConstant(Value value) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number));
}

/// Neither factor is known: their product is taken to be a leaf.
bool IntegerSizes::isVaryingProduct(Operation *op) const {
  auto isKnown = [&](Value factor) {
    for (Value same = resolve(factor); same != factor; same = resolve(factor))
      factor = same;
    return isConstant(factor);
  };
  return isa<arith::MulIOp>(op) && llvm::none_of(op->getOperands(), isKnown);
}

SmallVector<Value> IntegerSizes::getSources(Value value) const {
  if (Value same = resolve(value); same != value)
    return {same};
  Operation *op = value.getDefiningOp();
  bool isRead = op && !isConstant(value) && getWidth(value) > 1 &&
                !getElementTypeOrSelf(value).isIndex() &&
                !isVaryingProduct(op) &&
                (isa<math::AbsIOp>(op) ||
                 (isa_and_nonnull<arith::ArithDialect>(op->getDialect()) &&
                  isa<InferIntRangeInterface>(op))) &&
                llvm::all_of(op->getOperands(),
                             [](Value operand) { return getWidth(operand); });
  return isRead ? llvm::to_vector(op->getOperands()) : SmallVector<Value>();
}

ConstantIntRanges IntegerSizes::compute(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return ConstantIntRanges::constant(number);
  SmallVector<ConstantIntRanges> ranges = llvm::map_to_vector(
      getSources(value), [&](Value source) { return known.at(source); });
  if (ranges.empty())
    return getLeafRange(value);
  Operation *op = value.getDefiningOp();
  if (resolve(value) != value)
    return ranges.front();
  if (isa<math::AbsIOp>(op)) {
    APInt least = ranges.front().smin().abs(),
          most = ranges.front().smax().abs();
    return ConstantIntRanges::fromUnsigned(APInt(least.getBitWidth(), 0),
                                           llvm::APIntOps::umax(least, most));
  }
  ConstantIntRanges found = ConstantIntRanges::maxRange(getWidth(value));
  cast<InferIntRangeInterface>(op).inferResultRanges(
      ranges, [&](Value result, const ConstantIntRanges &range) {
        if (result == value)
          found = range;
      });
  return found;
}

ConstantIntRanges IntegerSizes::of(Value value) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value next = worklist.back();
    size_t count = worklist.size();
    if (!known.contains(next))
      for (Value source : getSources(next))
        if (!known.contains(source))
          worklist.push_back(source);
    if (worklist.size() != count)
      continue;
    worklist.pop_back();
    if (!known.contains(next))
      known.try_emplace(next, compute(next));
  }
  return known.at(value);
}

bool IntegerSizes::mayWrap(Operation *op) {
  bool isRead = isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp,
                    arith::TruncIOp, math::AbsIOp>(op);
  if (!isRead || isVaryingProduct(op) ||
      getElementTypeOrSelf(op->getResult(0)).isIndex() ||
      getWidth(op->getResult(0)) == 1)
    return false;
  unsigned width = getWidth(op->getResult(0));
  ConstantIntRanges lhs = of(op->getOperand(0));
  if (isa<arith::TruncIOp>(op))
    return !lhs.smin().isSignedIntN(width) || !lhs.smax().isSignedIntN(width);
  if (isa<math::AbsIOp>(op))
    return lhs.smin().isMinSignedValue();
  // Twice the width holds every result.
  ConstantIntRanges rhs = of(op->getOperand(1));
  if (isa<arith::ShLIOp>(op) && rhs.umax().uge(width))
    return true;
  for (const APInt &end : {lhs.smin(), lhs.smax()})
    for (const APInt &other : {rhs.smin(), rhs.smax()}) {
      APInt a = end.sext(2 * width), b = other.sext(2 * width);
      APInt result = isa<arith::AddIOp>(op)   ? a + b
                     : isa<arith::SubIOp>(op) ? a - b
                     : isa<arith::MulIOp>(op) ? a * b
                                              : a << b;
      if (!result.isSignedIntN(width))
        return true;
    }
  return false;
}
