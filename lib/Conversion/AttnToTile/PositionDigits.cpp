//===- PositionDigits.cpp - indices by distances in an image --------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionDigits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

// Arguments of a pullback: dy, x, b, h, i, j.
static constexpr unsigned queryArgument = 4, keyArgument = 5;
static constexpr int64_t largestScale = int64_t(1) << 22; // of a position

static bool isZero(ArrayRef<int64_t> numbers) {
  return llvm::all_of(numbers, [](int64_t number) { return number == 0; });
}

bool DigitForm::isUniform() const {
  return isSum && isZero(query) && isZero(key);
}

std::optional<unsigned> DigitForm::getOwnDigit() const {
  if (!isSum || !isOfDifferences)
    return std::nullopt;
  std::optional<unsigned> own;
  for (auto [digit, factor] : llvm::enumerate(query)) {
    if (factor == 0)
      continue;
    if (own || (factor != 1 && factor != -1))
      return std::nullopt;
    own = digit;
  }
  return own;
}

PositionDigits::PositionDigits(Block &pullback, ValueRange indices)
    : pullback(pullback) {
  do {
    hasNewScale = false;
    known.clear();
    for (Value index : indices)
      read(index);
  } while (hasNewScale && !isStuck);
  if (isStuck) {
    scales = {1};
    hasNewScale = false;
    known.clear();
  }
}

DigitForm PositionDigits::read(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  DigitForm form = compute(value);
  if (form.isSum)
    form.isOfDifferences =
        llvm::all_of(llvm::zip_equal(form.query, form.key), [](auto factors) {
          return std::get<0>(factors) == -std::get<1>(factors);
        });
  return known[value] = form;
}

DigitForm PositionDigits::makeUniform(std::optional<int64_t> constant) const {
  DigitForm form;
  form.query.resize(scales.size());
  form.key.resize(scales.size());
  form.isSum = true;
  form.constant = constant;
  return form;
}

DigitForm PositionDigits::makeForm(const Slice &slice) const {
  DigitForm form = makeUniform(0);
  for (unsigned digit = slice.begin; digit < slice.end; ++digit)
    (slice.isKey ? form.key : form.query)[digit] =
        scales[digit] / scales[slice.begin];
  return form;
}

std::optional<PositionDigits::Slice>
PositionDigits::getSlice(const DigitForm &form) const {
  if (!form.isSum || form.constant != 0 ||
      isZero(form.query) == isZero(form.key))
    return std::nullopt;
  bool isKey = isZero(form.query);
  ArrayRef<int64_t> factors = isKey ? form.key : form.query;
  Slice slice = {isKey, 0, 0};
  while (factors[slice.begin] == 0)
    ++slice.begin;
  slice.end = slice.begin;
  while (slice.end < factors.size() && factors[slice.end] != 0)
    ++slice.end;
  DigitForm whole = makeForm(slice);
  if (whole.query != form.query || whole.key != form.key)
    return std::nullopt;
  return slice;
}

/// False where the scales would not divide each other.
bool PositionDigits::addScale(int64_t scale) {
  auto *next = llvm::upper_bound(scales, scale);
  if (scale > largestScale || scale % *std::prev(next) != 0 ||
      (next != scales.end() && *next % scale != 0))
    return false;
  scales.insert(next, scale);
  return true;
}

