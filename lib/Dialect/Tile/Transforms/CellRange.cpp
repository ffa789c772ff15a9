//===- CellRange.cpp - ranges of scalar code over many pairs ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CellRange.h"

#include "Divisors.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Value CellRangeReader::number(Type type, double value) {
  TypedAttr attribute = isa<FloatType>(type)
                            ? TypedAttr(b.getFloatAttr(type, value))
                            : b.getIntegerAttr(type, int64_t(value));
  return arith::ConstantOp::create(b, loc(), attribute);
}

Value CellRangeReader::repeat(Operation *op, ValueRange operands) {
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *copy = b.clone(*op, mapping);
  SmallVector<Value> folded;
  if (failed(b.tryFold(copy, folded)) || folded.size() != 1)
    return copy->getResult(0);
  copy->erase();
  return folded.front();
}

Value CellRangeReader::smaller(Value lhs, Value rhs) {
  Type type = lhs.getType();
  if (type.isInteger(1))
    return make<arith::AndIOp>(lhs, rhs);
  return isa<FloatType>(type) ? make<arith::MinimumFOp>(lhs, rhs)
                              : make<arith::MinSIOp>(lhs, rhs);
}

Value CellRangeReader::larger(Value lhs, Value rhs) {
  Type type = lhs.getType();
  if (type.isInteger(1))
    return make<arith::OrIOp>(lhs, rhs);
  return isa<FloatType>(type) ? make<arith::MaximumFOp>(lhs, rhs)
                              : make<arith::MaxSIOp>(lhs, rhs);
}

/// From the least to the greatest of several values.
CellRange CellRangeReader::extremes(ArrayRef<Value> values) {
  CellRange range = {values.front(), values.front()};
  for (Value value : values.drop_front()) {
    range.least = smaller(range.least, value);
    range.greatest = larger(range.greatest, value);
  }
  return range;
}

CellRange CellRangeReader::increase(Operation *op, ArrayRef<CellRange> of) {
  SmallVector<Value> least, greatest;
  for (const CellRange &range : of) {
    least.push_back(range.least);
    greatest.push_back(range.greatest);
  }
  return {repeat(op, least), repeat(op, greatest)};
}

//===----------------------------------------------------------------------===//
// Booleans
//===----------------------------------------------------------------------===//

std::optional<CellRange>
CellRangeReader::compare(arith::CmpIOp op, CellRange lhs, CellRange rhs) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  bool areNonNegative = lhs.isNonNegative() && rhs.isNonNegative();
  auto isSigned = [&](P one, P other) {
    return predicate == one || (areNonNegative && predicate == other);
  };
  if (isSigned(P::sgt, P::ugt) || isSigned(P::sge, P::uge))
    std::swap(lhs, rhs);
  if (isSigned(P::slt, P::ult) || isSigned(P::sgt, P::ugt))
    return CellRange{test(P::slt, lhs.greatest, rhs.least),
                     test(P::slt, lhs.least, rhs.greatest)};
  if (isSigned(P::sle, P::ule) || isSigned(P::sge, P::uge))
    return CellRange{test(P::sle, lhs.greatest, rhs.least),
                     test(P::sle, lhs.least, rhs.greatest)};
  if (predicate != P::eq && predicate != P::ne)
    return std::nullopt;
  if (lhs.least.getType().isInteger(1))
    return std::nullopt;
  CellRange equal = {
      make<arith::AndIOp>(test(P::sle, lhs.greatest, rhs.least),
                          test(P::sle, rhs.greatest, lhs.least)),
      make<arith::AndIOp>(test(P::sle, lhs.least, rhs.greatest),
                          test(P::sle, rhs.least, lhs.greatest))};
  if (predicate == P::eq)
    return equal;
  return CellRange{invert(equal.greatest), invert(equal.least)};
}

