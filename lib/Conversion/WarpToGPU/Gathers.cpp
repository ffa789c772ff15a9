//===- Gathers.cpp - elements of global memory to fragments -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gathers.h"

#include "Gatherer.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

SmallVector<Value>
Gatherer::choose(Value condition, ArrayRef<Type> types,
                 function_ref<SmallVector<Value>()> then,
                 function_ref<SmallVector<Value>()> otherwise) {
  auto branch =
      scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return llvm::to_vector_of<Value>(branch.getResults());
}

bool Gatherer::findBlocks() {
  for (unsigned dim = indices.size(); dim-- > 0;) {
    if (!positions.has(op, op.getIndicesMutable()[dim].getOperandNumber()))
      continue;
    std::optional<QuotientRow> row = QuotientRow::match(b, loc, indices[dim]);
    if (!row)
      continue;
    blocks = {dim, *row};
    return true;
  }
  return false;
}

/// One load for each block that elements may lie in, of which an element has
/// its own or that of the next.
SmallVector<Value> Gatherer::loadBlocks() {
  unsigned dim = blocks.first;
  const QuotientRow &row = blocks.second;
  Integers ints(b, loc);
  // By the other indices, and the number of the block.
  SmallVector<SmallVector<Value>> places, loaded;
  auto get = [&](size_t place, int64_t number) {
    Value &value = loaded[place][number];
    if (!value) {
      SmallVector<Value> at = places[place];
      at[dim] = ints.add(row.first, number);
      // A block in which no element lies may be outside.
      value = loadAt(at, /*isSure=*/false);
    }
    return value;
  };
  SmallVector<Value> result;
  for (auto [reg, element] : llvm::enumerate(elements)) {
    SmallVector<Value> at = element;
    at[dim] = row.first;
    size_t place = llvm::find(places, at) - places.begin();
    if (place == places.size()) {
      places.push_back(at);
      loaded.emplace_back(row.count);
    }
    auto [number, isBehind] = row.places[slice(dim, reg)];
    Value value = get(place, number);
    if (isBehind)
      value = arith::SelectOp::create(b, loc, isBehind, get(place, number + 1),
                                      value);
    result.push_back(value);
  }
  return result;
}

Gatherer::Term Gatherer::getTerm(unsigned dim, Value index) {
  Term &term = terms[dim][index];
  if (!term.bytes) {
    Value wide = addresses.fromInt(index);
    term.bytes = addresses.mul(addresses.mul(wide, view.strides[dim]),
                               view.elementBytes);
    term.inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, wide,
                                        view.sizes[dim]);
  }
  return term;
}

/// The address of an element outside is replaced by that of element 0, its
/// value by zero.
Value Gatherer::loadAt(ArrayRef<Value> at, bool isSure) {
  Value offset, inside;
  for (auto [dim, index] : llvm::enumerate(at)) {
    Term term = getTerm(dim, index);
    offset = offset ? addresses.add(offset, term.bytes) : term.bytes;
    inside =
        inside ? arith::AndIOp::create(b, loc, inside, term.inside).getResult()
               : term.inside;
  }
  if (!offset) // rank 0
    offset = addresses.constant(0);
  if (isSure || !inside)
    return load(addresses.toPointer(addresses.add(view.address, offset)));
  Value safe =
      arith::SelectOp::create(b, loc, inside, offset, addresses.constant(0));
  Value loaded = load(addresses.toPointer(addresses.add(view.address, safe)));
  return arith::SelectOp::create(b, loc, inside, loaded, zero);
}

SmallVector<Value> Gatherer::loadEach(bool isSure) {
  // What one branch computes the other one does not have.
  for (auto &known : terms)
    known.clear();
  return llvm::map_to_vector(
      elements, [&](ArrayRef<Value> at) { return loadAt(at, isSure); });
}

/// Whether all elements of the lane are there: one test of the largest index in
/// each dimension, where negative ones are large ones.
Value Gatherer::areAllThere() {
  Value all;
  for (auto [dim, size] : llvm::enumerate(view.sizes)) {
    SetVector<Value> own;
    for (ArrayRef<Value> at : elements)
      own.insert(at[dim]);
    Value largest;
    for (Value index : own)
      largest = largest
                    ? arith::MaxUIOp::create(b, loc, largest, index).getResult()
                    : index;
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), largest);
    require(all, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, wide,
                                       size));
  }
  return all;
}

/// Elements of which nothing is known: tested together, if a lane has many, and
/// one by one where one of them is not there.
SmallVector<Value> Gatherer::loadAny() {
  bool inBlocks = findBlocks();
  if (areInside || elements.size() < leastGrid || inBlocks)
    return loadUnlessEmpty(inBlocks);
  return choose(
      areAllThere(), elementTypes(elements.size()),
      [&] { return loadEach(/*isSure=*/true); },
      [&] { return loadUnlessEmpty(/*inBlocks=*/false); });
}

