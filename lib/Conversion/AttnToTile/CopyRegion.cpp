//===- CopyRegion.cpp - regions of attn as regions of tile ----------------===//
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
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::checkRegion(Region &region) {
  for (Operation &op : region.front().without_terminator()) {
    if (isa<CaptureAddOp, CaptureLoadOp, CaptureSearchOp, tensor::DimOp>(op))
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

/// True for a captured tensor that is promised to be sorted.
static bool isSorted(Value buffer) {
  auto argument = cast<BlockArgument>(buffer);
  auto op = cast<ScoredOp>(argument.getOwner()->getParentOp());
  unsigned first =
      argument.getOwner()->getNumArguments() - op.getCaptures().size();
  return op.isSortedCapture(argument.getArgNumber() - first);
}

namespace {
/// Copies one region, and what is the same for all of its block to `outer`.
class RegionCopy {
public:
  RegionCopy(OpBuilder &outer, OpBuilder &inner) : outer(outer), inner(inner) {}

  void run(Region &from, Region &to, ValueRange operands, ValueRange captures,
           Value root);

private:
  SmallVector<Value> lookupAll(ValueRange values, IRMapping &mapping) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookup(value); });
  }
  Value copy(OpBuilder &b, Operation &op, IRMapping &mapping, bool isInside);

  OpBuilder &outer, &inner;
  /// Values of the copy, and those of them that stand outside of it.
  IRMapping inside, outside;
};
} // namespace

/// The operation of the tile dialect for one of attn's, or the same again.
Value RegionCopy::copy(OpBuilder &b, Operation &op, IRMapping &mapping,
                       bool isInside) {
  Location loc = op.getLoc();
  if (auto load = dyn_cast<CaptureLoadOp>(op)) {
    Value view = mapping.lookup(load.getBuffer());
    SmallVector<Value> indices = lookupAll(load.getIndices(), mapping);
    if (!isInside)
      return tile::loadElement(b, loc, view, indices);
    return tile::GatherOp::create(b, loc, load.getResult().getType(), view,
                                  indices, isSorted(load.getBuffer()));
  }
  if (auto search = dyn_cast<CaptureSearchOp>(op))
    return tile::SearchOp::create(b, loc, search.getResult().getType(),
                                  mapping.lookup(search.getBuffer()),
                                  lookupAll(search.getIndices(), mapping),
                                  mapping.lookup(search.getValue()));
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return memref::DimOp::create(b, loc, mapping.lookup(dim.getSource()),
                                 mapping.lookup(dim.getIndex()));
  return b.clone(op, mapping)->getResult(0);
}

void RegionCopy::run(Region &from, Region &to, ValueRange operands,
                     ValueRange captures, Value root) {
  Block &source = from.front();
  Block *block = inner.createBlock(&to);
  for (auto [argument, operand] : llvm::zip_equal(
           source.getArguments().drop_back(captures.size()), operands)) {
    BlockArgument added =
        block->addArgument(argument.getType(), argument.getLoc());
    inside.map(argument, added);
    if (operand.getType().isInteger(32))
      outside.map(argument, operand);
  }
  for (IRMapping *mapping : {&inside, &outside})
    mapping->map(source.getArguments().take_back(captures.size()), captures);
  for (Operation &op : source.without_terminator()) {
    if (isa<CaptureAddOp>(op))
      continue;
    bool isUniform =
        llvm::all_of(op.getOperands(),
                     [&](Value v) { return outside.contains(v); }) &&
        (isSpeculatable(&op) || isa<CaptureLoadOp, CaptureSearchOp>(op));
    Value result = op.getResult(0);
    if (isUniform)
      outside.map(result, copy(outer, op, outside, /*isInside=*/false));
    // Constants are there twice: what nobody uses goes.
    if (isUniform && !op.hasTrait<OpTrait::ConstantLike>())
      inside.map(result, outside.lookup(result));
    else
      inside.map(result, copy(inner, op, inside, /*isInside=*/true));
  }
  Operation *yield = source.getTerminator();
  tile::YieldOp::create(inner, yield->getLoc(),
                        inside.lookup(root ? root : yield->getOperand(0)));
}

void attn::copyRegion(OpBuilder &outer, OpBuilder &inner, Region &from,
                      Region &to, ValueRange operands, ValueRange captures,
                      Value root) {
  OpBuilder::InsertionGuard guard(inner);
  RegionCopy(outer, inner).run(from, to, operands, captures, root);
}