std::optional<CellRange> CellRangeReader::boundBoolean(Operation *op,
                                                       ArrayRef<CellRange> of) {
  return llvm::TypeSwitch<Operation *, Optional>(op)
      .Case<arith::AndIOp, arith::OrIOp>([&](auto) { return increase(op, of); })
      .Case([&](arith::XOrIOp) {
        // One of them, and surely not the other.
        auto differ = [&](CellRange l, CellRange r) {
          return make<arith::AndIOp>(l.least, invert(r.greatest));
        };
        Value isEqual = make<arith::OrIOp>(
            make<arith::AndIOp>(of[0].least, of[1].least),
            invert(make<arith::OrIOp>(of[0].greatest, of[1].greatest)));
        return CellRange{
            make<arith::OrIOp>(differ(of[0], of[1]), differ(of[1], of[0])),
            invert(isEqual)};
      })
      .Case<arith::CmpIOp, arith::CmpFOp>(
          [&](auto compared) { return compare(compared, of[0], of[1]); })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<CellRange> CellRangeReader::select(Operation *op,
                                                 CellRange condition,
                                                 CellRange lhs, CellRange rhs) {
  // A minimum of what is not a number and a number hides the number.
  if (isa<FloatType>(op->getResult(0).getType()) &&
      (!lhs.isFinite() || !rhs.isFinite()))
    return std::nullopt;
  auto either = [&](Value one, Value other, Value mixed) {
    return choose(condition.least, one,
                  choose(condition.greatest, mixed, other));
  };
  return CellRange{
      either(lhs.least, rhs.least, smaller(lhs.least, rhs.least)),
      either(lhs.greatest, rhs.greatest, larger(lhs.greatest, rhs.greatest))};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

std::optional<CellRange> CellRangeReader::divide(Operation *op, CellRange lhs,
                                                 int64_t divisor) {
  // What is unsigned here only grows with what is not negative.
  if (isa<arith::DivUIOp, arith::ShRUIOp>(op) && !lhs.isNonNegative())
    return std::nullopt;
  Value rhs = op->getOperand(1);
  Value by = number(rhs.getType(), double(*getIntegerConstant(rhs)));
  CellRange range = {repeat(op, {lhs.least, by}), {}};
  if (lhs.axis && lhs.divisor <= maxDivisor / divisor) {
    range.axis = lhs.axis;
    range.divisor = lhs.divisor * divisor;
    // Cells are aligned.
    if (range.divisor % (lhs.axis == 2 ? cell.queries : cell.keys) == 0) {
      range.greatest = range.least;
      return range;
    }
  }
  range.greatest = repeat(op, {lhs.greatest, by});
  return range;
}

/// x - floor(x / c) c grows with x as long as the quotient is the same.
std::optional<CellRange>
CellRangeReader::remainder(Operation *op, CellRange lhs, int64_t divisor) {
  if (isa<arith::RemUIOp>(op) && !lhs.isNonNegative())
    return std::nullopt;
  Type type = lhs.least.getType();
  Value by = number(type, double(divisor)), last = number(type, divisor - 1.0);
  bool isMask = isa<arith::AndIOp>(op);
  auto quotient = [&](Value value) {
    return isMask ? make<arith::FloorDivSIOp>(value, by)
                  : make<arith::DivSIOp>(value, by);
  };
  Value first = quotient(lhs.least);
  Value isSame = test(arith::CmpIPredicate::eq, first, quotient(lhs.greatest));
  Value base = make<arith::MulIOp>(first, by);
  // Those of negative numbers are negative, unless bits are masked.
  bool isAbove = isMask || lhs.isNonNegative();
  Value below = number(type, isAbove ? 0.0 : 1.0 - double(divisor));
  return CellRange{
      choose(isSame, make<arith::SubIOp>(lhs.least, base), below),
      choose(isSame, make<arith::SubIOp>(lhs.greatest, base), last)};
}

std::optional<CellRange> CellRangeReader::multiply(Operation *op, CellRange lhs,
                                                   CellRange rhs) {
  auto ends = [](CellRange range) {
    return range.isOne() ? SmallVector<Value>{range.least}
                         : SmallVector<Value>{range.least, range.greatest};
  };
  SmallVector<Value> products;
  for (Value one : ends(lhs))
    for (Value other : ends(rhs))
      products.push_back(repeat(op, {one, other}));
  return extremes(products);
}

/// Of one value, not of two that have the same range.
std::optional<CellRange> CellRangeReader::square(Operation *op, CellRange of) {
  Value zero = number(of.least.getType(), 0);
  CellRange ends = extremes({repeat(op, {of.least, of.least}),
                             repeat(op, {of.greatest, of.greatest})});
  bool isFloat = isa<FloatType>(of.least.getType());
  auto isOrdered = [&](Value lhs, Value rhs) {
    return isFloat ? test(arith::CmpFPredicate::OLE, lhs, rhs)
                   : test(arith::CmpIPredicate::sle, lhs, rhs);
  };
  Value hasZero = make<arith::AndIOp>(isOrdered(of.least, zero),
                                      isOrdered(zero, of.greatest));
  ends.least = choose(hasZero, zero, ends.least);
  return ends;
}

/// Nothing is said of what may wrap around.
std::optional<CellRange> CellRangeReader::boundInteger(Operation *op,
                                                       ArrayRef<CellRange> of) {
  if (sizes.mayWrap(op))
    return std::nullopt;
  if (std::optional<int64_t> divisor = getQuotientDivisor(op))
    return divide(op, of[0], *divisor);
  if (std::optional<int64_t> divisor = getRemainderDivisor(op))
    return remainder(op, of[0], *divisor);
  return llvm::TypeSwitch<Operation *, Optional>(op)
      .Case<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(
          [&](auto) { return increase(op, of); })
      .Case([&](arith::SubIOp) {
        return CellRange{make<arith::SubIOp>(of[0].least, of[1].greatest),
                         make<arith::SubIOp>(of[0].greatest, of[1].least)};
      })
      .Case([&](arith::MulIOp) {
        return op->getOperand(0) == op->getOperand(1)
                   ? square(op, of[0])
                   : multiply(op, of[0], of[1]);
      })
      .Case<arith::ShLIOp, arith::ShRSIOp>([&](auto) -> Optional {
        if (!of[1].isOne())
          return std::nullopt;
        return increase(op, of);
      })
      .Case([&](arith::ShRUIOp) -> Optional {
        if (!of[1].isOne() || !of[0].isNonNegative())
          return std::nullopt;
        return increase(op, of);
      })
      .Case([&](math::AbsIOp) {
        Value zero = number(of[0].least.getType(), 0);
        Value below = make<arith::SubIOp>(zero, of[0].greatest);
        Value above = make<arith::SubIOp>(zero, of[0].least);
        Value least = make<arith::MaxSIOp>(of[0].least, below);
        return CellRange{make<arith::MaxSIOp>(least, zero),
                         make<arith::MaxSIOp>(of[0].greatest, above)};
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](auto) -> Optional {
            // A boolean is minus one where it is true; few bits may wrap
            // around.
            auto isShort = [](Type type) {
              return !type.isIndex() && type.getIntOrFloatBitWidth() < 32;
            };
            if (isShort(op->getOperand(0).getType()) ||
                isShort(op->getResult(0).getType()))
              return std::nullopt;
            CellRange range = increase(op, of);
            range.axis = of[0].axis;
            range.divisor = of[0].divisor;
            return range;
          })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) -> Optional {
        if (!op->getOperand(0).getType().isInteger(1) && !of[0].isNonNegative())
          return std::nullopt;
        return increase(op, of);
      })
      .Case([&](arith::FPToSIOp) -> Optional {
        if (!of[0].isFinite())
          return std::nullopt;
        return increase(op, of);
      })
      .Case([&](arith::SelectOp) { return select(op, of[0], of[1], of[2]); })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

std::optional<CellRange> CellRangeReader::bound(Operation *op,
                                                ArrayRef<CellRange> of) {
  Type type = op->getResult(0).getType();
  if (type.isInteger(1))
    return isa<arith::SelectOp>(op) ? select(op, of[0], of[1], of[2])
                                    : boundBoolean(op, of);
  return type.isIntOrIndex() ? boundInteger(op, of) : boundFloat(op, of);
}

/// What is not in the region is one value.
std::optional<CellRange> CellRangeReader::find(Value value) const {
  if (value.getParentBlock() == &region)
    return known.lookup(value);
  if (ofScalar)
    value = ofScalar(value);
  CellRange range = {value, value};
  describeConstant(value, range);
  return range;
}

std::optional<CellRange> CellRangeReader::computeByRule(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  SmallVector<CellRange> of;
  for (Value operand : op->getOperands()) {
    Optional range = find(operand);
    if (!range)
      return std::nullopt;
    of.push_back(*range);
  }
  Optional range;
  if (llvm::all_of(of, [](const CellRange &range) { return range.isOne(); })) {
    range = increase(op, of);
    range->greatest = range->least;
  } else {
    range = bound(op, of);
  }
  if (range && !sizes.mayWrap(op))
    describe(op, of, *range);
  return range;
}

std::optional<CellRange> CellRangeReader::compute(Operation *op) {
  Optional range = computeByRule(op);
  if (range || !ofData || op->getNumResults() != 1)
    return range;
  Value result = op->getResult(0);
  bool isBoolean = result.getType().isInteger(1);
  unsigned axis = axes.lookup(result);
  if ((axis == 1 || axis == 2) && (isBoolean || result.getType().isInteger(32)))
    return ofData(result, axis == 1);
  if (!isBoolean)
    return std::nullopt;
  return CellRange{number(result.getType(), 0), number(result.getType(), 1)};
}

std::optional<CellRange> CellRangeReader::read(ValueRange arguments,
                                               Value root) {
  // Before code is added.
  SmallVector<Operation *> ops = llvm::map_to_vector(
      region.without_terminator(), [](Operation &op) { return &op; });
  for (unsigned number = 0; number != 4; ++number) {
    Value first = arguments[number];
    CellRange range = {first, first};
    if (number >= 2) {
      int64_t size = number == 2 ? cell.queries : cell.keys;
      if (size != 1)
        range.greatest = make<arith::AddIOp>(
            first, this->number(first.getType(), size - 1.0));
      range.axis = number;
    }
    range.floor = 0;
    known[region.getArgument(number)] = range;
    axes[region.getArgument(number)] = number < 2 ? 0 : number - 1;
  }
  for (Operation *op : ops) {
    for (Value result : op->getResults())
      for (Value operand : op->getOperands())
        axes[result] |= axes.lookup(operand);
    if (Optional range = compute(op))
      known[op->getResult(0)] = *range;
  }
  return find(root);
}
