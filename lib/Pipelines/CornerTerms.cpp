//===- CornerTerms.cpp - regions at a corner of the positions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CornerTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::terms;
using Kind = LaunchExpr::Kind;

/// Sizes and scalars beyond are not known: those below, and a few of them added
/// up, are i32 as in the kernel.
static constexpr int64_t maxLeaf = int64_t(1) << 26;
static constexpr int64_t maxInteger = std::numeric_limits<int32_t>::max();
/// Larger expressions are not known: they may double with each operation.
static constexpr size_t maxCount = 256;
static constexpr unsigned maxFactorDepth = 6;

static IntegerTerm unknown() { return {constant(0), constant(0), 0}; }

static IntegerTerm known(int64_t value) {
  return {constant(value), constant(1), std::abs(value)};
}

static LaunchExpr isNegative(const LaunchExpr &value) {
  return isLess(value, constant(0));
}

static IntegerTerm limited(IntegerTerm term) {
  bool isSmall = term.magnitude <= maxInteger &&
                 count(term.value) + count(term.isKnown) <= maxCount;
  return isSmall && valueOf(term.isKnown) != 0 ? term : unknown();
}

static IntegerTerm combine(Kind kind, const IntegerTerm &lhs,
                           const IntegerTerm &rhs) {
  int64_t magnitude = std::max(lhs.magnitude, rhs.magnitude);
  if (kind == Kind::Add || kind == Kind::Sub)
    magnitude = lhs.magnitude + rhs.magnitude;
  else if (kind == Kind::Mul) // of two numbers of 32 bits
    magnitude = lhs.magnitude * rhs.magnitude;
  return limited({binary(kind, lhs.value, rhs.value),
                  logicalAnd(lhs.isKnown, rhs.isKnown), magnitude});
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

CornerFacts::CornerFacts(ScoredOp op, int64_t query, int64_t key,
                         const Artifact &artifact)
    : op(op), query(query), key(key), artifact(artifact) {
  constexpr int64_t B = ScoredOp::kBatch, H = ScoredOp::kHead,
                    L = ScoredOp::kLength;
  sizes = {*dimOf(op.getQuery(), B), *dimOf(op.getQuery(), H),
           *dimOf(op.getQuery(), L), *dimOf(op.getKey(), L)};
}

std::optional<LaunchExpr> CornerFacts::dimOf(Value tensor, int64_t dim) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (dim < 0 || dim >= type.getRank())
    return std::nullopt;
  if (!type.isDynamicDim(dim))
    return constant(type.getDimSize(dim));
  if (tensor == op.getQuery())
    return terms::dim(query, dim);
  if (tensor == op.getKey())
    return terms::dim(key, dim);
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (!argument || !artifact.arguments[argument.getArgNumber()].view.empty())
    return std::nullopt;
  return terms::dim(argument.getArgNumber(), dim);
}

LaunchExpr CornerFacts::hasPositions() const {
  LaunchExpr holds = constant(1);
  for (const LaunchExpr &size : sizes) {
    holds = logicalAnd(holds, isLess(constant(0), size));
    holds = logicalAnd(holds, isLess(size, constant(maxLeaf)));
  }
  return holds;
}

std::optional<LaunchExpr> CornerFacts::captureSize(unsigned capture,
                                                   unsigned dim) const {
  return dimOf(op.getCaptures()[capture], dim);
}

std::string CornerFacts::captureName(unsigned capture) const {
  auto argument = dyn_cast<BlockArgument>(op.getCaptures()[capture]);
  return argument ? artifact.arguments[argument.getArgNumber()].name
                  : "c" + std::to_string(capture);
}

/// Where it is no larger than a leaf may be.
static IntegerTerm leaf(LaunchExpr value, int64_t limit = maxLeaf) {
  LaunchExpr isSmall = logicalAnd(isLess(constant(-limit - 1), value),
                                  isLess(value, constant(limit + 1)));
  return {std::move(value), std::move(isSmall), limit};
}

IntegerTerm CornerFacts::captureValue(unsigned capture) const {
  return hostInteger(op.getCaptures()[capture]);
}