/// An empty memref is not read at all.
SmallVector<Value> Gatherer::loadUnlessEmpty(bool inBlocks) {
  auto loadAll = [&] { return inBlocks ? loadBlocks() : loadEach(areInside); };
  if (areInside)
    return loadAll();
  Value nonEmpty;
  for (Value size : view.sizes)
    if (getConstantIntValue(size).value_or(0) <= 0)
      require(nonEmpty, arith::CmpIOp::create(
                            b, loc, arith::CmpIPredicate::sgt, size,
                            arith::ConstantIntOp::create(b, loc, 0, 64)));
  if (!nonEmpty)
    return loadAll();
  return choose(nonEmpty, elementTypes(elements.size()), loadAll,
                [&] { return SmallVector<Value>(elements.size(), zero); });
}

/// Elements each index of which is the same but for a constant: steps from one
/// address, where all of them are there. None if they are not of that kind.
std::optional<SmallVector<Value>> Gatherer::loadGrid() {
  struct Axis {
    Value base;
    int64_t first = std::numeric_limits<int64_t>::max(), last = -first;
  };
  SmallVector<Axis> axes(view.sizes.size());
  SmallVector<SmallVector<int64_t>> steps;
  for (ArrayRef<Value> at : elements) {
    SmallVector<int64_t> &own = steps.emplace_back();
    for (auto [axis, index] : llvm::zip_equal(axes, at)) {
      Offset offset = Offset::split(index);
      if (steps.size() == 1)
        axis.base = offset.base;
      if (offset.base != axis.base)
        return std::nullopt;
      axis.first = std::min(axis.first, offset.constant);
      axis.last = std::max(axis.last, offset.constant);
      own.push_back(offset.constant);
    }
  }
  if (axes.empty() || elements.size() < leastGrid)
    return std::nullopt;

  SmallVector<Value> firsts;
  Value all;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    Value first = addresses.constant(axis.first);
    if (axis.base)
      first = addresses.add(addresses.fromInt(axis.base), first);
    firsts.push_back(first);
    // An index is below 2^31: none of those between wraps around.
    for (int64_t end : {int64_t(0), axis.last - axis.first})
      require(all, arith::CmpIOp::create(
                       b, loc, arith::CmpIPredicate::ult,
                       addresses.add(first, addresses.constant(end)),
                       view.sizes[dim]));
  }
  auto loadAll = [&] {
    Value origin = view.addressOf(b, loc, firsts);
    llvm::DenseMap<std::pair<unsigned, int64_t>, Value> moves;
    auto moveBy = [&](unsigned dim, int64_t step) {
      Value &move = moves[{dim, step}];
      if (!move)
        move = addresses.mul(view.strides[dim], step * view.elementBytes);
      return move;
    };
    return llvm::map_to_vector(steps, [&](ArrayRef<int64_t> own) {
      Value address = origin;
      int64_t bytes = 0;
      for (auto [dim, constant] : llvm::enumerate(own)) {
        int64_t step = constant - axes[dim].first;
        if (dim + 1 == own.size() && view.isContiguous())
          bytes = step * view.elementBytes;
        else if (step != 0)
          address = addresses.add(address, moveBy(dim, step));
      }
      return load(offsetBy(b, loc, addresses.toPointer(address), bytes));
    });
  };
  if (areInside)
    return loadAll();
  return choose(all, elementTypes(elements.size()), loadAll,
                [&] { return loadUnlessEmpty(findBlocks()); });
}

SmallVector<Value> Gatherer::run() {
  if (findRuns(/*clamped=*/false) || findRuns(/*clamped=*/true))
    return loadRuns();
  if (std::optional<SmallVector<Value>> values = loadGrid())
    return *values;
  if (positions.hasDigits(op))
    if (std::optional<SmallVector<Value>> values = loadDigits())
      return *values;
  return loadAny();
}

namespace {

/// One load per element; where elements lie behind one another, and are all
/// there, at one address plus constants.
struct LowerGather final : OpConversionPattern<GatherOp> {
  LowerGather(const TypeConverter &converter, MLIRContext *context,
              const Positions &positions)
      : OpConversionPattern(converter, context), positions(positions) {}

  LogicalResult
  matchAndRewrite(GatherOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    SmallVector<SmallVector<Value>> indices;
    for (ValueRange values : adaptor.getIndices())
      indices.push_back(llvm::to_vector(values));
    SmallVector<Value> result =
        Gatherer(rewriter, op, indices, *view, positions).run();
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithMultiple(
        op, {pack(rewriter, loc, op.getResult().getType(), result)});
    return success();
  }

private:
  const Positions &positions;
};

} // namespace

void attn::warp::populateGatherPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Positions &positions) {
  patterns.add<LowerGather>(converter, patterns.getContext(), positions);
}
