//===- FixedDistances.cpp - reads along a diagonal ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixedDistances.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace {
/// By how much values of the body grow from one turn to the next, where that is
/// the same for all elements; 0 if they are fixed.
class Growth {
public:
  Growth(scf::ForOp loop, const BlockPositions &now, int64_t step)
      : loop(loop) {
    for (Value position : {now.queries, now.keys}) {
      growths[position] = step;
      positions.insert(position);
    }
    for (Operation &op : loop.getBody()->without_terminator())
      if (op.getNumResults() == 1 && !growths.contains(op.getResult(0)))
        if (std::optional<int64_t> growth = compute(op))
          growths[op.getResult(0)] = *growth;
  }

  std::optional<int64_t> of(Value value) {
    if (loop.isDefinedOutsideOfLoop(value))
      return 0;
    auto found = growths.find(value);
    if (found == growths.end())
      return std::nullopt;
    return found->second;
  }

private:
  std::optional<int64_t> compute(Operation &op);
  std::optional<int64_t> divide(Operation &op, int64_t growth);

  scf::ForOp loop;
  llvm::DenseMap<Value, int64_t> growths;
  llvm::DenseSet<Value> positions; // and their quotients: no negative numbers
};
} // namespace

/// Captures, which nobody writes.
static bool readsArgument(Operation *op) {
  auto gather = dyn_cast<tile::GatherOp>(op);
  return gather && isa<BlockArgument>(gather.getView());
}

/// A quotient or a remainder by a constant that divides the growth.
std::optional<int64_t> Growth::divide(Operation &op, int64_t growth) {
  APInt constant;
  if (!matchPattern(op.getOperand(1), m_ConstantInt(&constant)))
    return std::nullopt;
  int64_t number = constant.getSExtValue();
  bool isShift = isa<arith::ShRSIOp, arith::ShRUIOp>(op);
  bool isAnd = isa<arith::AndIOp>(op);
  if (isShift)
    number = number >= 0 && number < 31 ? int64_t(1) << number : 0;
  else if (isAnd)
    number = llvm::isPowerOf2_64(number + 1) ? number + 1 : 0;
  bool isPosition = positions.contains(op.getOperand(0));
  // Those round down for any number.
  if (number <= 0 || growth % number != 0 ||
      !(isPosition || isAnd || isa<arith::FloorDivSIOp, arith::ShRSIOp>(op)))
    return std::nullopt;
  if (isPosition)
    positions.insert(op.getResult(0));
  bool isRest = isAnd || isa<arith::RemSIOp, arith::RemUIOp>(op);
  return isRest ? 0 : growth / number;
}

std::optional<int64_t> Growth::compute(Operation &op) {
  SmallVector<int64_t> operands;
  for (Value operand : op.getOperands()) {
    std::optional<int64_t> growth = of(operand);
    if (!growth)
      return std::nullopt;
    operands.push_back(*growth);
  }
  bool isMovable =
      (isPure(&op) && op.getNumRegions() == 0) || readsArgument(&op);
  if (!isMovable)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubIOp>(op))
    return operands[0] - operands[1];
  if (isa<vector::BroadcastOp, arith::IndexCastOp>(op)) {
    if (positions.contains(op.getOperand(0)))
      positions.insert(op.getResult(0));
    return operands[0];
  }
  APInt factor;
  if (isa<arith::MulIOp>(op) && operands[1] == 0 &&
      matchPattern(op.getOperand(1), m_ConstantInt(&factor)))
    if (std::optional<int64_t> product =
            llvm::checkedMul(operands[0], factor.getSExtValue()))
      return product;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::ShRSIOp,
          arith::ShRUIOp, arith::RemSIOp, arith::RemUIOp, arith::AndIOp>(op))
    if (std::optional<int64_t> part = divide(op, operands[0]))
      return part;
  if (llvm::all_of(operands, [](int64_t growth) { return growth == 0; }))
    return 0;
  return std::nullopt;
}

/// `value` before the loop, for the positions that `mapping` has.
static Value copyBefore(RewriterBase &rewriter, scf::ForOp loop, Value value,
                        IRMapping &mapping) {
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  if (Value copied = mapping.lookupOrNull(value))
    return copied;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, copyBefore(rewriter, loop, operand, mapping));
  rewriter.setInsertionPoint(loop);
  rewriter.clone(*op, mapping);
  return mapping.lookup(value);
}

int64_t attn::readFixedDistances(RewriterBase &rewriter, scf::ForOp loop,
                                 const BlockPositions &now,
                                 const BlockPositions &first, int64_t step,
                                 int64_t maxGathers) {
  OpBuilder::InsertionGuard guard(rewriter);
  Growth growth(loop, now, step);
  // One that another needs is not kept.
  auto isKept = [&](Operation &op) {
    return isa<tile::GatherOp>(op) && growth.of(op.getResult(0)) == 0 &&
           llvm::any_of(op.getUsers(), [&](Operation *user) {
             return user->getNumResults() != 1 ||
                    growth.of(user->getResult(0)) != 0;
           });
  };
  SmallVector<Operation *> gathers;
  for (Operation &op : loop.getBody()->without_terminator())
    if (isKept(op))
      gathers.push_back(&op);
  if (gathers.size() > size_t(maxGathers))
    gathers.resize(maxGathers);
  IRMapping mapping;
  mapping.map(now.queries, first.queries);
  mapping.map(now.keys, first.keys);
  for (Operation *gather : gathers)
    rewriter.replaceAllUsesWith(
        gather->getResult(0),
        copyBefore(rewriter, loop, gather->getResult(0), mapping));
  // Nobody asks for their indices in the loop any more.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(*loop.getBody())))
    if (isOpTriviallyDead(&op))
      rewriter.eraseOp(&op);
  return gathers.size();
}
