//===- MaskReader.cpp - masks as formulas ---------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskReader.h"

#include "IntegerReader.h"
#include "attn/Support/BlockLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn::tile;

/// Comparisons of a formula beyond which it may be anything: a disjunctive
/// normal form of it would have too many disjuncts in the most cases.
static constexpr size_t maxLeaves = 256;

Formula IntegerReader::tooLarge() {
  result.hasOpaque = result.isTooLarge = true;
  return Formula::unknown();
}

static Formula equal(const Formula &a, const Formula &b) {
  return Formula::any(
      {Formula::all({a, b}), Formula::all({a.negated(), b.negated()})});
}

Formula IntegerReader::readBoolean(Value value) {
  auto known = booleans.find(value);
  if (known != booleans.end())
    return known->second;
  if (depth == maxDepth)
    return tooLarge();
  ++depth;
  Formula formula = computeBoolean(value);
  --depth;
  if (formula.numLeaves > maxLeaves)
    formula = tooLarge();
  booleans[value] = formula;
  return formula;
}

Formula IntegerReader::computeBoolean(Value value) {
  if (std::optional<int64_t> constant = getIntegerConstant(value))
    return Formula::constant(*constant != 0);
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned number) {
    return readBoolean(op->getOperand(number));
  };
  if (isa_and_nonnull<arith::AndIOp>(op))
    return Formula::all({operand(0), operand(1)});
  if (isa_and_nonnull<arith::OrIOp>(op))
    return Formula::any({operand(0), operand(1)});
  if (isa_and_nonnull<arith::XOrIOp>(op))
    return equal(operand(0), operand(1).negated());
  if (isa_and_nonnull<arith::SelectOp>(op)) {
    Formula condition = operand(0);
    return Formula::any({Formula::all({condition, operand(1)}),
                         Formula::all({condition.negated(), operand(2)})});
  }
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op))
    return readComparison(compare.getPredicate(), compare.getLhs(),
                          compare.getRhs());
  // A flag that is the same for the whole loop.
  if (value.getType().isInteger(1) && loop.isDefinedOutsideOfLoop(value)) {
    unsigned flag = getSymbol({SymbolSource::Kind::Scalar, value});
    return Formula::atLeastZero(LinearForm::variable(flag) +
                                LinearForm::number(-1));
  }
  result.hasOpaque = true;
  return Formula::unknown();
}

Formula IntegerReader::readComparison(arith::CmpIPredicate predicate, Value lhs,
                                      Value rhs, int64_t number) {
  using arith::CmpIPredicate;
  if (rhs && getElementTypeOrSelf(lhs).isInteger(1)) {
    if (predicate != CmpIPredicate::eq && predicate != CmpIPredicate::ne) {
      result.hasOpaque = true;
      return Formula::unknown();
    }
    Formula same = equal(readBoolean(lhs), readBoolean(rhs));
    return predicate == CmpIPredicate::eq ? same : same.negated();
  }
  Cases lefts = readInteger(lhs),
        rights = rhs ? readInteger(rhs) : single(LinearForm::number(number));
  std::vector<Formula> alternatives;
  for (const Case &left : lefts)
    for (const Case &right : rights)
      alternatives.push_back(
          Formula::all({left.condition, right.condition,
                        comparePredicate(predicate, left.form, right.form)}));
  return Formula::any(std::move(alternatives));
}

Formula IntegerReader::comparePredicate(arith::CmpIPredicate predicate,
                                        const LinearForm &lhs,
                                        const LinearForm &rhs) {
  using arith::CmpIPredicate;
  LinearForm minusOne = LinearForm::number(-1);
  auto notBelow = [&](const LinearForm &a, const LinearForm &b) {
    return atLeastZero(a - b);
  };
  // Without sign, a negative number is above the others.
  auto unsignedNotBelow = [&](const LinearForm &a, const LinearForm &b) {
    Formula aPositive = atLeastZero(a), bPositive = atLeastZero(b);
    Formula aNegative = aPositive.negated(), bNegative = bPositive.negated();
    return Formula::any({Formula::all({aNegative, bPositive}),
                         Formula::all({aNegative, bNegative, notBelow(a, b)}),
                         Formula::all({aPositive, bPositive, notBelow(a, b)})});
  };
  switch (predicate) {
  case CmpIPredicate::eq:
    return Formula::all({notBelow(lhs, rhs), notBelow(rhs, lhs)});
  case CmpIPredicate::ne:
    return Formula::any(
        {notBelow(lhs + minusOne, rhs), notBelow(rhs + minusOne, lhs)});
  case CmpIPredicate::sge:
    return notBelow(lhs, rhs);
  case CmpIPredicate::sle:
    return notBelow(rhs, lhs);
  case CmpIPredicate::sgt:
    return notBelow(lhs + minusOne, rhs);
  case CmpIPredicate::slt:
    return notBelow(rhs + minusOne, lhs);
  case CmpIPredicate::uge:
    return unsignedNotBelow(lhs, rhs);
  case CmpIPredicate::ule:
    return unsignedNotBelow(rhs, lhs);
  case CmpIPredicate::ugt:
    return unsignedNotBelow(rhs, lhs).negated();
  case CmpIPredicate::ult:
    return unsignedNotBelow(lhs, rhs).negated();
  }
  llvm_unreachable("no other predicate");
}

