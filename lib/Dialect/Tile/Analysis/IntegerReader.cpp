//===- IntegerReader.cpp - integers of a mask as linear forms -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerReader.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace attn::tile;

/// Cases of one integer beyond which it may be anything.
static constexpr size_t maxCases = 8;
/// Comparisons in the conditions of an integer, likewise.
static constexpr size_t maxCaseLeaves = 128;
/// Coefficients beyond which it may be anything: arithmetic on bounds must not
/// overflow.
static constexpr int64_t maxCoefficient = int64_t(1) << 31;

static bool isSmall(const LinearForm &form) {
  return std::abs(form.constant) <= maxCoefficient &&
         llvm::all_of(form.terms, [](const auto &term) {
           return std::abs(term.second) <= maxCoefficient;
         });
}

IntegerReader::Cases IntegerReader::single(LinearForm form) {
  Cases cases;
  cases.push_back({Formula::constant(true), std::move(form)});
  return cases;
}

IntegerReader::Cases IntegerReader::opaque() {
  result.hasOpaque = true;
  return single(LinearForm::variable(result.problem.addUnknown()));
}

/// The number of a block of a kernel, also counted from the end.
static bool isNumberOfBlock(Value value) {
  auto reversed = value.getDefiningOp<arith::SubIOp>();
  Value number = reversed ? reversed.getRhs() : value;
  auto argument = dyn_cast<BlockArgument>(number);
  auto kernel = argument
                    ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp())
                    : nullptr;
  if (!kernel || !reversed)
    return kernel != nullptr;
  Value bound = kernel.getGrid()[argument.getArgNumber()];
  if (std::optional<int64_t> size = getConstantIntValue(bound))
    return getIntegerConstant(reversed.getLhs()) == *size - 1;
  auto last = reversed.getLhs().getDefiningOp<arith::SubIOp>();
  return last && last.getLhs() == bound &&
         getIntegerConstant(last.getRhs()) == 1;
}

unsigned IntegerReader::getSymbol(SymbolSource source) {
  for (const auto &[number, other] : result.symbols)
    if (other == source)
      return number;
  VisitProblem &problem = result.problem;
  unsigned number = problem.addSymbol();
  LinearForm symbol = LinearForm::variable(number);
  if (source.kind == SymbolSource::Kind::Scalar) {
    Value value = source.value;
    bool isFlag = value.getType().isInteger(1);
    bool isBlockNumber = isNumberOfBlock(value);
    if (isFlag || isBlockNumber || value.getDefiningOp<memref::DimOp>())
      problem.addFact(symbol);
    if (isFlag)
      problem.addFact(LinearForm::number(1) - symbol);
  }
  result.symbols.insert({number, std::move(source)});
  return number;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

IntegerReader::Cases IntegerReader::readInteger(Value value) {
  value = ScoresOp::resolve(value);
  auto known = integers.find(value);
  if (known != integers.end())
    return known->second;
  if (depth == maxDepth) {
    result.isTooLarge = true;
    return opaque();
  }
  ++depth;
  Cases cases = computeInteger(value);
  --depth;
  size_t numLeaves = 0;
  llvm::erase_if(cases, [](const Case &option) {
    return option.condition.isConstant(false);
  });
  for (const Case &option : cases)
    numLeaves += option.condition.numLeaves;
  if (cases.size() > maxCases || numLeaves > maxCaseLeaves ||
      !llvm::all_of(cases, [](const Case &c) { return isSmall(c.form); }))
    cases = opaque();
  integers[value] = cases;
  return cases;
}

std::optional<LinearForm> IntegerReader::readSingle(Value value) {
  Cases cases = readInteger(value);
  if (cases.size() != 1)
    return std::nullopt;
  return cases.front().form;
}

IntegerReader::Cases IntegerReader::computeInteger(Value value) {
  if (std::optional<int64_t> constant = getIntegerConstant(value))
    return single(LinearForm::number(*constant));
  if (value == loop.getInductionVar())
    return single(LinearForm::variable(VisitProblem::block));
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::IndexCastOp>(op))
    return readInteger(op->getOperand(0));
  if (auto coords = dyn_cast_or_null<CoordsOp>(op))
    return readCoords(coords);
  if (auto broadcast = dyn_cast_or_null<vector::BroadcastOp>(op);
      broadcast && broadcast.getSourceType().isIntOrIndex())
    return readInteger(broadcast.getSource());
  // Any other scalar that is the same for the whole loop. A product with a
  // constant, like the first row of a block, says more than its value.
  bool isScalar = value.getType().isIntOrIndex();
  bool mayWrap = op && sizes.mayWrap(op);
  if (isScalar && isa_and_nonnull<arith::MulIOp>(op) && !mayWrap &&
      getIntegerConstant(op->getOperand(1)))
    return readArithmetic(op);
  if (isScalar && loop.isDefinedOutsideOfLoop(value))
    return single(
        LinearForm::variable(getSymbol({SymbolSource::Kind::Scalar, value})));
  if (!op || mayWrap)
    return opaque();
  if (std::optional<unsigned> data = readRowData(value))
    return single(LinearForm::variable(*data));
  if (std::optional<unsigned> data = readKeyData(value))
    return single(LinearForm::variable(*data));
  return readArithmetic(op);
}

