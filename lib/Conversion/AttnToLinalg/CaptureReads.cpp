//===- CaptureReads.cpp - what regions read of captured tensors -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/CaptureReads.h"

#include "ScalarBody.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;

namespace {

/// An index of a captured tensor.
struct Read {
  unsigned capture, dim;
  Value index, size; // index
  Value isOutside;
};

/// Builds one region at one position.
class TaintedBody {
public:
  TaintedBody(ImplicitLocOpBuilder &b, Region &region, ValueRange positions,
              ValueRange captures);

  /// What the region yields; null where it depends on x.
  Value value() { return values.lookupOrNull(yielded); }
  Value taint() { return taints.lookup(yielded); }
  ArrayRef<Read> reads() const { return allReads; }

private:
  void build(Operation &op);
  void buildRead(Operation &op, Value buffer, ValueRange indices);
  Value buildTaint(Operation &op);
  /// Of a product, whose factors 0 drop the other, or of a disjunction, where
  /// `drops` is 1.
  Value buildProductTaint(Value lhs, Value rhs, int64_t drops = 0);
  /// That an operand leaves the other its say; null where it always does.
  Value buildKeeps(Value value, int64_t drops);
  Value buildOr(Value lhs, Value rhs);
  bool isKnown(Value value) { return values.contains(value); }

  ImplicitLocOpBuilder &b;
  Value yielded;
  unsigned firstCapture;
  IRMapping values;                    // of those that do not depend on x
  llvm::DenseMap<Value, Value> taints; // none: false
  SmallVector<Read> allReads;
};

/// The function that looks.
class CaptureReadsBuilder {
public:
  CaptureReadsBuilder(func::FuncOp function, ScoredOp op)
      : op(op), b(op.getLoc(), op), index(b.getIndexType()),
        integer(b.getI64Type()), function(function) {}

  void build();

private:
  using Finding = SmallVector<Value>; // as in CaptureFinding
  using Body = llvm::function_ref<Finding(ValueRange position, Finding)>;

  Finding buildLoops(ValueRange sizes, Finding first, Body body);
  Finding buildPosition(ValueRange position, Finding before);
  Finding buildOrder(unsigned capture, Finding before);
  Finding buildStep(Value buffer, unsigned capture, ValueRange place,
                    Finding before);
  Finding chooseRead(TaintedBody &body, ValueRange position);
  /// `make` where `condition` holds, else `otherwise`.
  Finding buildIf(Value condition, Finding otherwise,
                  llvm::function_ref<Finding()> make);

  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value constantIndex(int64_t value) {
    return arith::ConstantOp::create(b, b.getIndexAttr(value));
  }
  Value toInteger(Value value) {
    return arith::IndexCastOp::create(b, integer, value);
  }
  Value isNothing(const Finding &finding) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, finding.front(),
                                 constant(CaptureFinding::None));
  }

  ScoredOp op;
  ImplicitLocOpBuilder b;
  Type index, integer;
  func::FuncOp function;
};

} // namespace

//===----------------------------------------------------------------------===//
// One position
//===----------------------------------------------------------------------===//

TaintedBody::TaintedBody(ImplicitLocOpBuilder &b, Region &region,
                         ValueRange positions, ValueRange captures)
    : b(b) {
  Block &block = region.front();
  bool isScore = block.getNumArguments() > positions.size() + captures.size();
  firstCapture = isScore + positions.size();
  SmallVector<Value> given(positions);
  llvm::append_range(given, captures);
  values.map(block.getArguments().drop_front(isScore), given);
  yielded = cast<YieldOp>(block.getTerminator()).getValue();
  for (Operation &op : block.without_terminator())
    build(op);
}

void TaintedBody::build(Operation &op) {
  b.setLoc(op.getLoc());
  Value result = op.getResult(0);
  if (Value taint = buildTaint(op))
    taints[result] = taint;
  if (!llvm::all_of(op.getOperands(), [&](Value v) { return isKnown(v); }))
    return;
  auto mapped = [&](ValueRange operands) {
    return llvm::map_to_vector(operands,
                               [&](Value v) { return values.lookup(v); });
  };
  if (auto load = dyn_cast<CaptureLoadOp>(op)) {
    buildRead(op, load.getBuffer(), load.getIndices());
    values.map(result, buildLoad(b, b.getLoc(), values.lookup(load.getBuffer()),
                                 mapped(load.getIndices())));
  } else if (auto search = dyn_cast<CaptureSearchOp>(op)) {
    buildRead(op, search.getBuffer(), search.getIndices());
    values.map(result,
               buildSearch(b, b.getLoc(), values.lookup(search.getBuffer()),
                           mapped(search.getIndices()),
                           values.lookup(search.getValue())));
  } else {
    b.clone(op, values);
  }
}