/// The bounds of the blocks, and what the last one says of the number of keys.
void IntegerReader::readBounds(Value lo, Value hi) {
  auto readBound = [&](Value bound) -> LinearForm {
    if (std::optional<int64_t> constant = getIntegerConstant(bound))
      return LinearForm::number(*constant);
    return LinearForm::variable(getSymbol({SymbolSource::Kind::Scalar, bound}));
  };
  VisitProblem &problem = result.problem;
  problem.lowerBound = readBound(lo);
  problem.upperBound = readBound(hi);
  auto quotient = hi.getDefiningOp<arith::CeilDivSIOp>();
  if (!quotient || getIntegerConstant(quotient.getRhs()) != problem.numColumns)
    return;
  result.numKeys = readBound(quotient.getLhs());
  LinearForm excess = problem.upperBound * problem.numColumns - *result.numKeys;
  problem.addFact(excess);
  problem.addFact(LinearForm::number(problem.numColumns - 1) - excess);
}

void MaskProblem::restrictRows(Value first, int64_t rows) {
  assert(rows >= 1 && "at least one row");
  unsigned symbol = problem.addSymbol();
  symbols[symbol] = {SymbolSource::Kind::Scalar, first};
  problem.restrictRows(LinearForm::variable(symbol), rows);
}

Formula IntegerReader::readScores(ScoresOp op) {
  std::vector<Formula> parts;
  if (op.hasMask())
    parts.push_back(
        readBoolean(op.getMask().front().getTerminator()->getOperand(0)));
  if (op.getBelow())
    parts.push_back(
        readComparison(arith::CmpIPredicate::slt, op.getKeys(), op.getBelow()));
  return Formula::all(std::move(parts));
}

MaskProblem attn::tile::readMask(ScoresOp op, scf::ForOp loop) {
  return readMask(op, loop, loop.getLowerBound(), loop.getUpperBound());
}

MaskProblem attn::tile::readMask(ScoresOp op, scf::ForOp loop, Value lo,
                                 Value hi) {
  auto type = cast<VectorType>(op.getScores().getType());
  MaskProblem result(type.getDimSize(0), type.getDimSize(1));
  IntegerReader reader(loop, result);
  reader.readBounds(lo, hi);
  result.problem.mask = reader.readScores(op);
  return result;
}

ComparisonProblem attn::tile::readComparison(ScoresOp op, scf::ForOp loop,
                                             arith::CmpIPredicate predicate,
                                             Value lhs, Value rhs,
                                             int64_t number) {
  auto type = cast<VectorType>(op.getScores().getType());
  ComparisonProblem result = {
      MaskProblem(type.getDimSize(0), type.getDimSize(1)), {}, {}};
  IntegerReader reader(loop, result.problem);
  reader.readBounds(loop.getLowerBound(), loop.getUpperBound());
  Formula shown = reader.readScores(op);
  auto read = [&](arith::CmpIPredicate predicate) {
    return Formula::all(
        {shown, reader.readComparison(predicate, lhs, rhs, number)});
  };
  result.holds = read(predicate);
  result.fails = read(arith::invertPredicate(predicate));
  return result;
}

FailureOr<ScoresOp> attn::tile::findMaskedScores(scf::ForOp loop) {
  auto scores = loop.getBody()->getOps<ScoresOp>();
  if (!llvm::hasSingleElement(scores) || !(*scores.begin()).hidesKeys() ||
      !loop.getInductionVar().getType().isIndex() || !hasUnitStep(loop))
    return failure();
  return *scores.begin();
}

SmallVector<Value> attn::tile::getConjuncts(ScoresOp op,
                                            function_ref<bool(Value)> isWhole) {
  SmallVector<Value> conjuncts,
      worklist = {op.getMask().front().getTerminator()->getOperand(0)};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    auto both = value.getDefiningOp<arith::AndIOp>();
    if (both && !isWhole(value))
      worklist.append({both.getRhs(), both.getLhs()});
    else
      conjuncts.push_back(value);
  }
  return conjuncts;
}
