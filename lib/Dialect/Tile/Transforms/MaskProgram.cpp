//===- MaskProgram.cpp - what a mask is computed from ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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
  int64_t numQueries = isBlock ? program.numColumns : program.numRows;
  auto cast32 = program.queries.getBase().getDefiningOp<arith::IndexCastOp>();
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
  auto type = cast<VectorType>(scores.getScores().getType());
  program.numRows = type.getDimSize(0);
  program.numColumns = type.getDimSize(1);
  program.queries = scores.getQueries().getDefiningOp<CoordsOp>();
  program.keys = scores.getKeys().getDefiningOp<CoordsOp>();
  if (!scores.hasMask())
    return fail("no mask hides keys");
  if (!program.queries || !program.keys)
    return fail("the scores are not those of a block of queries and of keys");
  if (!isZeroInteger(loop.getLowerBound()) || !isOneInteger(loop.getStep()) ||
      !grid->isAncestor(loop) ||
      grid->isAncestor(loop.getUpperBound().getParentRegion()->getParentOp()))
    return fail("the loop does not run over all blocks");
  program.grain = findMaskGrain(scores, program.queries.getAxis(), loop);
  // Reading the first row must not make the map depend on batch and head.
  if (failed(findQuery()))
    return failure();
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(scores.getMask(), captured);
  llvm::append_range(worklist, captured);
  worklist.append({program.queries.getBase(), program.keys.getBase()});
  llvm::append_range(worklist, program.grain.keyLimits);
  llvm::append_range(worklist, program.grain.queryLimits);
  for (unsigned number : {0, 1})
    if (!scores.getMask().getArgument(number).use_empty())
      worklist.push_back(scores->getOperand(number + 1));
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