/// An integer of the function around the attention.
IntegerTerm CornerFacts::hostInteger(Value value) const {
  Type type = value.getType();
  if (!type.isIndex() && !type.isInteger())
    return unknown();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSignificantBits() <= 32
               ? limited(known(number.getSExtValue()))
               : unknown();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    if (bits == 1)
      return unknown();
    return leaf(
        terms::scalar(argument.getArgNumber()),
        std::min(maxLeaf, (int64_t(1) << (std::min(bits, 32u) - 1)) - 1));
  }
  Operation *definition = value.getDefiningOp();
  if (auto dim = dyn_cast<tensor::DimOp>(definition)) {
    std::optional<int64_t> number = dim.getConstantIndex();
    std::optional<LaunchExpr> size;
    if (number && isa<RankedTensorType>(dim.getSource().getType()))
      size = dimOf(dim.getSource(), *number);
    return size ? leaf(*size) : unknown();
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(definition))
    return hostInteger(definition->getOperand(0));
  // The only sum of interest: Sk - Sq, of the variants.
  if (auto sub = dyn_cast<arith::SubIOp>(definition))
    if (sub.getLhs().getDefiningOp<tensor::DimOp>() &&
        sub.getRhs().getDefiningOp<tensor::DimOp>())
      return combine(Kind::Sub, hostInteger(sub.getLhs()),
                     hostInteger(sub.getRhs()));
  return unknown();
}

//===----------------------------------------------------------------------===//
// Values of a region
//===----------------------------------------------------------------------===//

CornerTerms::CornerTerms(const CornerFacts &facts, unsigned corner,
                         Block &block) {
  bool isScore = block.getArgument(0).getType().isF32();
  for (unsigned i = 0; i < 4; ++i)
    integers[block.getArgument(i + isScore)] =
        (corner >> i) & 1 ? IntegerTerm{facts.last(i), constant(1), maxLeaf}
                          : known(0);
  for (auto [i, argument] :
       llvm::enumerate(block.getArguments().drop_front(4 + isScore)))
    if (argument.getType().isInteger())
      integers[argument] = facts.captureValue(i);
  for (Operation &op : block.without_terminator())
    evaluate(op);
  uses[cast<YieldOp>(block.getTerminator()).getValue()] = constant(1);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    spreadUse(op);
}

IntegerTerm CornerTerms::integer(Value value) const {
  auto found = integers.find(value);
  return found == integers.end() ? unknown() : found->second;
}

ConditionTerm CornerTerms::condition(Value value) const {
  auto found = conditions.find(value);
  return found == conditions.end() ? ConditionTerm{constant(0), constant(0)}
                                   : found->second;
}

LaunchExpr CornerTerms::matters(Value value) const {
  auto found = uses.find(value);
  return found == uses.end() ? constant(0) : found->second;
}

void CornerTerms::evaluate(Operation &op) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isInteger())
    return;
  Value result = op.getResult(0);
  if (result.getType().isInteger(1)) {
    ConditionTerm term = evaluateCondition(op);
    if (count(term.isTrue) + count(term.isFalse) <= maxCount)
      conditions[result] = std::move(term);
  } else {
    integers[result] = limited(evaluateInteger(op));
  }
}

static ConditionTerm compare(arith::CmpIPredicate predicate,
                             const IntegerTerm &lhs, const IntegerTerm &rhs) {
  using P = arith::CmpIPredicate;
  LaunchExpr isKnown = logicalAnd(lhs.isKnown, rhs.isKnown);
  if (predicate >= P::ult)
    isKnown = logicalAnd(isKnown, logicalNot(logicalOr(isNegative(lhs.value),
                                                       isNegative(rhs.value))));
  LaunchExpr holds;
  switch (predicate) {
  case P::eq:
    holds = isEqual(lhs.value, rhs.value);
    break;
  case P::ne:
    holds = logicalNot(isEqual(lhs.value, rhs.value));
    break;
  case P::slt:
  case P::ult:
    holds = isLess(lhs.value, rhs.value);
    break;
  case P::sle:
  case P::ule:
    holds = logicalNot(isLess(rhs.value, lhs.value));
    break;
  case P::sgt:
  case P::ugt:
    holds = isLess(rhs.value, lhs.value);
    break;
  case P::sge:
  case P::uge:
    holds = logicalNot(isLess(lhs.value, rhs.value));
    break;
  }
  return {logicalAnd(isKnown, holds), logicalAnd(isKnown, logicalNot(holds))};
}