void TaintedBody::buildRead(Operation &op, Value buffer, ValueRange indices) {
  for (auto [dim, value] : llvm::enumerate(indices)) {
    Read read;
    read.capture = cast<BlockArgument>(buffer).getArgNumber() - firstCapture;
    read.dim = dim;
    read.index =
        arith::IndexCastOp::create(b, b.getIndexType(), values.lookup(value));
    read.size = tensor::DimOp::create(b, values.lookup(buffer), dim);
    // Below 0 is far above it without a sign.
    read.isOutside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                           read.index, read.size);
    Value &taint = taints[op.getResult(0)];
    taint = buildOr(taint, read.isOutside);
    allReads.push_back(read);
  }
}

Value TaintedBody::buildOr(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::OrIOp::create(b, lhs, rhs);
}

Value TaintedBody::buildKeeps(Value value, int64_t drops) {
  if (!isKnown(value))
    return {};
  Value seen = values.lookup(value), keeps;
  if (isa<FloatType>(seen.getType())) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(seen.getType()));
    keeps = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, seen, zero);
  } else {
    Value dropping =
        arith::ConstantOp::create(b, b.getIntegerAttr(seen.getType(), drops));
    keeps = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, seen, dropping);
  }
  return buildOr(keeps, taints.lookup(value));
}

Value TaintedBody::buildProductTaint(Value lhs, Value rhs, int64_t drops) {
  Value taint;
  for (auto [value, other] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
    Value own = taints.lookup(value);
    if (!own)
      continue;
    if (Value keeps = buildKeeps(other, drops))
      own = arith::AndIOp::create(b, own, keeps);
    taint = buildOr(taint, own);
  }
  return taint;
}

Value TaintedBody::buildTaint(Operation &op) {
  auto of = [&](unsigned i) { return taints.lookup(op.getOperand(i)); };
  if (isa<arith::SelectOp>(op) && isKnown(op.getOperand(0)) &&
      (of(1) || of(2))) {
    Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
    Value chosen =
        arith::SelectOp::create(b, values.lookup(op.getOperand(0)),
                                of(1) ? of(1) : no, of(2) ? of(2) : no);
    return buildOr(of(0), chosen);
  }
  if (isa<arith::AndIOp, arith::MulIOp, arith::MulFOp>(op))
    return buildProductTaint(op.getOperand(0), op.getOperand(1));
  if (isa<arith::OrIOp>(op) && op.getResult(0).getType().isInteger(1))
    return buildProductTaint(op.getOperand(0), op.getOperand(1), /*drops=*/1);
  if (isa<math::FmaOp>(op))
    return buildOr(buildProductTaint(op.getOperand(0), op.getOperand(1)),
                   of(2));
  Value taint;
  for (unsigned i = 0, e = op.getNumOperands(); i != e; ++i)
    taint = buildOr(taint, of(i));
  return taint;
}

//===----------------------------------------------------------------------===//
// All positions
//===----------------------------------------------------------------------===//

CaptureReadsBuilder::Finding
CaptureReadsBuilder::buildIf(Value condition, Finding otherwise,
                             llvm::function_ref<Finding()> make) {
  auto op = scf::IfOp::create(b, TypeRange(ValueRange(otherwise)), condition,
                              /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(b, make());
  b.setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(b, otherwise);
  return Finding(op.getResults());
}

/// Stops where something is found.
CaptureReadsBuilder::Finding
CaptureReadsBuilder::buildLoops(ValueRange sizes, Finding first, Body body) {
  Value zero = constantIndex(0), one = constantIndex(1);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> position;
  SmallVector<scf::ForOp> loops;
  Finding found = first;
  for (Value size : sizes) {
    Value end = arith::SelectOp::create(b, isNothing(found), size, zero);
    loops.push_back(scf::ForOp::create(b, zero, end, one, found));
    b.setInsertionPointToStart(loops.back().getBody());
    found = Finding(loops.back().getRegionIterArgs());
    position.push_back(loops.back().getInductionVar());
  }
  found =
      buildIf(isNothing(found), found, [&] { return body(position, found); });
  for (scf::ForOp loop : llvm::reverse(loops)) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, found);
    found = Finding(loop.getResults());
  }
  return found;
}

/// The first read that is out of range; some is.
CaptureReadsBuilder::Finding
CaptureReadsBuilder::chooseRead(TaintedBody &body, ValueRange position) {
  Finding chosen;
  for (const Read &read : llvm::reverse(body.reads())) {
    Finding own = {constant(CaptureFinding::OutOfRange), constant(read.capture),
                   constant(read.dim), toInteger(read.index),
                   toInteger(read.size)};
    for (Value at : position)
      own.push_back(toInteger(at));
    for (auto [number, value] : llvm::enumerate(own))
      if (!chosen.empty())
        value =
            arith::SelectOp::create(b, read.isOutside, value, chosen[number]);
    chosen = std::move(own);
  }
  return chosen;
}

