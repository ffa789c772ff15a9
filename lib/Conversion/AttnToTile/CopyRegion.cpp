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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

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

/// True for a captured tensor that is promised to be sorted.
static bool isSorted(Value buffer) {
  auto argument = cast<BlockArgument>(buffer);
  auto op = cast<AttentionOp>(argument.getOwner()->getParentOp());
  unsigned first =
      argument.getOwner()->getNumArguments() - op.getCaptures().size();
  return op.isSortedCapture(argument.getArgNumber() - first);
}

/// The operation of the tile dialect for one of attn's, or the same again.
static Value copyOp(OpBuilder &b, Operation &op, IRMapping &mapping) {
  auto lookupAll = [&](ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookup(value); });
  };
  Location loc = op.getLoc();
  if (auto load = dyn_cast<CaptureLoadOp>(op))
    return tile::GatherOp::create(
        b, loc, load.getResult().getType(), mapping.lookup(load.getBuffer()),
        lookupAll(load.getIndices()), isSorted(load.getBuffer()));
  if (auto search = dyn_cast<CaptureSearchOp>(op))
    return tile::SearchOp::create(b, loc, search.getResult().getType(),
                                  mapping.lookup(search.getBuffer()),
                                  lookupAll(search.getIndices()),
                                  mapping.lookup(search.getValue()));
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return memref::DimOp::create(b, loc, mapping.lookup(dim.getSource()),
                                 mapping.lookup(dim.getIndex()));
  return b.clone(op, mapping)->getResult(0);
}

void attn::copyRegion(OpBuilder &b, Region &from, Region &to,
                      ValueRange captures) {
  OpBuilder::InsertionGuard guard(b);
  Block &source = from.front();
  IRMapping mapping;
  mapping.map(source.getArguments().take_back(captures.size()), captures);
  Block *block = b.createBlock(&to);
  for (BlockArgument argument :
       source.getArguments().drop_back(captures.size()))
    mapping.map(argument,
                block->addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : source.without_terminator())
    mapping.map(op.getResult(0), copyOp(b, op, mapping));
  Operation *yield = source.getTerminator();
  tile::YieldOp::create(b, yield->getLoc(),
                        mapping.lookup(yield->getOperand(0)));
}