IntegerReader::Cases IntegerReader::readCoords(CoordsOp coords) {
  std::optional<LinearForm> base = readSingle(coords.getBase());
  auto type = cast<VectorType>(coords.getResult().getType());
  if (!base || type.getRank() != 2)
    return opaque();
  if (coords.getAxis() == 0)
    return single(*base + LinearForm::variable(VisitProblem::row));
  return single(
      *base + LinearForm::variable(VisitProblem::column) -
      LinearForm::variable(VisitProblem::block, result.problem.numColumns));
}

IntegerReader::Cases IntegerReader::readBinary(
    Operation *op,
    function_ref<Cases(const LinearForm &, const LinearForm &)> make) {
  Cases cases;
  for (const Case &left : readInteger(op->getOperand(0)))
    for (const Case &right : readInteger(op->getOperand(1)))
      for (Case &made : make(left.form, right.form))
        cases.push_back(
            {Formula::all({left.condition, right.condition, made.condition}),
             std::move(made.form)});
  return cases;
}

/// `make` of what is not negative; a negative number is a large one.
IntegerReader::Cases
IntegerReader::readUnsigned(const Cases &cases,
                            function_ref<LinearForm(const LinearForm &)> make) {
  Cases made;
  for (const Case &option : cases) {
    Formula positive = atLeastZero(option.form);
    LinearForm negative = option.form * -1 + LinearForm::number(-1);
    made.push_back(
        {Formula::all({option.condition, positive}), make(option.form)});
    if (isInfeasible(result.problem, {negative})) {
      made.back().condition = option.condition;
      continue;
    }
    made.push_back({Formula::all({option.condition, positive.negated()}),
                    LinearForm::variable(result.problem.addUnknown())});
  }
  return made;
}

/// Where `form` is one number for all rows of a block, up to a part that is too
/// small to change the quotient: the number. `form` is of symbols and rows.
static std::optional<LinearForm> getUniformPart(const VisitProblem &problem,
                                                const LinearForm &form,
                                                int64_t divisor) {
  int64_t step = divisor;
  LinearForm uniform, rest = LinearForm::number(form.constant);
  for (auto [variable, coefficient] : form.terms) {
    LinearForm term = LinearForm::variable(variable, coefficient);
    if (!problem.isSymbol(variable)) {
      rest += term;
      continue;
    }
    uniform += term;
    step = std::gcd(step, coefficient);
  }
  int64_t last = rest.constant +
                 rest.coefficient(VisitProblem::row) * (problem.numRows - 1);
  bool onlyRows =
      rest.terms.empty() ||
      (rest.terms.size() == 1 && rest.terms.front().first == VisitProblem::row);
  int64_t place = llvm::divideFloorSigned(rest.constant, step);
  if (!onlyRows || llvm::divideFloorSigned(last, step) != place)
    return std::nullopt;
  return uniform + LinearForm::number(place * step);
}

