//===- MaskRunner.cpp - a mask, run for some positions --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/MaskRunner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace attn;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

/// Of b, h, i, j.
static constexpr unsigned headNumber = 1, queryNumber = 2, keyNumber = 3;

template <typename Element, typename Result, typename Function>
static void combine(ArrayRef<Element> lhs, ArrayRef<Element> rhs,
                    std::vector<Result> &result, Function function) {
  size_t size = std::max(lhs.size(), rhs.size());
  result.resize(size);
  Result *to = result.data();
  // Loops that the compiler makes vectors of.
  if (lhs.size() == rhs.size()) {
    for (size_t i = 0; i < size; ++i)
      to[i] = function(lhs[i], rhs[i]);
  } else if (rhs.size() == 1) {
    Element right = rhs[0];
    for (size_t i = 0; i < size; ++i)
      to[i] = function(lhs[i], right);
  } else {
    Element left = lhs[0];
    for (size_t i = 0; i < size; ++i)
      to[i] = function(left, rhs[i]);
  }
}

template <typename Element, typename Result, typename Function>
static void map(ArrayRef<Element> of, std::vector<Result> &result,
                Function function) {
  result.resize(of.size());
  for (size_t i = 0; i < of.size(); ++i)
    result[i] = function(of[i]);
}

template <typename Element>
static void select(ArrayRef<int32_t> condition, ArrayRef<Element> yes,
                   ArrayRef<Element> no, std::vector<Element> &result) {
  size_t size = std::max({condition.size(), yes.size(), no.size()});
  result.resize(size);
  auto at = [](auto numbers, size_t i) {
    return numbers[numbers.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < size; ++i)
    result[i] = at(condition, i) ? at(yes, i) : at(no, i);
}

/// Rounded towards zero: by floats, of which there are vectors.
static int32_t divide(int32_t lhs, int32_t rhs) {
  double divisor = rhs == 0 ? 1 : rhs;
  double quotient = double(lhs) / divisor;
  // The least number by -1.
  constexpr double greatest = 2147483647;
  return int32_t(quotient > greatest ? greatest : quotient);
}
static int32_t divideDown(int32_t lhs, int32_t rhs) {
  int32_t quotient = divide(lhs, rhs);
  return quotient -
         int32_t(quotient * int64_t(rhs) != lhs && (lhs < 0) != (rhs < 0));
}
static int32_t shiftCount(int32_t count) { return count & 31; }

/// 1 where the comparison holds.
template <typename Combine>
static bool withComparison(CmpIPredicate predicate, Combine combine) {
  using U = uint32_t;
  switch (predicate) {
  case CmpIPredicate::eq:
    return combine([](int32_t a, int32_t b) { return int32_t(a == b); });
  case CmpIPredicate::ne:
    return combine([](int32_t a, int32_t b) { return int32_t(a != b); });
  case CmpIPredicate::slt:
    return combine([](int32_t a, int32_t b) { return int32_t(a < b); });
  case CmpIPredicate::sle:
    return combine([](int32_t a, int32_t b) { return int32_t(a <= b); });
  case CmpIPredicate::sgt:
    return combine([](int32_t a, int32_t b) { return int32_t(a > b); });
  case CmpIPredicate::sge:
    return combine([](int32_t a, int32_t b) { return int32_t(a >= b); });
  case CmpIPredicate::ult:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) < U(b)); });
  case CmpIPredicate::ule:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) <= U(b)); });
  case CmpIPredicate::ugt:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) > U(b)); });
  case CmpIPredicate::uge:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) >= U(b)); });
  }
  return false;
}

/// What `combine` does with the function of two numbers that an operation is;
/// false: it is none.
template <typename Combine>
static bool withFunction(Operation &op, Combine combine) {
  using U = uint32_t;
  return TypeSwitch<Operation *, bool>(&op)
      .Case([&](arith::AddIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) + b); });
      })
      .Case([&](arith::SubIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) - b); });
      })
      .Case([&](arith::MulIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) * b); });
      })
      .template Case<arith::DivSIOp, arith::DivUIOp>(
          [&](Operation *) { return combine(divide); })
      .Case([&](arith::FloorDivSIOp) { return combine(divideDown); })
      .template Case<arith::RemSIOp, arith::RemUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) {
          return a - int32_t(U(divide(a, b)) * b);
        });
      })
      .Case([&](arith::AndIOp) {
        return combine([](int32_t a, int32_t b) { return a & b; });
      })
      .Case([&](arith::OrIOp) {
        return combine([](int32_t a, int32_t b) { return a | b; });
      })
      .Case([&](arith::XOrIOp) {
        return combine([](int32_t a, int32_t b) { return a ^ b; });
      })
      .Case([&](arith::ShLIOp) {
        return combine([](int32_t a, int32_t b) {
          return int32_t(U(a) << shiftCount(b));
        });
      })
      .Case([&](arith::ShRSIOp) {
        return combine([](int32_t a, int32_t b) { return a >> shiftCount(b); });
      })
      .Case([&](arith::ShRUIOp) {
        return combine([](int32_t a, int32_t b) {
          return int32_t(U(a) >> shiftCount(b));
        });
      })
      .template Case<arith::MinSIOp, arith::MinUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) { return std::min(a, b); });
      })
      .template Case<arith::MaxSIOp, arith::MaxUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) { return std::max(a, b); });
      })
      .Case([&](arith::CmpIOp compare) {
        return withComparison(compare.getPredicate(), combine);
      })
      .Default(false);
}

