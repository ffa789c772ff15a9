//===- MaskProgram.cpp - what a mask is computed from ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskProgram.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn::tile;

namespace {
class ProgramReader {
public:
  ProgramReader(MaskProgram &program, std::string &reason)
      : program(program), reason(reason) {}

  LogicalResult run();

private:
  LogicalResult fail(const Twine &why) {
    reason = why.str();
    return failure();
  }
  LogicalResult visit(Value value);
  LogicalResult visit(Operation *op);
  LogicalResult findQuery();

  MaskProgram &program;
  std::string &reason;
  SmallVector<Value> worklist;
  DenseSet<Operation *> reached;
};
} // namespace

/// n, of (0, 1, ..., n - 1, 0, 1, ...).
static std::optional<int64_t> matchPeriod(Value value) {
  auto remainder = value.getDefiningOp<arith::RemUIOp>();
  auto numbers =
      remainder ? remainder.getLhs().getDefiningOp<CoordsOp>() : CoordsOp();
  if (!numbers || numbers.getAxis() != 0 ||
      getIntegerConstant(numbers.getBase()) != 0)
    return std::nullopt;
  return getIntegerConstant(remainder.getRhs());
}

std::optional<MaskPositions> MaskPositions::match(Value positions) {
  auto shape = cast<VectorType>(positions.getType()).getShape();
  if (auto coords = positions.getDefiningOp<CoordsOp>()) {
    auto axis = static_cast<int64_t>(coords.getAxis());
    return MaskPositions{coords.getBase(), shape[axis], axis};
  }
  auto sum = positions.getDefiningOp<arith::AddIOp>();
  auto base = sum ? sum.getLhs().getDefiningOp<vector::BroadcastOp>()
                  : vector::BroadcastOp();
  std::optional<int64_t> period =
      base ? matchPeriod(sum.getRhs()) : std::nullopt;
  if (!period ||
      base.getSourceType() != base.getResultVectorType().getElementType())
    return std::nullopt;
  return MaskPositions{base.getSource(), *period, 0};
}

/// Nothing, or only reads of memory.
static bool onlyReads(Operation *op) {
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        if (!onlyReads(&inner))
          return false;
    return true;
  }
  return isMemoryEffectFree(op) || hasSingleEffect<MemoryEffects::Read>(op);
}

LogicalResult ProgramReader::visit(Operation *op) {
  if (!reached.insert(op).second)
    return success();
  if (!onlyReads(op) || isa<LoadOp>(op))
    return fail("the mask depends on '" + op->getName().getStringRef() + "'");
  llvm::append_range(worklist, op->getOperands());
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::append_range(worklist, captured);
  return success();
}

LogicalResult ProgramReader::visit(Value value) {
  KernelOp grid = program.grid;
  if (value == program.loop.getInductionVar())
    return success();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == grid.getBody()) {
      program.usesBatch |= argument.getArgNumber() == 0;
      program.usesHead |= argument.getArgNumber() == 1;
      return success();
    }
    if (grid->isAncestor(argument.getOwner()->getParentOp()))
      return fail("the mask depends on a value that a loop carries");
    return success();
  }
  Operation *op = value.getDefiningOp();
  return grid->isAncestor(op) ? visit(op) : success();
}

/// The tile whose first row the grid computes and that is loaded once; or the
/// block that the loop loads at the queries of its scores.
LogicalResult ProgramReader::findQuery() {
  bool isBlock = program.isTransposed();
  KernelOp grid = program.grid;
  auto shape =
      cast<VectorType>(program.scores.getScores().getType()).getShape();
  int64_t numQueries = shape[isBlock];
  auto cast32 = program.queries.base.getDefiningOp<arith::IndexCastOp>();
  Block *body = isBlock ? program.loop.getBody() : grid.getBody();
  for (auto load : body->getOps<LoadOp>()) {
    auto type = cast<VectorType>(load.getResult().getType());
    if (type.getDimSize(0) == numQueries && load.getIndices().size() == 4) {
      if (isBlock && (!cast32 || load.getIndices()[2] != cast32.getIn()))
        continue;
      program.query = load;
      worklist.push_back(load.getIndices()[2]);
      return success();
    }
  }
  return fail(isBlock ? "the loop loads no block of queries"
                      : "the kernel loads no tile of queries before its loop");
}

LogicalResult ProgramReader::run() {
  KernelOp grid = program.grid;
  scf::ForOp loop = program.loop;
  ScoresOp scores = program.scores;
  std::optional<MaskPositions> queries =
      MaskPositions::match(scores.getQueries());
  std::optional<MaskPositions> keys = MaskPositions::match(scores.getKeys());
  if (!scores.hasMask())
    return fail("no mask hides keys");
  if (!queries || !keys)
    return fail("the scores are not those of a block of queries and of keys");
  program.queries = *queries;
  program.keys = *keys;
  for (auto share : grid.getBody()->getOps<ShareBlocksOp>())
    program.parts = static_cast<int64_t>(share.getCount());
  if (!isZeroInteger(loop.getLowerBound()) || !isOneInteger(loop.getStep()) ||
      !grid->isAncestor(loop) ||
      grid->isAncestor(loop.getUpperBound().getParentRegion()->getParentOp()))
    return fail("the loop does not run over all blocks");
  program.grain =
      findMaskGrain(scores, {program.queries.count, program.keys.count},
                    program.isTransposed(), loop);
  // Reading the first row must not make the map depend on batch and head.
  if (failed(findQuery()))
    return failure();
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(scores.getMask(), captured);
  llvm::append_range(worklist, captured);
  worklist.append({program.queries.base, program.keys.base});
  llvm::append_range(worklist, program.grain.keyLimits);
  llvm::append_range(worklist, program.grain.queryLimits);
  for (unsigned number : {0, 1})
    if (!scores.getMask().getArgument(number).use_empty()) {
      Value position = scores->getOperand(number + 1);
      if (isa<VectorType>(position.getType()))
        return fail("the heads of a tile have masks of their own");
      worklist.push_back(position);
    }
  while (!worklist.empty())
    if (failed(visit(worklist.pop_back_val())))
      return failure();
  // What is dead in the kernel afterwards is erased, and such a loop is itself.
  if (loop.use_empty())
    return fail("nothing uses the results of the loop");
  // Producers first.
  grid->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (reached.contains(op))
      program.ops.insert(op);
  });
  return success();
}

FailureOr<MaskProgram> attn::tile::readMaskProgram(KernelOp grid,
                                                   scf::ForOp loop,
                                                   ScoresOp scores,
                                                   std::string &reason) {
  MaskProgram program;
  program.grid = grid;
  program.loop = loop;
  program.scores = scores;
  if (failed(ProgramReader(program, reason).run()))
    return failure();
  return program;
}