ConditionTerm CornerTerms::evaluateCondition(Operation &op) const {
  auto of = [&](unsigned i) { return condition(op.getOperand(i)); };
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    bool value = !cast<IntegerAttr>(constantOp.getValue()).getValue().isZero();
    return {constant(value), constant(!value)};
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return compare(cmp.getPredicate(), integer(cmp.getLhs()),
                   integer(cmp.getRhs()));
  if (isa<arith::AndIOp>(op))
    return {logicalAnd(of(0).isTrue, of(1).isTrue),
            logicalOr(of(0).isFalse, of(1).isFalse)};
  if (isa<arith::OrIOp>(op))
    return {logicalOr(of(0).isTrue, of(1).isTrue),
            logicalAnd(of(0).isFalse, of(1).isFalse)};
  if (isa<arith::XOrIOp>(op))
    return {logicalOr(logicalAnd(of(0).isTrue, of(1).isFalse),
                      logicalAnd(of(0).isFalse, of(1).isTrue)),
            logicalOr(logicalAnd(of(0).isTrue, of(1).isTrue),
                      logicalAnd(of(0).isFalse, of(1).isFalse))};
  if (isa<arith::SelectOp>(op))
    return {logicalOr(logicalAnd(of(0).isTrue, of(1).isTrue),
                      logicalAnd(of(0).isFalse, of(2).isTrue)),
            logicalOr(logicalAnd(of(0).isTrue, of(1).isFalse),
                      logicalAnd(of(0).isFalse, of(2).isFalse))};
  return {constant(0), constant(0)};
}

/// lhs by a power of two or another positive constant; as if without a sign
/// where `isNatural`.
static IntegerTerm divide(Kind kind, IntegerTerm lhs, int64_t divisor,
                          bool isNatural) {
  if (divisor <= 0 || divisor > maxInteger)
    return unknown();
  if (isNatural)
    lhs.isKnown = logicalAnd(lhs.isKnown, logicalNot(isNegative(lhs.value)));
  return combine(kind, lhs, known(divisor));
}

IntegerTerm CornerTerms::evaluateInteger(Operation &op) const {
  auto of = [&](unsigned i) { return integer(op.getOperand(i)); };
  // The constant that is operand 1, where it is one; else 0, which is refused.
  APInt number;
  int64_t rhs = 0;
  if (op.getNumOperands() == 2 &&
      matchPattern(op.getOperand(1), m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 32)
    rhs = number.getSExtValue();
  bool isShift = rhs > 0 && rhs < 31;
  return llvm::TypeSwitch<Operation *, IntegerTerm>(&op)
      .Case([&](arith::ConstantOp constantOp) {
        const APInt &value =
            cast<IntegerAttr>(constantOp.getValue()).getValue();
        return value.getSignificantBits() <= 32 ? known(value.getSExtValue())
                                                : unknown();
      })
      .Case([&](arith::AddIOp) { return combine(Kind::Add, of(0), of(1)); })
      .Case([&](arith::SubIOp) { return combine(Kind::Sub, of(0), of(1)); })
      .Case([&](arith::MulIOp) { return combine(Kind::Mul, of(0), of(1)); })
      .Case([&](arith::MinSIOp) { return combine(Kind::Min, of(0), of(1)); })
      .Case([&](arith::MaxSIOp) { return combine(Kind::Max, of(0), of(1)); })
      .Case([&](math::AbsIOp) {
        return combine(Kind::Max, of(0), combine(Kind::Sub, known(0), of(0)));
      })
      .Case([&](arith::FloorDivSIOp) {
        return divide(Kind::FloorDiv, of(0), rhs, /*isNatural=*/false);
      })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) {
        return divide(Kind::FloorDiv, of(0), rhs, /*isNatural=*/true);
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) {
        return divide(Kind::Mod, of(0), rhs, /*isNatural=*/true);
      })
      .Case([&](arith::AndIOp) {
        return llvm::isPowerOf2_64(uint64_t(rhs) + 1) && rhs > 0
                   ? divide(Kind::Mod, of(0), rhs + 1, /*isNatural=*/false)
                   : unknown();
      })
      .Case([&](arith::ShRSIOp) {
        return divide(Kind::FloorDiv, of(0), isShift ? int64_t(1) << rhs : 0,
                      /*isNatural=*/false);
      })
      .Case([&](arith::ShRUIOp) {
        return divide(Kind::FloorDiv, of(0), isShift ? int64_t(1) << rhs : 0,
                      /*isNatural=*/true);
      })
      .Case([&](arith::ShLIOp) {
        return isShift ? combine(Kind::Mul, of(0), known(int64_t(1) << rhs))
                       : unknown();
      })
      .Case([&](arith::SelectOp select) {
        ConditionTerm c = condition(select.getCondition());
        IntegerTerm x = of(1), y = of(2);
        return IntegerTerm{terms::select(c.isTrue, x.value, y.value),
                           logicalOr(logicalAnd(c.isTrue, x.isKnown),
                                     logicalAnd(c.isFalse, y.isKnown)),
                           std::max(x.magnitude, y.magnitude)};
      })
      .Case([&](arith::ExtUIOp extension) {
        ConditionTerm c = condition(extension.getIn());
        if (extension.getIn().getType().isInteger(1))
          return IntegerTerm{c.isTrue, logicalOr(c.isTrue, c.isFalse), 1};
        return unknown();
      })
      .Case<arith::ExtSIOp, arith::TruncIOp>([&](auto cast) {
        // What is known fits i32, and nothing narrower may be what it was.
        bool keeps = !cast.getIn().getType().isInteger(1) &&
                     op.getResult(0).getType().getIntOrFloatBitWidth() >= 32;
        return keeps ? of(0) : unknown();
      })
      .Default([](Operation *) { return unknown(); });
}