/// The same of floats.
template <typename Combine>
static bool withFloatFunction(Operation &op, Combine combine) {
  return TypeSwitch<Operation *, bool>(&op)
      .Case([&](arith::AddFOp) {
        return combine([](float a, float b) { return a + b; });
      })
      .Case([&](arith::SubFOp) {
        return combine([](float a, float b) { return a - b; });
      })
      .Case([&](arith::MulFOp) {
        return combine([](float a, float b) { return a * b; });
      })
      .Case([&](arith::DivFOp) {
        return combine([](float a, float b) { return a / b; });
      })
      .template Case<arith::MinimumFOp, arith::MinNumFOp>([&](Operation *) {
        return combine([](float a, float b) { return a < b ? a : b; });
      })
      .template Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) {
        return combine([](float a, float b) { return a > b ? a : b; });
      })
      .Default(false);
}

/// And of one float.
template <typename Map> static bool withFloatMap(Operation &op, Map map) {
  return TypeSwitch<Operation *, bool>(&op)
      .Case([&](arith::NegFOp) { return map([](float a) { return -a; }); })
      .Case([&](math::AbsFOp) {
        return map([](float a) { return std::fabs(a); });
      })
      .Case([&](math::FloorOp) {
        return map([](float a) { return std::floor(a); });
      })
      .Case([&](math::CeilOp) {
        return map([](float a) { return std::ceil(a); });
      })
      .Case([&](math::TruncOp) {
        return map([](float a) { return std::trunc(a); });
      })
      .Case([&](math::RoundEvenOp) {
        return map([](float a) { return std::nearbyint(a); });
      })
      .Case([&](math::SqrtOp) {
        return map([](float a) { return std::sqrt(a); });
      })
      .template Case<arith::ExtFOp, arith::TruncFOp>(
          [&](Operation *) { return map([](float a) { return a; }); })
      .Default(false);
}

/// 1 where the comparison holds; those with what is not a number are not told
/// apart.
template <typename Combine>
static bool withComparison(CmpFPredicate predicate, Combine combine) {
  switch (predicate) {
  case CmpFPredicate::OEQ:
  case CmpFPredicate::UEQ:
    return combine([](float a, float b) { return int32_t(a == b); });
  case CmpFPredicate::ONE:
  case CmpFPredicate::UNE:
    return combine([](float a, float b) { return int32_t(a != b); });
  case CmpFPredicate::OLT:
  case CmpFPredicate::ULT:
    return combine([](float a, float b) { return int32_t(a < b); });
  case CmpFPredicate::OLE:
  case CmpFPredicate::ULE:
    return combine([](float a, float b) { return int32_t(a <= b); });
  case CmpFPredicate::OGT:
  case CmpFPredicate::UGT:
    return combine([](float a, float b) { return int32_t(a > b); });
  case CmpFPredicate::OGE:
  case CmpFPredicate::UGE:
    return combine([](float a, float b) { return int32_t(a >= b); });
  default:
    return false;
  }
}

/// Rounded towards zero, and held to 32 bits.
static int32_t toInteger(float value) {
  constexpr float limit = 2147483520;
  return value >= limit ? INT32_MAX
                        : (value > -limit ? int32_t(value) : INT32_MIN);
}

bool MaskRunner::evaluateFloat(Operation &op) {
  std::vector<float> &result = values.find(op.getResult(0))->second.floats;
  FloatAttr constant;
  if (matchPattern(&op, m_Constant(&constant))) {
    result.assign(1, float(constant.getValueAsDouble()));
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    select(getNumbers(op.getOperand(0)), getFloats(op.getOperand(1)),
           getFloats(op.getOperand(2)), result);
    return true;
  }
  // Of a condition 0 or 1.
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    ::map(getNumbers(op.getOperand(0)), result,
          [](int32_t value) { return float(value); });
    return true;
  }
  auto combineTwo = [&](auto function) {
    combine(getFloats(op.getOperand(0)), getFloats(op.getOperand(1)), result,
            function);
    return true;
  };
  return withFloatMap(op,
                      [&](auto function) {
                        ::map(getFloats(op.getOperand(0)), result, function);
                        return true;
                      }) ||
         withFloatFunction(op, combineTwo);
}