/// The mask first: it says where the score matters.
CaptureReadsBuilder::Finding
CaptureReadsBuilder::buildPosition(ValueRange position, Finding before) {
  SmallVector<Value> narrow;
  for (Value at : position)
    narrow.push_back(arith::IndexCastOp::create(b, b.getI32Type(), at));
  Finding found = before;
  Value isVisible;
  if (op.hasMask()) {
    TaintedBody mask(b, op.getMask(), narrow, op.getCaptures());
    isVisible = mask.value();
    if (mask.taint())
      found = buildIf(mask.taint(), found,
                      [&] { return chooseRead(mask, position); });
  }
  if (!op.hasScore())
    return found;
  TaintedBody score(b, op.getScore(), narrow, op.getCaptures());
  Value isWrong = score.taint();
  if (!isWrong)
    return found;
  isWrong = arith::AndIOp::create(b, isWrong, isNothing(found));
  if (isVisible)
    isWrong = arith::AndIOp::create(b, isWrong, isVisible);
  return buildIf(isWrong, found, [&] { return chooseRead(score, position); });
}

/// An element of a tensor, and the one after it.
CaptureReadsBuilder::Finding CaptureReadsBuilder::buildStep(Value buffer,
                                                            unsigned capture,
                                                            ValueRange place,
                                                            Finding before) {
  SmallVector<Value> next(place);
  next.back() = arith::AddIOp::create(b, next.back(), constantIndex(1));
  auto element = [&](ValueRange at) -> Value {
    Value value = tensor::ExtractOp::create(b, buffer, at);
    if (value.getType().isInteger(1))
      return arith::ExtUIOp::create(b, integer, value);
    return value.getType() == integer
               ? value
               : arith::ExtSIOp::create(b, integer, value).getResult();
  };
  Value front = element(place), behind = element(next);
  Value falls =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, behind, front);
  Value row = constantIndex(0);
  for (auto [dim, at] : llvm::enumerate(place.drop_back())) {
    Value size = tensor::DimOp::create(b, buffer, dim);
    row = arith::MulIOp::create(b, row, size);
    row = arith::AddIOp::create(b, row, at);
  }
  return buildIf(falls, before, [&] {
    Value zero = constant(0);
    return Finding{constant(CaptureFinding::NotSorted),
                   constant(capture),
                   zero,
                   behind,
                   front,
                   toInteger(row),
                   toInteger(next.back()),
                   zero,
                   zero};
  });
}

CaptureReadsBuilder::Finding CaptureReadsBuilder::buildOrder(unsigned capture,
                                                             Finding before) {
  Value buffer = op.getCaptures()[capture];
  int64_t rank = cast<RankedTensorType>(buffer.getType()).getRank();
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.push_back(tensor::DimOp::create(b, buffer, dim));
  // An empty row has no last element.
  Value one = constantIndex(1);
  sizes.back() = arith::SubIOp::create(
      b, arith::MaxSIOp::create(b, sizes.back(), one), one);
  return buildLoops(sizes, before, [&](ValueRange place, Finding found) {
    return buildStep(buffer, capture, place, found);
  });
}

/// Captured tensors that are searched, or promised to be sorted.
static SmallVector<bool> findSorted(ScoredOp op) {
  SmallVector<bool> isSorted(op.getCaptures().size(), false);
  for (int64_t capture : op.getSortedCaptures().value_or(ArrayRef<int64_t>()))
    isSorted[capture] = true;
  op->walk([&](CaptureSearchOp search) {
    auto buffer = cast<BlockArgument>(search.getBuffer());
    unsigned last = buffer.getOwner()->getNumArguments();
    isSorted[buffer.getArgNumber() + isSorted.size() - last] = true;
  });
  return isSorted;
}

void CaptureReadsBuilder::build() {
  Finding found(CaptureFinding::numNumbers, constant(CaptureFinding::None));
  for (auto [capture, isSorted] : llvm::enumerate(findSorted(op)))
    if (isSorted)
      found = buildOrder(capture, found);
  constexpr int64_t B = ScoredOp::kBatch, H = ScoredOp::kHead,
                    L = ScoredOp::kLength;
  SmallVector<Value> sizes;
  for (int64_t dim : {B, H, L})
    sizes.push_back(tensor::DimOp::create(b, op.getQuery(), dim));
  sizes.push_back(tensor::DimOp::create(b, op.getKey(), L));
  found = buildLoops(sizes, found, [&](ValueRange position, Finding before) {
    return buildPosition(position, before);
  });
  b.setLoc(op.getLoc());
  Value numbers = tensor::FromElementsOp::create(b, found);

  Operation *end = function.getBody().front().getTerminator();
  end->setOperands(numbers);
  function.setType(FunctionType::get(function.getContext(),
                                     function.getArgumentTypes(),
                                     TypeRange(ValueRange(numbers))));
  Block &entry = function.getBody().front();
  for (Operation &dead : llvm::make_early_inc_range(llvm::reverse(entry)))
    if (&dead == op || isOpTriviallyDead(&dead))
      dead.erase();
}

void attn::buildCaptureReads(func::FuncOp function) {
  ScoredOp attention;
  function.walk([&](ScoredOp op) { attention = op; });
  CaptureReadsBuilder(function, attention).build();
}