//===----------------------------------------------------------------------===//
// What matters
//===----------------------------------------------------------------------===//

void CornerTerms::addUse(Value value, const LaunchExpr &isUsed) {
  if (valueOf(isUsed) == 0)
    return;
  LaunchExpr &sum = uses.try_emplace(value, constant(0)).first->second;
  LaunchExpr wider = logicalOr(sum, isUsed);
  if (count(wider) <= maxCount)
    sum = std::move(wider);
}

/// Whether a product with `value` keeps its other factor, as far as one knows:
/// a flag in the shape of a number, or a known 0, may drop it.
LaunchExpr CornerTerms::isFactor(Value value, unsigned depth) const {
  auto nonzero = [&](Value integerValue) {
    IntegerTerm term = integer(integerValue);
    return logicalNot(
        logicalAnd(term.isKnown, isEqual(term.value, constant(0))));
  };
  if (value.getType().isInteger() && !value.getType().isInteger(1) &&
      integers.contains(value) && valueOf(integer(value).isKnown) != 0)
    return nonzero(value);
  Operation *op = value.getDefiningOp();
  if (!op)
    return constant(1);
  if (depth > maxFactorDepth)
    return constant(0);
  if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
    return constant(0);
  auto next = [&](unsigned i) {
    return isFactor(op->getOperand(i), depth + 1);
  };
  if (isa<arith::UIToFPOp, arith::SIToFPOp, arith::ExtUIOp, arith::ExtSIOp>(op))
    return op->getOperand(0).getType().isInteger(1)
               ? condition(op->getOperand(0)).isTrue
               : nonzero(op->getOperand(0));
  if (isa<arith::SelectOp>(op)) {
    ConditionTerm c = condition(op->getOperand(0));
    return logicalOr(logicalAnd(c.isTrue, next(1)),
                     logicalAnd(c.isFalse, next(2)));
  }
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return logicalAnd(next(0), next(1));
  if (isa<arith::NegFOp, math::AbsFOp, math::AbsIOp, arith::ExtFOp,
          arith::TruncFOp>(op))
    return next(0);
  return constant(1);
}

void CornerTerms::spreadUse(Operation &op) {
  LaunchExpr isUsed = constant(0);
  for (Value result : op.getResults())
    isUsed = logicalOr(isUsed, matters(result));
  if (valueOf(isUsed) == 0)
    return;
  auto add = [&](unsigned i, const LaunchExpr &condition) {
    addUse(op.getOperand(i), logicalAnd(isUsed, condition));
  };
  bool isFlag = op.getResult(0).getType().isInteger(1);
  if (isa<arith::SelectOp>(op)) {
    ConditionTerm c = condition(op.getOperand(0));
    add(0, constant(1));
    add(1, c.isTrue);
    add(2, c.isFalse);
  } else if (isa<arith::AndIOp>(op) && isFlag) {
    add(0, condition(op.getOperand(1)).isTrue);
    add(1, condition(op.getOperand(0)).isTrue);
  } else if (isa<arith::OrIOp>(op) && isFlag) {
    add(0, condition(op.getOperand(1)).isFalse);
    add(1, condition(op.getOperand(0)).isFalse);
  } else if (isa<arith::MulFOp, arith::MulIOp, math::FmaOp, arith::AndIOp>(
                 op)) {
    add(0, isFactor(op.getOperand(1)));
    add(1, isFactor(op.getOperand(0)));
    if (op.getNumOperands() == 3)
      add(2, constant(1));
  } else {
    for (unsigned i = 0, e = op.getNumOperands(); i != e; ++i)
      add(i, constant(1));
  }
}