bool MaskRunner::evaluateInteger(Operation &op) {
  std::vector<int32_t> &result = values.find(op.getResult(0))->second.numbers;
  APInt constant;
  if (matchPattern(&op, m_ConstantInt(&constant))) {
    bool isTruth = constant.getBitWidth() == 1;
    result.assign(1, isTruth ? constant.getZExtValue()
                             : constant.sextOrTrunc(32).getSExtValue());
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    select(getNumbers(op.getOperand(0)), getNumbers(op.getOperand(1)),
           getNumbers(op.getOperand(2)), result);
    return true;
  }
  if (isa<arith::FPToSIOp>(op)) {
    ::map(getFloats(op.getOperand(0)), result, toInteger);
    return true;
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return withComparison(compare.getPredicate(), [&](auto function) {
      combine(getFloats(compare.getLhs()), getFloats(compare.getRhs()), result,
              function);
      return true;
    });
  auto mapOne = [&](auto function) {
    ::map(getNumbers(op.getOperand(0)), result, function);
    return true;
  };
  if (isa<math::AbsIOp>(op))
    return mapOne([](int32_t value) {
      return int32_t(value < 0 ? -uint32_t(value) : uint32_t(value));
    });
  if (isa<arith::ExtSIOp>(op) && op.getOperand(0).getType().isInteger(1))
    return mapOne([](int32_t value) { return -value; });
  if (isa<arith::TruncIOp>(op) && op.getResult(0).getType().isInteger(1))
    return mapOne([](int32_t value) { return value & 1; });
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(
          op))
    return mapOne([](int32_t value) { return value; });
  return withFunction(op, [&](auto function) {
    combine(getNumbers(op.getOperand(0)), getNumbers(op.getOperand(1)), result,
            function);
    return true;
  });
}

bool MaskRunner::evaluate(Operation &op) {
  return isa<FloatType>(op.getResult(0).getType()) ? evaluateFloat(op)
                                                   : evaluateInteger(op);
}

Value MaskRunner::getPosition() const {
  return mask.getArgument(isAlongQueries ? keyNumber : queryNumber);
}

/// Of the region, or a constant or an integer from outside.
bool MaskRunner::isKnown(Value value) {
  if (values.contains(value))
    return true;
  if (value.getParentBlock() == &mask)
    return false;
  KeyNumbers known;
  APInt constant;
  FloatAttr number;
  if (matchPattern(value, m_ConstantInt(&constant)))
    known.numbers = {constant.getBitWidth() == 1
                         ? int32_t(constant.getZExtValue())
                         : int32_t(constant.sextOrTrunc(32).getSExtValue())};
  else if (matchPattern(value, m_Constant(&number)))
    known.floats = {float(number.getValueAsDouble())};
  else if (value.getType().isIntOrIndex() && !value.getType().isInteger(1))
    known.numbers = {int32_t(scalar)};
  else
    return false;
  values[value] = known;
  return true;
}

bool MaskRunner::start(int64_t head) {
  values.clear();
  ofPosition.clear();
  for (unsigned number = 0; number <= keyNumber; ++number)
    values[mask.getArgument(number)] = KeyNumbers();
  values[mask.getArgument(headNumber)].numbers = {int32_t(head)};
  values[getPosition()].isOfPosition = true;
  Value along = mask.getArgument(isAlongQueries ? queryNumber : keyNumber);
  std::vector<int32_t> &all = values[along].numbers;
  all.resize(length);
  std::iota(all.begin(), all.end(), 0);
  for (Operation &op : mask.without_terminator()) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0)
      return false;
    KeyNumbers result;
    for (Value operand : op.getOperands()) {
      if (!isKnown(operand))
        return false;
      result.isOfPosition |= values.find(operand)->second.isOfPosition;
    }
    values[op.getResult(0)] = result;
    if (result.isOfPosition)
      ofPosition.push_back(&op);
    // Those of the position tell here whether they are known.
    if (!evaluate(op))
      return false;
  }
  return isKnown(mask.getTerminator()->getOperand(0));
}

ArrayRef<int32_t> MaskRunner::run(int64_t position) {
  values.find(getPosition())->second.numbers = {int32_t(position)};
  for (Operation *op : ofPosition)
    (void)evaluate(*op);
  return getNumbers(mask.getTerminator()->getOperand(0));
}
