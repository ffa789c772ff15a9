//===- ScoreChoice.cpp - what a score chooses -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreChoice.h"

#include "attn/Dialect/Tile/Analysis/NumberRange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::tile;
using arith::CmpIPredicate;

bool Choice::isDecided(bool outcome, Side side) const {
  ArrayRef<BlockInterval> others = blocks[!outcome], own = blocks[outcome];
  if (own.empty() || (known && *known != outcome))
    return false;
  if (others.empty())
    return true;
  const BlockInterval &interval = others.front();
  auto bounds =
      side == Side::Before ? interval.lowerBounds() : interval.upperBounds();
  return llvm::any_of(bounds, [&](const LinearForm &bound) {
    SmallVector<LinearForm, 4> beyond(own.front().constraints);
    beyond.push_back(bound * -1 + LinearForm::number(-1));
    return !isInfeasible(comparison.problem.problem, beyond);
  });
}

static Choice makeChoice(size_t number, ComparisonProblem comparison) {
  const VisitProblem &problem = comparison.problem.problem;
  std::array<SmallVector<BlockInterval, 2>, 2> blocks = {
      findBlocks(problem, comparison.fails, 1),
      findBlocks(problem, comparison.holds, 1)};
  return {number, std::move(comparison), std::move(blocks)};
}

/// By which comparison of its operands, the second of which may be zero, `op`
/// chooses.
static std::optional<CmpIPredicate> getPredicate(Operation *op) {
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return comparison.getPredicate();
  if (isa<arith::MinSIOp>(op))
    return CmpIPredicate::sle;
  if (isa<arith::MaxSIOp, math::AbsIOp>(op))
    return CmpIPredicate::sge;
  if (isa<arith::MinUIOp>(op))
    return CmpIPredicate::ule;
  if (isa<arith::MaxUIOp>(op))
    return CmpIPredicate::uge;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Half lines
//===----------------------------------------------------------------------===//

/// Distances beyond which nothing is searched for.
static constexpr int64_t maxDistance = int64_t(1) << 20;

/// Whether a minimum or maximum is its first operand where `variable` is at
/// least `from`; nothing where it may be either.
static std::optional<bool> findOutcome(Operation *op, Value variable,
                                       int64_t from) {
  NumberRange half = {double(from), 0x1p31 - 1};
  std::optional<NumberRange> lhs = findRange(op->getOperand(0), variable, half),
                             rhs = findRange(op->getOperand(1), variable, half);
  if (!lhs || !rhs)
    return std::nullopt;
  bool isMinimum = isa<arith::MinSIOp, arith::MinimumFOp, arith::MinNumFOp>(op);
  if (lhs->most <= rhs->least)
    return isMinimum;
  if (lhs->least >= rhs->most)
    return !isMinimum;
  return std::nullopt;
}

/// The choice of a minimum or maximum, from a number on that an integer has
/// that it depends on alone.
static std::optional<Choice> readHalfLine(Operation *op, size_t number,
                                          scf::ForOp loop) {
  Block *block = op->getBlock();
  for (Operation &other : llvm::make_range(
           std::next(Block::reverse_iterator(op)), block->rend())) {
    auto type = dyn_cast<IntegerType>(other.getResult(0).getType());
    if (!type || type.getWidth() < 32 ||
        other.hasTrait<OpTrait::ConstantLike>())
      continue;
    Value variable = other.getResult(0);
    int64_t from = 1;
    while (from < maxDistance && !findOutcome(op, variable, from))
      from *= 2;
    std::optional<bool> outcome = findOutcome(op, variable, from);
    if (!outcome)
      continue;
    // Of those between, which may have any outcome, none is taken unseen.
    for (int64_t step = from / 2; step > 0; step /= 2)
      if (findOutcome(op, variable, from - step) == outcome)
        from -= step;
    ComparisonProblem comparison =
        readComparison(cast<ScoresOp>(op->getParentOp()), loop,
                       *outcome ? CmpIPredicate::sge : CmpIPredicate::slt,
                       variable, Value(), from);
    if (comparison.problem.hasOpaque)
      continue;
    Choice choice = makeChoice(number, std::move(comparison));
    choice.known = outcome;
    return choice;
  }
  return std::nullopt;
}

std::optional<Choice> attn::tile::readChoice(Operation *op, size_t number,
                                             scf::ForOp loop) {
  std::optional<Choice> choice;
  if (std::optional<CmpIPredicate> predicate = getPredicate(op)) {
    Value rhs = op->getNumOperands() == 2 ? op->getOperand(1) : Value();
    choice = makeChoice(number,
                        readComparison(cast<ScoresOp>(op->getParentOp()), loop,
                                       *predicate, op->getOperand(0), rhs));
    if (!choice->comparison.problem.hasOpaque)
      return choice;
  }
  if (isa<arith::MinSIOp, arith::MaxSIOp, arith::MinimumFOp, arith::MaximumFOp,
          arith::MinNumFOp, arith::MaxNumFOp>(op))
    if (std::optional<Choice> beyond = readHalfLine(op, number, loop))
      return beyond;
  return choice;
}