/// A symbol for the quotient of symbols.
LinearForm IntegerReader::symbolicQuotient(const LinearForm &form,
                                           int64_t divisor) {
  if (form.terms.empty())
    return LinearForm::number(llvm::divideFloorSigned(form.constant, divisor));
  size_t before = result.symbols.size();
  unsigned symbol =
      getSymbol({SymbolSource::Kind::Quotient, Value(), true, form, divisor});
  if (result.symbols.size() != before) {
    LinearForm rest = form - LinearForm::variable(symbol, divisor);
    result.problem.addFact(rest, symbol);
    result.problem.addFact(LinearForm::number(divisor - 1) - rest, symbol);
  }
  return LinearForm::variable(symbol);
}

/// floor(form / divisor). What the divisor divides stands outside; quotients of
/// rows lie between those of the first and the last one, which are symbols.
LinearForm IntegerReader::quotient(const LinearForm &form, int64_t divisor) {
  if (divisor == 1)
    return form;
  // floor((x + floor(y / a)) / b) = floor((a x + y) / ab)
  for (auto [variable, coefficient] : form.terms) {
    const VisitProblem::Quotient *inner = result.problem.findQuotient(variable);
    if (coefficient != 1 || !inner || inner->divisor > maxCoefficient / divisor)
      continue;
    LinearForm dividend =
        (form - LinearForm::variable(variable)) * inner->divisor + inner->form;
    if (isSmall(dividend))
      return quotient(dividend, inner->divisor * divisor);
  }
  LinearForm whole, rest;
  whole.constant = llvm::divideFloorSigned(form.constant, divisor);
  rest.constant = form.constant - whole.constant * divisor;
  for (auto [variable, coefficient] : form.terms) {
    if (coefficient % divisor == 0)
      whole += LinearForm::variable(variable, coefficient / divisor);
    else
      rest += LinearForm::variable(variable, coefficient);
  }
  if (std::optional<LinearForm> uniform =
          getUniformPart(result.problem, rest, divisor))
    return whole + symbolicQuotient(*uniform, divisor);
  unsigned number = result.problem.addQuotient(rest, divisor);
  LinearForm quotient = LinearForm::variable(number);
  std::optional<LinearForm> least = getExtreme(rest, /*greatest=*/false);
  std::optional<LinearForm> most = getExtreme(rest, /*greatest=*/true);
  if (least && most && boundedQuotients.insert(number).second) {
    result.problem.addFact(quotient - symbolicQuotient(*least, divisor),
                           number);
    result.problem.addFact(symbolicQuotient(*most, divisor) - quotient, number);
  }
  return whole + quotient;
}

IntegerReader::Cases IntegerReader::readDivision(Operation *op,
                                                 int64_t divisor) {
  Cases dividend = readInteger(op->getOperand(0));
  Cases cases;
  auto addSigned = [&](auto positive, auto negative) {
    for (const Case &option : dividend) {
      LinearForm below = option.form * -1 + LinearForm::number(-1);
      Formula isPositive = atLeastZero(option.form);
      if (isInfeasible(result.problem, {below})) {
        cases.push_back({option.condition, positive(option.form)});
        continue;
      }
      cases.push_back({Formula::all({option.condition, isPositive}),
                       positive(option.form)});
      cases.push_back({Formula::all({option.condition, isPositive.negated()}),
                       negative(option.form)});
    }
    return cases;
  };
  auto floor = [&](const LinearForm &x) { return quotient(x, divisor); };
  auto rest = [&](const LinearForm &x) {
    return x - quotient(x, divisor) * divisor;
  };
  if (isa<arith::DivSIOp>(op))
    return addSigned(floor, [&](const LinearForm &x) {
      return quotient(x * -1, divisor) * -1;
    });
  if (isa<arith::RemSIOp>(op))
    return addSigned(rest, [&](const LinearForm &x) {
      return x + quotient(x * -1, divisor) * divisor;
    });
  if (isa<arith::DivUIOp>(op))
    return readUnsigned(dividend, floor);
  if (isa<arith::RemUIOp>(op))
    return readUnsigned(dividend, rest);
  for (const Case &option : dividend)
    cases.push_back(
        {option.condition, isa<arith::FloorDivSIOp>(op)
                               ? floor(option.form)
                               : quotient(option.form * -1, divisor) * -1});
  return cases;
}

