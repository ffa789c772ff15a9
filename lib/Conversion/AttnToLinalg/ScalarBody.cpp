//===- ScalarBody.cpp - a region as code of one position -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/Decisions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

/// f32 -> f64.
static Value extend(OpBuilder &b, Location loc, Value value) {
  return value.getType().isF32()
             ? arith::ExtFOp::create(b, loc, b.getF64Type(), value).getResult()
             : value;
}

/// f64 -> f32.
static Value narrow(OpBuilder &b, Location loc, Value value) {
  return value.getType().isF64()
             ? arith::TruncFOp::create(b, loc, b.getF32Type(), value)
                   .getResult()
             : value;
}

/// Indices as positions in a tensor, and whether they are all inside.
static Value buildPositions(OpBuilder &b, Location loc, Value buffer,
                            ValueRange indices,
                            SmallVectorImpl<Value> &positions) {
  Value zero = arith::ConstantOp::create(b, loc, b.getIndexAttr(0));
  Value inside = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value position =
        arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
    Value size = tensor::DimOp::create(b, loc, buffer, dim);
    Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                        position, zero);
    Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                        position, size);
    inside = arith::AndIOp::create(b, loc, inside, above);
    inside = arith::AndIOp::create(b, loc, inside, below);
    positions.push_back(position);
  }
  return inside;
}

Value attn::buildLoad(OpBuilder &b, Location loc, Value buffer,
                      ValueRange indices) {
  Type element = cast<RankedTensorType>(buffer.getType()).getElementType();
  SmallVector<Value> positions;
  Value inside = buildPositions(b, loc, buffer, indices, positions);
  // A branch, not a select: an empty tensor has no element to read instead.
  auto load = scf::IfOp::create(
      b, loc, inside,
      [&](OpBuilder &b, Location loc) {
        Value value = tensor::ExtractOp::create(b, loc, buffer, positions);
        scf::YieldOp::create(b, loc, value);
      },
      [&](OpBuilder &b, Location loc) {
        Value value = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
        scf::YieldOp::create(b, loc, value);
      });
  return load.getResult(0);
}

Value attn::buildSearch(OpBuilder &b, Location loc, Value buffer,
                        ValueRange indices, Value value) {
  SmallVector<Value> positions;
  Value inside = buildPositions(b, loc, buffer, indices, positions);
  Value zero = arith::ConstantOp::create(b, loc, b.getIndexAttr(0));
  Value one = arith::ConstantOp::create(b, loc, b.getIndexAttr(1));
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value size = tensor::DimOp::create(b, loc, buffer, indices.size());
  Value end = arith::SelectOp::create(b, loc, inside, size, zero);
  auto loop = scf::ForOp::create(
      b, loc, zero, end, one, none,
      [&](OpBuilder &b, Location loc, Value number, ValueRange count) {
        positions.push_back(number);
        Value element = tensor::ExtractOp::create(b, loc, buffer, positions);
        Value counts = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                             element, value);
        Value more = arith::ExtUIOp::create(b, loc, b.getI32Type(), counts);
        Value sum = arith::AddIOp::create(b, loc, count.front(), more);
        scf::YieldOp::create(b, loc, sum);
      });
  return loop.getResult(0);
}

Value attn::buildAdd(OpBuilder &b, Location loc, Value tensor,
                     ValueRange indices, Value value) {
  SmallVector<Value> positions;
  Value inside = buildPositions(b, loc, tensor, indices, positions);
  auto sum = scf::IfOp::create(
      b, loc, inside,
      [&](OpBuilder &b, Location loc) {
        Value before = tensor::ExtractOp::create(b, loc, tensor, positions);
        Value after = arith::AddFOp::create(b, loc, before, value);
        Value changed =
            tensor::InsertOp::create(b, loc, after, tensor, positions);
        scf::YieldOp::create(b, loc, changed);
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, tensor);
      });
  return sum.getResult(0);
}

static SmallVector<Value> lookUp(ValueRange values, const IRMapping &mapping) {
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookup(value); });
}

/// What a region reads; null for any other operation.
static Value buildCapture(OpBuilder &b, Operation &op,
                          const IRMapping &mapping) {
  if (auto load = dyn_cast<CaptureLoadOp>(op))
    return buildLoad(b, op.getLoc(), mapping.lookup(load.getBuffer()),
                     lookUp(load.getIndices(), mapping));
  if (auto search = dyn_cast<CaptureSearchOp>(op))
    return buildSearch(b, op.getLoc(), mapping.lookup(search.getBuffer()),
                       lookUp(search.getIndices(), mapping),
                       mapping.lookup(search.getValue()));
  return Value();
}

