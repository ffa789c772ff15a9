//===- Offsets.cpp - elements that are one value plus constants -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The columns of a lane are its first one plus constants, and so are their
// distances from a row. Sums keep this form; what is done with them then costs
// one operation with an immediate operand per element, and no registers but for
// the first.
//
// That base + c is not below base needs a proof where it is compared or
// converted: it is known of positions, coordinates plus or minus each other and
// numbers that are the same for all elements, that do not wrap around
// (IntegerSizes.h). A conversion that leads to a decision rounds once and stays
// as it is.
//
//===----------------------------------------------------------------------===//

#include "Offsets.h"

#include "Integers.h"
#include "MaskWords.h"
#include "Quotients.h"
#include "Remainders.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Attn/IR/IntegerSizes.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Support/Predicates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// Whether the quotients that an index is made of, by sums and products, are
/// those of positions.
static bool dividesPositions(Value index,
                             function_ref<bool(Value)> isPosition) {
  llvm::SetVector<Value> values;
  values.insert(index);
  for (size_t number = 0; number < values.size(); ++number) {
    Value value = values[number];
    if (std::optional<Quotient> quotient = Quotient::match(value)) {
      if (!isPosition(quotient->dividend))
        return false;
      continue;
    }
    if (Operation *op = value.getDefiningOp())
      if (isa<BroadcastOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
        values.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

Positions Positions::plan(gpu::GPUFuncOp function, const DecisionPaths &exact) {
  Positions positions;
  // Operations come before their users.
  DenseSet<Value> known;
  auto isPosition = [&](Value value) {
    return value.getType().isInteger(32) || known.contains(value);
  };
  IntegerSizes sizes([](Value value) {
    if (auto splat = value.getDefiningOp<SplatOp>())
      return splat.getScalar();
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    return broadcast ? broadcast.getValue() : value;
  });
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isSum = isa<BroadcastOp, arith::AddIOp, arith::SubIOp>(op) &&
                 llvm::all_of(op->getOperands(), isPosition) &&
                 !sizes.mayWrap(op);
    if (isSum || isa<CoordsOp, SplatOp>(op))
      known.insert(op->getResult(0));
    if (isa<arith::SubIOp>(op) && Remainder::match(op->getResult(0)))
      positions.remainders.insert(op);
    if (auto gather = dyn_cast<GatherOp>(op)) {
      if (llvm::all_of(gather.getIndices(), [&](Value index) {
            return dividesPositions(index, isPosition);
          }))
        positions.digits.insert(op);
      for (OpOperand &index : gather.getIndicesMutable()) {
        std::optional<Quotient> quotient = Quotient::match(index.get());
        if (quotient && isPosition(quotient->dividend))
          positions.operands.insert({op, index.getOperandNumber()});
      }
    }
    auto cast = dyn_cast<CastOp>(op);
    if (!isa<arith::CmpIOp>(op) &&
        !(cast && cast.getKind() == CastKind::SIToFP && !exact.contains(op)))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      std::pair<Operation *, unsigned> place = {op, operand.getOperandNumber()};
      if (isPosition(operand.get()))
        positions.operands.insert(place);
      std::optional<Remainder> remainder = Remainder::match(operand.get());
      if (remainder && isPosition(remainder->dividend))
        positions.dividends.insert(place);
    }
  });
  return positions;
}

//===----------------------------------------------------------------------===//
// Values plus constants
//===----------------------------------------------------------------------===//

Offset Offset::split(Value value) {
  Offset result = {value, 0};
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return {Value(), *number};
  while (auto add = result.base.getDefiningOp<arith::AddIOp>()) {
    std::optional<int64_t> number = getConstantIntValue(add.getRhs());
    if (!number)
      break;
    result = {add.getLhs(), result.constant + *number};
  }
  return result;
}

static SmallVector<Offset> splitAll(ArrayRef<Value> values) {
  return llvm::map_to_vector(values, Offset::split);
}

static bool shareBases(ArrayRef<Offset> offsets) {
  llvm::SmallDenseMap<Value, int64_t> first;
  for (const Offset &offset : offsets) {
    if (!offset.base)
      continue;
    auto [place, isNew] = first.insert({offset.base, offset.constant});
    if (!isNew && place->second != offset.constant)
      return true;
  }
  return false;
}