IntegerReader::Cases IntegerReader::readArithmetic(Operation *op) {
  auto bits =
      getElementTypeOrSelf(op->getResult(0)).isIndex()
          ? 64
          : getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
  if (isa<arith::AddIOp>(op))
    return readBinary(op, [](const LinearForm &a, const LinearForm &b) {
      return single(a + b);
    });
  if (isa<arith::SubIOp>(op))
    return readBinary(op, [](const LinearForm &a, const LinearForm &b) {
      return single(a - b);
    });
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    bool isMax = isa<arith::MaxSIOp>(op);
    return readBinary(op, [&](const LinearForm &a, const LinearForm &b) {
      Formula first = isMax ? atLeastZero(a - b) : atLeastZero(b - a);
      Cases cases;
      cases.push_back({first, a});
      cases.push_back({first.negated(), b});
      return cases;
    });
  }
  if (isa<arith::SelectOp>(op)) {
    Formula condition = readBoolean(op->getOperand(0));
    Cases cases;
    for (unsigned side : {1, 2})
      for (Case &option : readInteger(op->getOperand(side)))
        cases.push_back(
            {Formula::all({side == 1 ? condition : condition.negated(),
                           option.condition}),
             option.form});
    return cases;
  }
  if (isa<math::AbsIOp>(op)) {
    Cases cases;
    for (Case &option : readInteger(op->getOperand(0))) {
      Formula positive = atLeastZero(option.form);
      cases.push_back(
          {Formula::all({option.condition, positive}), option.form});
      cases.push_back({Formula::all({option.condition, positive.negated()}),
                       option.form * -1});
    }
    return cases;
  }
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op)) {
    Value source = op->getOperand(0);
    if (!getElementTypeOrSelf(source).isInteger(1))
      return isa<arith::ExtSIOp>(op)
                 ? readInteger(source)
                 : readUnsigned(readInteger(source),
                                [](const LinearForm &x) { return x; });
    Formula flag = readBoolean(source);
    Cases cases;
    cases.push_back(
        {flag, LinearForm::number(isa<arith::ExtSIOp>(op) ? -1 : 1)});
    cases.push_back({flag.negated(), LinearForm::number(0)});
    return cases;
  }
  // One operand is a constant.
  if (isa<arith::MulIOp, arith::AndIOp>(op)) {
    for (unsigned side : {0, 1}) {
      std::optional<int64_t> constant =
          getIntegerConstant(op->getOperand(side));
      if (!constant || std::abs(*constant) > maxCoefficient)
        continue;
      Cases cases = readInteger(op->getOperand(1 - side));
      if (isa<arith::AndIOp>(op)) {
        // The lowest bits: a remainder, also of negative numbers.
        if (*constant < 0 || !llvm::isPowerOf2_64(*constant + 1))
          continue;
        for (Case &option : cases)
          option.form +=
              quotient(option.form, *constant + 1) * -(*constant + 1);
        return cases;
      }
      if (!llvm::all_of(cases, [](const Case &c) { return isSmall(c.form); }))
        return opaque();
      for (Case &option : cases)
        option.form *= *constant;
      return cases;
    }
    return opaque();
  }
  std::optional<int64_t> constant = op->getNumOperands() == 2
                                        ? getIntegerConstant(op->getOperand(1))
                                        : std::nullopt;
  if (!constant || *constant < 0 || *constant > maxCoefficient)
    return opaque();
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op)) {
    if (*constant >= std::min<int64_t>(bits, 31))
      return opaque();
    int64_t factor = int64_t(1) << *constant;
    Cases cases = readInteger(op->getOperand(0));
    if (isa<arith::ShRUIOp>(op))
      return readUnsigned(
          cases, [&](const LinearForm &x) { return quotient(x, factor); });
    for (Case &option : cases)
      option.form = isa<arith::ShLIOp>(op) ? option.form * factor
                                           : quotient(option.form, factor);
    return cases;
  }
  if (*constant > 0 &&
      isa<arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp,
          arith::FloorDivSIOp, arith::CeilDivSIOp>(op))
    return readDivision(op, *constant);
  return opaque();
}