/// Calls `add` for an operation that adds to a gradient.
static bool buildCaptureAdd(Operation &op, const IRMapping &mapping,
                            AddBuilder add) {
  auto addition = dyn_cast<CaptureAddOp>(op);
  if (!addition)
    return false;
  add(addition, mapping.lookup(addition.getValue()),
      lookUp(addition.getIndices(), mapping));
  return true;
}

/// One operation with f32 read as f64.
static void cloneWidened(OpBuilder &b, Operation &op, IRMapping &mapping) {
  Location loc = op.getLoc();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<FloatAttr>(constant.getValue());
    if (value && value.getType().isF32()) {
      TypedAttr wide = b.getF64FloatAttr(value.getValueAsDouble());
      mapping.map(constant.getResult(),
                  arith::ConstantOp::create(b, loc, wide).getResult());
      return;
    }
  }
  // Bits are those of the f32; a rounding to f16 or bf16 has no runtime
  // function from f64 everywhere, and from f32 it has.
  Operation *clone = b.clone(op, mapping);
  if (isa<arith::BitcastOp, arith::TruncFOp>(op)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(clone);
    clone->setOperand(0, narrow(b, loc, clone->getOperand(0)));
  }
  if (isa<arith::BitcastOp>(op)) {
    mapping.map(op.getResult(0), extend(b, loc, clone->getResult(0)));
    return;
  }
  for (OpResult result : clone->getResults())
    if (result.getType().isF32())
      result.setType(b.getF64Type());
}

namespace {
/// A region with f32 read as f64, but for what leads to a decision without the
/// score: there the type is part of the meaning (C32). Beside a value of f64
/// stands the f32 that it was, where there is one.
class WideBody {
public:
  WideBody(OpBuilder &b, Region &region, ValueRange arguments, AddBuilder add)
      : b(b), region(region), add(add), paths(DecisionPaths::find(region)) {
    for (auto [from, to] :
         llvm::zip_equal(region.front().getArguments(), arguments))
      map(from, to);
  }

  Value build();

private:
  /// The f64 beside the f32.
  void map(Value from, Value to) {
    if (!to.getType().isF64())
      narrow.map(from, to);
    wide.map(from, extend(b, to.getLoc(), to));
  }
  /// Whether the operands of `op` are there in their own types.
  bool hasOperands(Operation &op) const {
    return llvm::all_of(op.getOperands(), [&](Value operand) {
      return narrow.contains(operand);
    });
  }

  OpBuilder &b;
  Region &region;
  AddBuilder add;
  DecisionPaths paths;
  IRMapping wide, narrow;
};
} // namespace

Value WideBody::build() {
  for (Operation &op : region.front().without_terminator()) {
    if (buildCaptureAdd(op, wide, add))
      continue;
    Value value = buildCapture(b, op, wide);
    bool isExact = paths.contains(&op) || isDecision(&op) ||
                   op.hasTrait<OpTrait::ConstantLike>();
    if (value) {
      map(op.getResult(0), value);
      continue;
    }
    if (isExact && hasOperands(op)) {
      Operation *clone = b.clone(op, narrow);
      for (auto [from, to] :
           llvm::zip_equal(op.getResults(), clone->getResults()))
        map(from, to);
      continue;
    }
    cloneWidened(b, op, wide);
    for (Value result : op.getResults())
      if (Value clone = wide.lookup(result);
          hasOperands(op) && result.getType() == clone.getType())
        narrow.map(result, clone);
  }
  return wide.lookup(cast<YieldOp>(region.front().getTerminator()).getValue());
}

Value attn::buildScalarBody(OpBuilder &b, Region &region, ValueRange arguments,
                            bool widen, AddBuilder add) {
  if (widen)
    return WideBody(b, region, arguments, add).build();
  Block &block = region.front();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(block.getArguments(), arguments))
    mapping.map(from, to);
  for (Operation &op : block.without_terminator()) {
    if (buildCaptureAdd(op, mapping, add))
      continue;
    if (Value value = buildCapture(b, op, mapping))
      mapping.map(op.getResult(0), value);
    else
      b.clone(op, mapping);
  }
  return mapping.lookup(cast<YieldOp>(block.getTerminator()).getValue());
}