OffsetRows OffsetRows::group(ArrayRef<Offset> offsets, ArrayRef<Value> limits,
                             ArrayRef<layout::Coord> coords) {
  OffsetRows rows;
  if (!shareBases(offsets))
    return rows;
  llvm::SmallDenseMap<std::tuple<Value, Value, int64_t>, size_t> places;
  for (auto [number, offset] : llvm::enumerate(offsets)) {
    Value limit = limits[number];
    auto [place, isNew] = places.insert(
        {{limit, offset.base, coords[number].row}, rows.groups.size()});
    if (isNew)
      rows.groups.push_back({offset.base, limit, {}, {}});
    OffsetRow &row = rows.groups[place->second];
    row.numbers.push_back(number);
    row.constants.push_back(offset.constant);
  }
  return rows;
}

std::optional<SmallVector<Value>>
attn::warp::addOffsets(Operation *op, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                       const Positions &positions, OpBuilder &builder) {
  bool isSum = isa<arith::AddIOp>(op);
  if (positions.remainders.contains(op) ||
      !lhs.front().getType().isInteger(32) ||
      !(isSum || isa<arith::SubIOp>(op)))
    return std::nullopt;
  SmallVector<Offset> left = splitAll(lhs), right = splitAll(rhs);
  if (!shareBases(left) && !shareBases(right))
    return std::nullopt;
  Location loc = op->getLoc();
  Integers ints(builder, loc);
  llvm::SmallDenseMap<std::pair<Value, Value>, Value> bases;
  SmallVector<Value> result;
  for (auto [a, b] : llvm::zip_equal(left, right)) {
    int64_t constant = a.constant + (isSum ? b.constant : -b.constant);
    Value &base = bases[{a.base, b.base}];
    if (!base && (!b.base || (isSum && !a.base)))
      base = b.base ? b.base : a.base;
    else if (!base) {
      Value first = a.base ? a.base : ints.constant(0);
      base =
          isSum
              ? arith::AddIOp::create(builder, loc, first, b.base).getResult()
              : arith::SubIOp::create(builder, loc, first, b.base).getResult();
    }
    // Sums are modulo 2^32, whatever their order.
    result.push_back(base ? ints.add(base, int32_t(constant))
                          : ints.constant(int32_t(constant)));
  }
  return result;
}

std::optional<SmallVector<Value>>
attn::warp::compareOffsets(arith::CmpIOp op, ArrayRef<Value> lhs,
                           ArrayRef<Value> rhs, ArrayRef<layout::Coord> coords,
                           const Positions &positions, OpBuilder &builder) {
  if (!lhs.front().getType().isInteger(32) ||
      arith::CmpIPredicate::ult <= op.getPredicate())
    return std::nullopt;
  OffsetRows left, right;
  if (positions.has(op, 0))
    left = OffsetRows::group(splitAll(lhs), rhs, coords);
  if (positions.has(op, 1))
    right = OffsetRows::group(splitAll(rhs), lhs, coords);
  bool isLeft = left.isBetter(right);
  const OffsetRows &rows = isLeft ? left : right;
  if (rows.groups.empty())
    return std::nullopt;
  // A difference that saturates is beyond these, and their sums with a lane's
  // columns are not.
  constexpr int64_t mostConstant = int64_t(1) << 30;
  for (const OffsetRow &row : rows.groups)
    if (llvm::any_of(row.constants, [](int64_t constant) {
          return std::abs(constant) >= mostConstant;
        }))
      return std::nullopt;
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  auto subtract = [&](Value from, Value what) -> Value {
    if (!what)
      return from;
    Value first = from ? from : ints.constant(0);
    return LLVM::SSubSat::create(builder, loc, first.getType(), first, what);
  };
  arith::CmpIPredicate predicate = op.getPredicate();
  // base + column `ofColumn` limit.
  arith::CmpIPredicate ofColumn = isLeft ? predicate : swapSides(predicate);
  llvm::SmallDenseMap<std::pair<Value, Value>, Value> differences;
  SmallVector<Value> result(lhs.size());
  for (const OffsetRow &row : rows.groups) {
    Value limit = row.limit, base = row.base;
    ArrayRef<size_t> numbers = row.numbers;
    ArrayRef<int64_t> columns = row.constants;
    SmallVector<int64_t> minusColumns =
        llvm::map_to_vector(columns, [](int64_t column) { return -column; });
    auto getDifference = [&](Value from, Value what) -> Value {
      Value &difference = differences[{from, what}];
      if (!difference)
        difference = subtract(from, what);
      return difference;
    };
    // The columns of a distance of a row to them: from the other side.
    std::optional<SmallVector<Value>> tests;
    if (areLaneColumns(minusColumns))
      tests = testColumns(builder, loc, swapSides(ofColumn), minusColumns,
                          getDifference(base, limit));
    Value difference;
    if (!tests) {
      difference = getDifference(limit, base);
      tests = testColumns(builder, loc, ofColumn, columns, difference);
    }
    if (tests) {
      for (auto [number, test] : llvm::zip_equal(numbers, *tests))
        result[number] = test;
      continue;
    }
    for (auto [number, column] : llvm::zip_equal(numbers, columns)) {
      Value constant = ints.constant(column);
      result[number] = arith::CmpIOp::create(builder, loc, predicate,
                                             isLeft ? constant : difference,
                                             isLeft ? difference : constant);
    }
  }
  return result;
}