/// A quotient or a remainder of digits that lie beside one another, which are
/// no negative number, by a positive constant: their upper or lower ones.
std::optional<DigitForm> PositionDigits::divide(Operation *op) {
  bool isQuotient = isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp,
                        arith::ShRSIOp, arith::ShRUIOp>(op);
  bool isRest = isa<arith::RemUIOp, arith::RemSIOp, arith::AndIOp>(op);
  if (isStuck || (!isQuotient && !isRest))
    return std::nullopt;
  APInt number;
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&number)))
    return std::nullopt;
  int64_t divisor = number.getSExtValue();
  if (isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    divisor = divisor >= 0 && divisor < 22 ? int64_t(1) << divisor : 0;
  else if (isa<arith::AndIOp>(op))
    divisor = llvm::isPowerOf2_64(divisor + 1) ? divisor + 1 : 0;
  std::optional<Slice> slice = getSlice(read(op->getOperand(0)));
  if (divisor <= 0 || !slice)
    return std::nullopt;
  int64_t scale = scales[slice->begin] * divisor;
  if (slice->end != scales.size() && scale >= scales[slice->end])
    return isQuotient ? makeUniform(0) : makeForm(*slice);
  auto *middle = llvm::find(scales, scale);
  if (middle == scales.end()) {
    // All is read again.
    isStuck = !addScale(scale);
    hasNewScale = true;
    return DigitForm();
  }
  Slice upper = *slice, lower = *slice;
  upper.begin = lower.end = middle - scales.begin();
  if (isRest && lower.begin == lower.end)
    return makeUniform(0);
  return makeForm(isQuotient ? upper : lower);
}

/// lhs + factor * rhs, unless numbers are too large.
static std::optional<DigitForm> addTimes(DigitForm lhs, const DigitForm &rhs,
                                         int64_t factor) {
  auto addAll = [&](MutableArrayRef<int64_t> sums, ArrayRef<int64_t> others) {
    for (auto [sum, other] : llvm::zip_equal(sums, others)) {
      std::optional<int64_t> result = llvm::checkedMulAdd(factor, other, sum);
      if (!result)
        return false;
      sum = *result;
    }
    return true;
  };
  if (!addAll(lhs.query, rhs.query) || !addAll(lhs.key, rhs.key))
    return std::nullopt;
  if (lhs.constant && rhs.constant)
    lhs.constant = llvm::checkedMulAdd(factor, *rhs.constant, *lhs.constant);
  else
    lhs.constant = std::nullopt;
  return lhs;
}

/// What is a sum again, of 32 bits or more: a table has no more elements.
std::optional<DigitForm>
PositionDigits::add(Operation *op, ArrayRef<DigitForm> operands) const {
  if (!llvm::all_of(operands, [](const DigitForm &form) { return form.isSum; }))
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return addTimes(operands[0], operands[1], 1);
  if (isa<arith::SubIOp>(op))
    return addTimes(operands[0], operands[1], -1);
  if (isa<arith::MulIOp>(op))
    for (unsigned side : {0, 1})
      if (operands[side].isUniform() && operands[side].constant)
        return addTimes(makeUniform(0), operands[1 - side],
                        *operands[side].constant);
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(op)) {
    Type type = op->getResult(0).getType();
    if (type.isIndex() || type.getIntOrFloatBitWidth() >= 32)
      return operands[0];
  }
  return std::nullopt;
}

DigitForm PositionDigits::compute(Value value) {
  if (hasNewScale)
    return {};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber(), end = scales.size();
    if (number == queryArgument || number == keyArgument)
      return makeForm({number == keyArgument, 0, end});
    return number < 2 ? DigitForm() : makeUniform(std::nullopt);
  }
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return makeUniform(constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != &pullback)
    return makeUniform(std::nullopt);
  if (std::optional<DigitForm> part = divide(op))
    return *part;
  SmallVector<DigitForm> operands;
  for (Value operand : op->getOperands())
    operands.push_back(read(operand));
  if (std::optional<DigitForm> sum = add(op, operands))
    return *sum;
  DigitForm form;
  auto isUniform = [](const DigitForm &each) { return each.isUniform(); };
  if (op->getNumRegions() == 0 && llvm::all_of(operands, isUniform))
    return makeUniform(std::nullopt);
  form.isOfDifferences = op->getNumRegions() == 0 &&
                         llvm::all_of(operands, [](const DigitForm &each) {
                           return each.isOfDifferences || each.isUniform();
                         });
  return form;
}
