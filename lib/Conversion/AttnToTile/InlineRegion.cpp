//===- InlineRegion.cpp - scalar regions as code on vectors ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::checkRegion(Region &region) {
  for (Operation &op : region.front().without_terminator()) {
    if (isa<CaptureLoadOp, CaptureSearchOp, tensor::DimOp>(op))
      continue;
    bool scalar = llvm::all_of(op.getResultTypes(), [](Type type) {
      return type.isIntOrIndexOrFloat();
    });
    if (!scalar || op.getNumResults() != 1 || op.getNumRegions() != 0 ||
        !isMemoryEffectFree(&op) ||
        (!op.hasTrait<OpTrait::ConstantLike>() &&
         !OpTrait::hasElementwiseMappableTraits(&op)))
      return op.emitOpError("cannot be computed element by element in a score "
                            "or mask region");
  }
  return success();
}

namespace {
/// Clones one region. A value's shape is what it depends on: batch and head
/// only (a scalar), the row (Mx1), the column (1xN), or both (MxN).
class RegionInliner {
public:
  RegionInliner(OpBuilder &outer, OpBuilder &inner, const RegionInputs &inputs)
      : outer(outer), inner(inner), inputs(inputs),
        numRows(cast<VectorType>(inputs.rows.getType()).getDimSize(0)),
        numColumns(cast<VectorType>(inputs.columns.getType()).getDimSize(1)) {}

  Value run(Region &region) {
    Block &block = region.front();
    unsigned next = 0;
    variant.insert(inputs.columns);
    if (inputs.score) {
      variant.insert(inputs.score);
      mapping.map(block.getArgument(next++), inputs.score);
    }
    for (Value value : {inputs.batch, inputs.head, inputs.rows, inputs.columns})
      mapping.map(block.getArgument(next++), value);
    for (Value capture : inputs.captures)
      mapping.map(block.getArgument(next++), capture);
    for (Operation &op : block.without_terminator())
      clone(op);
    Value result = block.getTerminator()->getOperand(0);
    return stretch(inner, mapping.lookup(result), {numRows, numColumns});
  }

private:
  using Shape = SmallVector<int64_t, 2>;

  static Shape shapeOf(Value value) {
    if (auto type = dyn_cast<VectorType>(value.getType()))
      return Shape(type.getShape());
    return {};
  }

  /// The smallest shape all operands stretch to.
  Shape joinShapes(OperandRange operands) {
    Shape joined;
    for (Value operand : operands) {
      Shape shape = shapeOf(mapping.lookup(operand));
      if (joined.empty())
        joined = shape;
      else if (!shape.empty())
        for (auto [to, from] : llvm::zip(joined, shape))
          to = std::max(to, from);
    }
    return joined;
  }

  static Value stretch(OpBuilder &builder, Value value,
                       ArrayRef<int64_t> shape) {
    if (ArrayRef<int64_t>(shapeOf(value)) == shape)
      return value;
    auto type = VectorType::get(shape, getElementTypeOrSelf(value));
    TypedAttr constant;
    if (matchPattern(value, m_Constant(&constant)) &&
        !isa<VectorType>(value.getType()))
      return arith::ConstantOp::create(builder, value.getLoc(), type,
                                       DenseElementsAttr::get(type, constant));
    return vector::BroadcastOp::create(builder, value.getLoc(), type, value);
  }

  void clone(Operation &op) {
    Shape shape = joinShapes(op.getOperands());
    // Before the loop only what does not depend on it, and cannot trap there.
    bool isInvariant = llvm::none_of(op.getOperands(), [&](Value operand) {
      return variant.contains(mapping.lookup(operand));
    });
    bool hoist = isInvariant && (isSpeculatable(&op) ||
                                 isa<CaptureLoadOp, CaptureSearchOp>(op));
    OpBuilder &builder = hoist ? outer : inner;
    Value result;
    if (auto load = dyn_cast<CaptureLoadOp>(op))
      result = gather(builder, load, shape);
    else if (auto searched = dyn_cast<CaptureSearchOp>(op))
      result = search(builder, searched, shape);
    else if (auto dim = dyn_cast<tensor::DimOp>(op))
      result = memref::DimOp::create(builder, op.getLoc(),
                                     mapping.lookup(dim.getSource()),
                                     mapping.lookup(dim.getIndex()));
    else
      result = cloneElementwise(builder, op, shape);
    mapping.map(op.getResult(0), result);
    if (!hoist)
      variant.insert(result);
  }