std::optional<SmallVector<Value>>
attn::warp::convertOffsets(CastOp op, ArrayRef<Value> values,
                           const Positions &positions, OpBuilder &builder) {
  Type type = op.getResult().getType().getElementType();
  if (op.getKind() != CastKind::SIToFP || !type.isF32() ||
      !values.front().getType().isInteger(32) || !positions.has(op, 0))
    return std::nullopt;
  SmallVector<Offset> offsets = splitAll(values);
  if (!shareBases(offsets))
    return std::nullopt;
  Location loc = op.getLoc();
  llvm::SmallDenseMap<Value, Value> bases;
  SmallVector<Value> result;
  for (const Offset &offset : offsets) {
    Value &base = bases[offset.base];
    if (!base) {
      Value integer =
          offset.base ? offset.base : Integers(builder, loc).constant(0);
      base = arith::SIToFPOp::create(builder, loc, type, integer);
    }
    Value number = arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(float(offset.constant)));
    result.push_back(
        offset.constant == 0
            ? base
            : arith::AddFOp::create(builder, loc, base, number).getResult());
  }
  return result;
}

std::optional<SmallVector<Value>>
attn::warp::scaleOffsets(math::FmaOp op, ArrayRef<Value> numbers,
                         ArrayRef<Value> factors, ArrayRef<Value> addends,
                         OpBuilder &builder) {
  if (!arith::bitEnumContainsAll(op.getFastmath(),
                                 arith::FastMathFlags::reassoc))
    return std::nullopt;
  struct Part {
    Value base;
    FloatAttr constant; // or null
  };
  SmallVector<Part> parts;
  for (Value number : numbers) {
    Part part = {number, nullptr};
    if (auto sum = number.getDefiningOp<arith::AddFOp>();
        sum && matchPattern(sum.getRhs(), m_Constant(&part.constant)))
      part.base = sum.getLhs();
    parts.push_back(part);
  }
  llvm::SmallDenseMap<std::tuple<Value, Value, Value>, Value> firsts;
  for (auto [part, factor, addend] : llvm::zip_equal(parts, factors, addends))
    firsts[{part.base, factor, addend}];
  if (2 * firsts.size() > parts.size())
    return std::nullopt;
  Location loc = op.getLoc();
  SmallVector<Value> result;
  for (auto [part, factor, addend] : llvm::zip_equal(parts, factors, addends)) {
    Value &first = firsts[{part.base, factor, addend}];
    if (!first)
      first = math::FmaOp::create(builder, loc, part.base, factor, addend);
    if (!part.constant) {
      result.push_back(first);
      continue;
    }
    Value constant = arith::ConstantOp::create(builder, loc, part.constant);
    result.push_back(
        math::FmaOp::create(builder, loc, factor, constant, first));
  }
  return result;
}
