//===- SymbolEmitter.cpp - symbols of a visit set as values ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SymbolEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn::tile;

/// Beyond every i32, and far from overflowing sums and products.
static constexpr int64_t infinity = int64_t(1) << 32;

/// Whether a symbol may be any number of 64 bits, as those that say "no limit".
static bool isLong(const SymbolSource &source) {
  switch (source.kind) {
  case SymbolSource::Kind::Scalar:
  case SymbolSource::Kind::LeastOfRows:
  case SymbolSource::Kind::GreatestOfRows:
    return getElementTypeOrSelf(source.value).isInteger(64);
  default:
    return false;
  }
}

Value SymbolEmitter::linear(const LinearForm &form, int64_t factor,
                            int64_t extra) {
  Value sum;
  for (auto [symbol, coefficient] : form.terms) {
    Value term = getSymbol(symbol);
    if (isLong(problem.symbols.find(symbol)->second)) {
      // Beyond all positions; sums of a few terms do not wrap around.
      int64_t most = (int64_t(1) << 61) /
                     std::max<int64_t>(std::abs(coefficient * factor), 1);
      term = max(min(term, constant(most)), constant(-most));
    }
    if (coefficient * factor != 1)
      term = fold<arith::MulIOp>(term, constant(coefficient * factor));
    sum = sum ? add(sum, term) : term;
  }
  int64_t number = form.constant * factor + extra;
  if (!sum)
    return constant(number);
  return number == 0 ? sum : add(sum, constant(number));
}

Value SymbolEmitter::toIndex(Value integer) {
  if (integer.getType().isIndex())
    return integer;
  if (integer.getType().isInteger(1))
    return builder.createOrFold<arith::IndexCastUIOp>(
        loc, builder.getIndexType(), integer);
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getIndexType(),
                                                  integer);
}

Value SymbolEmitter::toI32(Value index) {
  if (index.getType().isInteger(32))
    return index;
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getI32Type(),
                                                  index);
}

Value SymbolEmitter::getSymbol(unsigned symbol) {
  Value &value = symbols[symbol];
  if (!value) {
    Value emitted = emitSymbol(problem.symbols.find(symbol)->second);
    // Emission may have asked for others.
    return symbols[symbol] = emitted;
  }
  return value;
}

Value SymbolEmitter::emitSymbol(const SymbolSource &source) {
  switch (source.kind) {
  case SymbolSource::Kind::Scalar:
    return toIndex(source.value);
  case SymbolSource::Kind::Quotient:
    return floorDiv(linear(source.limit, 1, 0), source.divisor);
  case SymbolSource::Kind::LeastOfRows:
  case SymbolSource::Kind::GreatestOfRows:
    return emitRowBound(source);
  case SymbolSource::Kind::KeysAtMost:
  case SymbolSource::Kind::KeysBelow:
    return emitKeyCount(source);
  }
  llvm_unreachable("no other kind");
}

/// 0 <= index < size of the dimension.
Value SymbolEmitter::isInRange(Value view, unsigned dimension, Value index) {
  Value size = builder.createOrFold<memref::DimOp>(loc, view, dimension);
  Value above = notBelow(index, constant(0));
  Value below = builder.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::slt, index, size);
  return conjoin(above, below);
}

/// The element, of index type, or `otherwise` where `condition` is false.
Value SymbolEmitter::loadOr(Value view, ValueRange indices, Value condition,
                            Value otherwise) {
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder &b, Location loc) {
        Value element = memref::LoadOp::create(b, loc, view, indices);
        if (!element.getType().isIndex())
          element =
              arith::IndexCastOp::create(b, loc, b.getIndexType(), element);
        scf::YieldOp::create(b, loc, element);
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, otherwise);
      });
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// Elements of the rows
//===----------------------------------------------------------------------===//

/// The last row of the block that exists.
Value SymbolEmitter::getLastRow() {
  Value last = constant(problem.numTileRows - 1);
  // The rows of the block are those of the queries, loaded before the loop.
  for (auto load : loop->getBlock()->getOps<LoadOp>()) {
    auto type = cast<VectorType>(load.getResult().getType());
    if (!load->isBeforeInBlock(loop) || type.getRank() != 2 ||
        load.getSlices() != 1 || type.getDimSize(0) != problem.numTileRows)
      continue;
    unsigned dimension = load.getIndices().size() - 2;
    Value first = load.getIndices()[dimension];
    Value size =
        builder.createOrFold<memref::DimOp>(loc, load.getView(), dimension);
    Value rest = sub(sub(size, constant(1)), first);
    return max(min(last, rest), constant(0));
  }
  return last;
}

