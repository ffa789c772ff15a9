//===- ScoresOp.cpp - what tile.scores asks for ---------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn::tile;

Value ScoresOp::resolve(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto op = argument
                ? dyn_cast_or_null<ScoresOp>(argument.getOwner()->getParentOp())
                : ScoresOp();
  if (!op)
    return value;
  // (C2): the score is the first argument of its region only.
  bool isMask = argument.getOwner()->getParent() == &op.getMask();
  return op->getOperand(argument.getArgNumber() + isMask);
}

LogicalResult ScoresOp::verify() {
  auto scores = cast<VectorType>(getScores().getType());
  ArrayRef<int64_t> queries =
                        cast<VectorType>(getQueries().getType()).getShape(),
                    keys = cast<VectorType>(getKeys().getType()).getShape();
  // (C1)
  int64_t column[] = {scores.getDimSize(0), 1},
          row[] = {1, scores.getDimSize(1)};
  auto are = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) { return a == b; };
  if (!(are(queries, column) && are(keys, row)) &&
      !(are(queries, row) && are(keys, column)))
    return emitOpError("coordinates have types ")
           << getQueries().getType() << " and " << getKeys().getType()
           << ", expected one per row and one per column of " << scores;
  if (isa<VectorType>(getHead().getType()) &&
      getHead().getType() != getQueries().getType())
    return emitOpError("has heads of ")
           << getHead().getType() << ", expected i32, or one for each of "
           << getQueries().getType();
  return success();
}

/// Whether `op` may stand in a region.
static bool isScalarCode(Operation &op) {
  if (isa<GatherOp, SearchOp, memref::DimOp>(op))
    return true;
  return op.getNumResults() == 1 && op.getNumRegions() == 0 &&
         isMemoryEffectFree(&op) &&
         (op.hasTrait<OpTrait::ConstantLike>() ||
          OpTrait::hasElementwiseMappableTraits(&op));
}

static LogicalResult verifyRegion(ScoresOp op, StringRef name, Region &region,
                                  bool takesScore, Type yielded) {
  if (region.empty())
    return success();
  // (C2)
  if (!region.hasOneBlock())
    return op.emitOpError(name) << " region has " << region.getBlocks().size()
                                << " blocks, expected 1";
  Block &block = region.front();
  Builder builder(op.getContext());
  SmallVector<Type> expected(takesScore, builder.getF32Type());
  expected.append(4, builder.getI32Type());
  if (!llvm::equal(block.getArgumentTypes(), expected))
    return op.emitOpError(name)
           << " region is a function of (" << block.getArgumentTypes()
           << "), expected (" << expected << ")";
  auto yield =
      dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield || !llvm::equal(yield.getOperandTypes(), ArrayRef<Type>(yielded)))
    return op.emitOpError(name) << " region does not yield " << yielded;
  // (C3)
  for (Operation &inner : block.without_terminator()) {
    bool isScalar = llvm::all_of(inner.getResultTypes(), [](Type type) {
      return type.isIntOrIndexOrFloat();
    });
    if (isScalar && isScalarCode(inner))
      continue;
    InFlightDiagnostic diag = op.emitOpError(name)
                              << " region holds '" << inner.getName()
                              << "', expected scalar code";
    diag.attachNote(inner.getLoc()) << "is here";
    return diag;
  }
  return success();
}

LogicalResult ScoresOp::verifyRegions() {
  Builder builder(getContext());
  if (failed(verifyRegion(*this, "score", getScore(), /*takesScore=*/true,
                          builder.getF32Type())))
    return failure();
  return verifyRegion(*this, "mask", getMask(), /*takesScore=*/false,
                      builder.getI1Type());
}