  /// True for a captured tensor that is promised to be sorted.
  static bool isSorted(Value buffer) {
    auto argument = cast<BlockArgument>(buffer);
    auto op = cast<AttentionOp>(argument.getOwner()->getParentOp());
    unsigned first =
        argument.getOwner()->getNumArguments() - op.getCaptures().size();
    return op.isSortedCapture(argument.getArgNumber() - first);
  }

  Value search(OpBuilder &builder, CaptureSearchOp op, const Shape &shape) {
    SmallVector<Value> indices;
    for (Value index : op.getIndices())
      indices.push_back(mapping.lookup(index));
    Type type = op.getResult().getType();
    if (!shape.empty())
      type = VectorType::get(shape, type);
    return tile::SearchOp::create(builder, op.getLoc(), type,
                                  mapping.lookup(op.getBuffer()), indices,
                                  mapping.lookup(op.getValue()));
  }

  Value gather(OpBuilder &builder, CaptureLoadOp load, const Shape &shape) {
    Location loc = load.getLoc();
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookup(index));
    Type element = load.getResult().getType();
    Value view = mapping.lookup(load.getBuffer());
    if (!shape.empty())
      return tile::GatherOp::create(builder, loc,
                                    VectorType::get(shape, element), view,
                                    indices, isSorted(load.getBuffer()));
    return loadElement(builder, loc, view, indices);
  }

  /// One element for the whole block, as a scalar; out of range gives 0.
  static Value loadElement(OpBuilder &builder, Location loc, Value view,
                           ValueRange indices) {
    Type element = cast<MemRefType>(view.getType()).getElementType();
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value inside = arith::ConstantIntOp::create(builder, loc, 1, 1);
    SmallVector<Value> positions;
    for (auto [dim, index] : llvm::enumerate(indices)) {
      Value position = arith::IndexCastOp::create(
          builder, loc, builder.getIndexType(), index);
      Value size = builder.createOrFold<memref::DimOp>(loc, view, dim);
      Value conditions[] = {
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                position, zero),
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                position, size)};
      for (Value condition : conditions)
        inside = builder.createOrFold<arith::AndIOp>(loc, inside, condition);
      positions.push_back(position);
    }
    auto load = scf::IfOp::create(
        builder, loc, inside,
        [&](OpBuilder &b, Location loc) {
          Value value = memref::LoadOp::create(b, loc, view, positions);
          scf::YieldOp::create(b, loc, value);
        },
        [&](OpBuilder &b, Location loc) {
          Value value =
              arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
          scf::YieldOp::create(b, loc, value);
        });
    return load.getResult(0);
  }

  Value cloneElementwise(OpBuilder &builder, Operation &op,
                         const Shape &shape) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = mapping.lookup(operand);
      operands.push_back(shape.empty() ? value
                                       : stretch(builder, value, shape));
    }
    Type type = op.getResult(0).getType();
    if (!shape.empty())
      type = VectorType::get(shape, type);
    OperationState state(op.getLoc(), op.getName(), operands, type,
                         op.getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op.getPropertiesAsAttribute();
    return builder.create(state)->getResult(0);
  }

  OpBuilder &outer, &inner;
  const RegionInputs &inputs;
  int64_t numRows, numColumns;
  IRMapping mapping;
  /// What exists only inside the loop. (Shapes do not tell: a block may have
  /// one row or one column.)
  DenseSet<Value> variant;
};
} // namespace

Value attn::inlineRegion(OpBuilder &outer, OpBuilder &inner, Region &region,
                         const RegionInputs &inputs) {
  return RegionInliner(outer, inner, inputs).run(region);
}