Value SymbolEmitter::emitAtRow(Value value, Value row, Value &valid,
                               DenseMap<Value, Value> &known) {
  value = ScoresOp::resolve(value);
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return value;
  if (Value done = known.lookup(value))
    return done;
  Type element = getElementTypeOrSelf(value);
  Operation *op = value.getDefiningOp();
  auto emitted = [&](Value operand) {
    return emitAtRow(operand, row, valid, known);
  };
  Value result;
  if (std::optional<int64_t> number = getIntegerConstant(value)) {
    result = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(element, *number));
  } else if (auto coords = dyn_cast<CoordsOp>(op)) {
    result = fold<arith::AddIOp>(coords.getBase(), toI32(row));
  } else if (auto search = dyn_cast<SearchOp>(op)) {
    SmallVector<Value> indices =
        llvm::map_to_vector(search.getIndices(), emitted);
    result = SearchOp::create(builder, loc, element, search.getView(), indices,
                              emitted(search.getValue()));
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    SmallVector<Value> indices;
    Value inside;
    for (auto [dimension, index] : llvm::enumerate(gather.getIndices())) {
      indices.push_back(toIndex(emitted(index)));
      Value isInside = isInRange(gather.getView(), dimension, indices.back());
      inside = inside ? conjoin(inside, isInside) : isInside;
    }
    valid = conjoin(valid, inside);
    result = builder.createOrFold<arith::IndexCastOp>(
        loc, element, loadOr(gather.getView(), indices, inside, constant(0)));
  } else {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), emitted);
    OperationState state(loc, op->getName(), operands, element,
                         op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    result = builder.create(state)->getResult(0);
  }
  return known[value] = result;
}

/// The least or the greatest value of the rows. It stands at one end of the
/// block if no index is out of range at either.
Value SymbolEmitter::emitRowBound(const SymbolSource &source) {
  bool isLeast = source.kind == SymbolSource::Kind::LeastOfRows;
  Value valid = arith::ConstantIntOp::create(builder, loc, 1, 1);
  DenseMap<Value, Value> first, last;
  Value atFirst = emitAtRow(source.value, constant(0), valid, first);
  Value atLast = emitAtRow(source.value, getLastRow(), valid, last);
  Value bound = toIndex(isLeast == source.isIncreasing ? atFirst : atLast);
  return select(valid, bound, constant(isLeast ? -infinity : infinity));
}

//===----------------------------------------------------------------------===//
// Elements of the keys
//===----------------------------------------------------------------------===//

Value SymbolEmitter::emitKeyCount(const SymbolSource &source) {
  Value limit = floorDiv(linear(source.limit, 1, 0), source.divisor);
  Operation *op = source.value.getDefiningOp();
  if (auto gather = dyn_cast<GatherOp>(op))
    return emitGatherCount(source, gather, limit);
  return emitSearchBound(source, cast<SearchOp>(op), limit);
}

/// y(c) is element c: a search for the limit counts those that are not above.
Value SymbolEmitter::emitGatherCount(const SymbolSource &source,
                                     GatherOp gather, Value limit) {
  constexpr int64_t largest = std::numeric_limits<int32_t>::max();
  bool isUpper = source.kind == SymbolSource::Kind::KeysAtMost;
  Value view = gather.getView();
  SmallVector<Value> indices;
  Value valid = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (auto [dimension, index] :
       llvm::enumerate(gather.getIndices().drop_back())) {
    std::optional<int64_t> number = getIntegerConstant(index);
    Value scalar =
        number ? Value(arith::ConstantIntOp::create(builder, loc, *number, 32))
               : ScoresOp::resolve(index);
    indices.push_back(scalar);
    valid = conjoin(valid, isInRange(view, dimension, toIndex(scalar)));
  }
  // After its end the memref reads 0, which is not sorted.
  if (isUpper) {
    unsigned dimension = cast<MemRefType>(view.getType()).getRank() - 1;
    Value size = builder.createOrFold<memref::DimOp>(loc, view, dimension);
    Value keys = problem.numKeys ? linear(*problem.numKeys, 1, 0)
                                 : linear(problem.problem.upperBound,
                                          problem.problem.numColumns, 0);
    valid = conjoin(valid, notBelow(size, keys));
  } else {
    // No element is below the least number.
    valid = conjoin(valid, notBelow(limit, constant(-largest - 1)));
  }
  Value inRange = max(min(limit, constant(largest)), constant(-largest - 1));
  Value count = SearchOp::create(builder, loc, builder.getI32Type(), view,
                                 indices, toI32(inRange));
  return select(valid, toIndex(count), constant(isUpper ? infinity : 0));
}

/// y(c) counts the elements that are not above c - offset: it is not above the
/// limit before element number `limit`.
Value SymbolEmitter::emitSearchBound(const SymbolSource &source,
                                     SearchOp search, Value limit) {
  Value view = search.getView();
  SmallVector<Value> indices;
  Value valid;
  auto addIndex = [&](unsigned dimension, Value index) {
    indices.push_back(index);
    Value inside = isInRange(view, dimension, index);
    valid = valid ? conjoin(valid, inside) : inside;
  };
  for (auto [dimension, index] : llvm::enumerate(search.getIndices())) {
    std::optional<int64_t> number = getIntegerConstant(index);
    addIndex(dimension,
             number ? constant(*number) : toIndex(ScoresOp::resolve(index)));
  }
  addIndex(indices.size(), limit);
  Value isSome = notBelow(limit, constant(0));
  Value otherwise = select(isSome, constant(infinity), constant(-infinity));
  Value element = loadOr(view, indices, valid, otherwise);
  return add(element, linear(source.offset, 1, 0));
}
