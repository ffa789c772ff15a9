//===- SortedData.cpp - what sorted memory says of rows and keys ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerReader.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn::tile;

IntegerReader::Direction IntegerReader::getDirection(Value value) {
  value = ScoresOp::resolve(value);
  auto known = directions.find(value);
  if (known != directions.end())
    return known->second;
  if (depth == maxDepth) {
    result.isTooLarge = true;
    return std::nullopt;
  }
  ++depth;
  Direction direction = computeDirection(value);
  --depth;
  return directions[value] = direction;
}

IntegerReader::Direction IntegerReader::computeDirection(Value value) {
  if (getIntegerConstant(value))
    return 0;
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return 0;
  Operation *op = value.getDefiningOp();
  if (!op || sizes.mayWrap(op))
    return std::nullopt;
  auto operand = [&](unsigned number) {
    return getDirection(op->getOperand(number));
  };
  auto join = [](Direction a, Direction b) -> Direction {
    if (!a || !b || *a * *b < 0)
      return std::nullopt;
    return *a != 0 ? *a : *b;
  };
  auto negate = [](Direction a) { return a ? Direction(-*a) : std::nullopt; };
  if (auto coords = dyn_cast<CoordsOp>(op)) {
    if (coords.getAxis() == 0 && loop.isDefinedOutsideOfLoop(coords.getBase()))
      return 1;
    return std::nullopt;
  }
  if (isa<arith::ExtSIOp>(op))
    return operand(0);
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return join(operand(0), operand(1));
  if (isa<arith::SubIOp>(op))
    return join(operand(0), negate(operand(1)));
  if (isa<arith::MulIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::ShRSIOp>(
          op)) {
    std::optional<int64_t> constant = getIntegerConstant(op->getOperand(1));
    if (!constant)
      return std::nullopt;
    bool isNegative = *constant < 0 && !isa<arith::ShRSIOp>(op);
    return isNegative ? negate(operand(0)) : operand(0);
  }
  auto areUniform = [&](auto indices) {
    return llvm::all_of(indices, [&](Value index) {
      return getDirection(index) == Direction(0);
    });
  };
  if (auto gather = dyn_cast<GatherOp>(op)) {
    if (!gather.getSorted() || !areUniform(gather.getIndices().drop_back()))
      return std::nullopt;
    return getDirection(gather.getIndices().back());
  }
  if (auto search = dyn_cast<SearchOp>(op)) {
    if (!areUniform(search.getIndices()))
      return std::nullopt;
    return getDirection(search.getValue());
  }
  return std::nullopt;
}

/// A variable between two symbols, if the element of each row is between those
/// of the first and the last one.
std::optional<unsigned> IntegerReader::readRowData(Value value) {
  if (!isa_and_nonnull<GatherOp, SearchOp>(value.getDefiningOp()))
    return std::nullopt;
  Direction direction = getDirection(value);
  if (!direction)
    return std::nullopt;
  RowData data;
  data.least = getSymbol({SymbolSource::Kind::LeastOfRows, value,
                          /*isIncreasing=*/*direction >= 0});
  data.greatest = getSymbol({SymbolSource::Kind::GreatestOfRows, value,
                             /*isIncreasing=*/*direction >= 0});
  VisitProblem &problem = result.problem;
  unsigned number = problem.addUnknown();
  LinearForm element = LinearForm::variable(number);
  problem.addFact(element - LinearForm::variable(data.least), number);
  problem.addFact(LinearForm::variable(data.greatest) - element, number);
  rowData[number] = data;
  return number;
}

/// A variable for a sorted element at the key, or for a search for it.
std::optional<unsigned> IntegerReader::readKeyData(Value value) {
  Operation *op = value.getDefiningOp();
  auto areUniform = [&](auto indices) {
    return llvm::all_of(indices, [&](Value index) {
      index = ScoresOp::resolve(index);
      return getIntegerConstant(index) || (index.getType().isInteger(32) &&
                                           loop.isDefinedOutsideOfLoop(index));
    });
  };
  std::optional<LinearForm> place;
  auto gather = dyn_cast<GatherOp>(op);
  auto search = dyn_cast<SearchOp>(op);
  if (gather && gather.getSorted() &&
      getElementTypeOrSelf(value).isInteger(32) &&
      areUniform(gather.getIndices().drop_back()))
    place = readSingle(gather.getIndices().back());
  else if (search && areUniform(search.getIndices()))
    place = readSingle(search.getValue());
  if (!place || place->coefficient(VisitProblem::column) != 1)
    return std::nullopt;
  // What is searched for is the key minus the offset.
  LinearForm offset = LinearForm::variable(VisitProblem::column) - *place;
  if (!result.problem.isSymbolicForm(offset) ||
      (gather && offset != LinearForm()))
    return std::nullopt;
  unsigned number = result.problem.addUnknown();
  keyData[number] = {value, offset};
  return number;
}

/// The greatest or least value of `form` for the rows of a block, of symbols.
std::optional<LinearForm> IntegerReader::getExtreme(const LinearForm &form,
                                                    bool greatest) {
  LinearForm extreme = LinearForm::number(form.constant);
  for (auto [variable, coefficient] : form.terms) {
    bool isUpper = (coefficient > 0) == greatest;
    auto data = rowData.find(variable);
    if (result.problem.isSymbol(variable))
      extreme += LinearForm::variable(variable, coefficient);
    else if (variable == VisitProblem::row)
      extreme.constant +=
          isUpper ? coefficient * (result.problem.numRows - 1) : 0;
    else if (data != rowData.end())
      extreme += LinearForm::variable(
          isUpper ? data->second.greatest : data->second.least, coefficient);
    else
      return std::nullopt;
  }
  return extreme;
}

/// form >= 0, where an element at the key is compared with what does not depend
/// on the key: a bound of the key.
Formula IntegerReader::atLeastZero(const LinearForm &form) {
  auto *term = llvm::find_if(form.terms, [&](const auto &candidate) {
    return keyData.contains(candidate.first);
  });
  if (term == form.terms.end())
    return Formula::atLeastZero(form);
  auto [variable, coefficient] = *term;
  const KeyData &data = keyData[variable];
  LinearForm rest = form - LinearForm::variable(variable, coefficient);
  std::optional<LinearForm> most = getExtreme(rest, /*greatest=*/true);
  std::optional<LinearForm> least = getExtreme(rest, /*greatest=*/false);
  if (!most || !least) {
    result.hasOpaque = true;
    return Formula::unknown();
  }
  LinearForm key = LinearForm::variable(VisitProblem::column);
  LinearForm minusOne = LinearForm::number(-1);
  // Keys below the number of those with y <= floor(limit / divisor), or not.
  int64_t divisor = std::abs(coefficient);
  auto below = [&](const LinearForm &limit) {
    unsigned symbol = getSymbol({SymbolSource::Kind::KeysAtMost, data.value,
                                 true, limit, divisor, data.offset});
    return LinearForm::variable(symbol) - key + minusOne;
  };
  auto notBelow = [&](const LinearForm &limit) {
    unsigned symbol = getSymbol({SymbolSource::Kind::KeysBelow, data.value,
                                 true, limit, divisor, data.offset});
    return key - LinearForm::variable(symbol);
  };
  Formula leaf;
  if (coefficient < 0) {
    // y <= floor(rest / d)
    leaf.holds = below(*most);
    leaf.fails = notBelow(*least);
  } else {
    // y >= ceil(-rest / d), that is not y <= floor((-rest - 1) / d)
    leaf.holds = notBelow(*most * -1 + minusOne);
    leaf.fails = below(*least * -1 + minusOne);
  }
  return leaf;
}
