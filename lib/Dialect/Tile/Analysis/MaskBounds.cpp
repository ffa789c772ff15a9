//===- MaskBounds.cpp - which keys a mask can show ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

AffineForm &AffineForm::operator+=(const AffineForm &other) {
  row += other.row;
  column += other.column;
  constant += other.constant;
  for (auto [value, coefficient] : other.terms) {
    auto *same = llvm::find_if(terms, [value = value](const auto &term) {
      return term.first == value;
    });
    if (same == terms.end())
      terms.push_back({value, coefficient});
    else
      same->second += coefficient;
  }
  llvm::erase_if(terms, [](const auto &term) { return term.second == 0; });
  return *this;
}

AffineForm &AffineForm::operator*=(int64_t factor) {
  row *= factor;
  column *= factor;
  constant *= factor;
  for (auto &term : terms)
    term.second *= factor;
  if (factor == 0)
    terms.clear();
  return *this;
}

//===----------------------------------------------------------------------===//
// From values to affine forms
//===----------------------------------------------------------------------===//

static std::optional<int64_t> integerConstant(Value value) {
  APInt scalar;
  if (matchPattern(value, m_ConstantInt(&scalar)))
    return scalar.trySExtValue();
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
      isa<IntegerType, IndexType>(elements.getElementType()))
    return elements.getSplatValue<APInt>().trySExtValue();
  return std::nullopt;
}

namespace {
/// Reads integer values of one loop as affine forms.
class AffineReader {
public:
  explicit AffineReader(scf::ForOp loop) : loop(loop) {}

  std::optional<AffineForm> read(Value value) {
    AffineForm form;
    if (std::optional<int64_t> constant = integerConstant(value)) {
      form.constant = *constant;
      return form;
    }
    Operation *op = value.getDefiningOp();
    if (auto broadcast = dyn_cast_or_null<vector::BroadcastOp>(op))
      return read(broadcast.getSource());
    if (auto coords = dyn_cast_or_null<CoordsOp>(op))
      return readCoords(coords);
    if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
      return read(op->getOperand(0));
    // Any other scalar that is the same for the whole loop.
    if (value.getType().isIntOrIndex()) {
      if (!loop.isDefinedOutsideOfLoop(value))
        return std::nullopt;
      form.terms.push_back({value, 1});
      return form;
    }
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
      std::optional<AffineForm> lhs = read(op->getOperand(0));
      std::optional<AffineForm> rhs = read(op->getOperand(1));
      if (!lhs || !rhs)
        return std::nullopt;
      *rhs *= isa<arith::SubIOp>(op) ? -1 : 1;
      return *lhs += *rhs;
    }
    if (isa_and_nonnull<arith::MulIOp>(op))
      return readProduct(op);
    return std::nullopt;
  }

private:
  std::optional<AffineForm> readProduct(Operation *op) {
    for (unsigned side : {0, 1}) {
      std::optional<int64_t> factor = integerConstant(op->getOperand(side));
      // Far from overflowing the arithmetic on bounds.
      if (!factor || std::abs(*factor) > (int64_t(1) << 24))
        continue;
      std::optional<AffineForm> form = read(op->getOperand(1 - side));
      if (form)
        return *form *= *factor;
    }
    return std::nullopt;
  }

  std::optional<AffineForm> readCoords(CoordsOp coords) {
    auto type = cast<VectorType>(coords.getResult().getType());
    AffineForm form;
    if (type.getRank() != 2)
      return std::nullopt;
    if (coords.getAxis() == 0) {
      if (!loop.isDefinedOutsideOfLoop(coords.getBase()))
        return std::nullopt;
      std::optional<AffineForm> base = read(coords.getBase());
      if (base)
        base->row += 1;
      return base;
    }
    // The keys of block n start at n * N.
    auto cast = coords.getBase().getDefiningOp<arith::IndexCastOp>();
    auto first = cast ? cast.getIn().getDefiningOp<arith::MulIOp>() : nullptr;
    if (!first || first.getLhs() != loop.getInductionVar() ||
        integerConstant(first.getRhs()) != type.getDimSize(1))
      return std::nullopt;
    form.column = 1;
    return form;
  }

  scf::ForOp loop;
};

/// Collects the conjuncts of a mask.
class ConjunctCollector {
public:
  ConjunctCollector(scf::ForOp loop, MaskConditions &conditions)
      : reader(loop), conditions(conditions) {}

  void collect(Value mask) {
    Operation *op = mask.getDefiningOp();
    if (auto broadcast = dyn_cast_or_null<vector::BroadcastOp>(op))
      return collect(broadcast.getSource());
    if (isa_and_nonnull<arith::AndIOp>(op)) {
      collect(op->getOperand(0));
      collect(op->getOperand(1));
      return;
    }
    // The constant true says nothing; -1 is i1's true.
    if (std::optional<int64_t> constant = integerConstant(mask))
      if (*constant != 0)
        return;
    auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
    if (!compare || !addComparison(compare))
      conditions.hasOpaque = true;
  }

private:
  bool addComparison(arith::CmpIOp compare) {
    std::optional<AffineForm> lhs = reader.read(compare.getLhs());
    std::optional<AffineForm> rhs = reader.read(compare.getRhs());
    if (!lhs || !rhs)
      return false;
    AffineForm difference = *rhs;
    difference *= -1;
    difference += *lhs; // lhs - rhs
    AffineForm negated = difference;
    negated *= -1;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::sge:
      return add(difference, 0);
    case arith::CmpIPredicate::sgt:
      return add(difference, -1);
    case arith::CmpIPredicate::sle:
      return add(negated, 0);
    case arith::CmpIPredicate::slt:
      return add(negated, -1);
    case arith::CmpIPredicate::eq:
      return add(difference, 0) && add(negated, 0);
    default:
      return false;
    }
  }

  bool add(AffineForm form, int64_t constant) {
    form.constant += constant;
    conditions.halfPlanes.push_back(form);
    return true;
  }

  AffineReader reader;
  MaskConditions &conditions;
};
} // namespace

MaskConditions attn::tile::analyzeMask(Value mask, scf::ForOp loop) {
  MaskConditions conditions;
  auto type = cast<VectorType>(mask.getType());
  conditions.numRows = type.getDimSize(0);
  conditions.numColumns = type.getDimSize(1);
  ConjunctCollector(loop, conditions).collect(mask);
  return conditions;
}

static bool isMinusInf(Value value) {
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return false;
  auto number = constant.getSplatValue<APFloat>();
  return number.isInfinity() && number.isNegative();
}

FailureOr<MaskedStep> attn::tile::matchMaskedStep(scf::ForOp loop) {
  MaskedStep step;
  for (auto softmax : loop.getBody()->getOps<OnlineSoftmaxOp>()) {
    if (step.softmax)
      return failure();
    step.softmax = softmax;
  }
  if (!step.softmax || !loop.getInductionVar().getType().isIndex() ||
      integerConstant(loop.getStep()) != 1)
    return failure();
  auto select = step.softmax.getScores().getDefiningOp<arith::SelectOp>();
  if (!select || select->getBlock() != loop.getBody() ||
      !isa<VectorType>(select.getCondition().getType()) ||
      !isMinusInf(select.getFalseValue()))
    return failure();
  step.select = select;
  step.conditions = analyzeMask(select.getCondition(), loop);
  return step;
}

//===----------------------------------------------------------------------===//
// From half planes to block numbers
//===----------------------------------------------------------------------===//

namespace {
/// Index arithmetic with folding.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value max(Value lhs, Value rhs) { return fold<arith::MaxSIOp>(lhs, rhs); }
  Value min(Value lhs, Value rhs) { return fold<arith::MinSIOp>(lhs, rhs); }
  Value floorDiv(Value value, int64_t divisor) {
    if (divisor == 1)
      return value;
    return fold<arith::FloorDivSIOp>(value, constant(divisor));
  }
  Value ceilDiv(Value value, int64_t divisor) {
    if (divisor == 1)
      return value;
    return fold<arith::CeilDivSIOp>(value, constant(divisor));
  }
  Value isNonNegative(Value value) {
    return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sge,
                                               value, constant(0));
  }
  Value select(Value condition, Value yes, Value no) {
    return builder.createOrFold<arith::SelectOp>(loc, condition, yes, no);
  }

  /// The uniform part of a form, with its factor, plus a number.
  Value uniform(const AffineForm &form, int64_t factor, int64_t extra) {
    Value sum;
    for (auto [value, coefficient] : form.terms) {
      Value term = value;
      if (!term.getType().isIndex())
        term = builder.createOrFold<arith::IndexCastOp>(
            loc, builder.getIndexType(), term);
      if (coefficient * factor != 1)
        term = fold<arith::MulIOp>(term, constant(coefficient * factor));
      sum = sum ? fold<arith::AddIOp>(sum, term) : term;
    }
    int64_t number = form.constant * factor + extra;
    if (!sum)
      return constant(number);
    return number == 0 ? sum : fold<arith::AddIOp>(sum, constant(number));
  }

private:
  template <typename OpTy> Value fold(Value lhs, Value rhs) {
    return builder.createOrFold<OpTy>(loc, lhs, rhs);
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

/// True if `bound` is ceil(of / divisor) in so many words.
static bool isCeilDiv(Value bound, Value of, int64_t divisor) {
  std::optional<int64_t> number = integerConstant(of);
  std::optional<int64_t> quotient = integerConstant(bound);
  if (number && quotient)
    return llvm::divideCeilSigned(*number, divisor) == *quotient;
  auto op = bound.getDefiningOp<arith::CeilDivSIOp>();
  return op && op.getLhs() == of && integerConstant(op.getRhs()) == divisor;
}

KeyBlockRange attn::tile::emitRange(OpBuilder &builder,
                                    const MaskConditions &conditions,
                                    scf::ForOp loop) {
  IndexBuilder b(builder, loop.getLoc());
  int64_t n = conditions.numColumns;
  Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
  // Bounds of the full blocks; null where nothing bounds them but lo and hi.
  Value fullLo, fullHi;
  // Conditions on the rows alone: something shows, everything shows.
  SmallVector<Value> someRows, allRows;
  for (const AffineForm &form : conditions.halfPlanes) {
    int64_t last = conditions.numRows - 1;
    int64_t most = std::max<int64_t>(form.row, 0) * last;
    int64_t least = std::min<int64_t>(form.row, 0) * last;
    if (form.column == 0) {
      someRows.push_back(b.isNonNegative(b.uniform(form, 1, most)));
      allRows.push_back(b.isNonNegative(b.uniform(form, 1, least)));
      continue;
    }
    if (form.column < 0) {
      // j < floor((U + …) / d) + 1 = floor((U + … + d) / d)
      int64_t d = -form.column;
      Value some = b.floorDiv(b.uniform(form, 1, most + d), d);
      if (!isCeilDiv(loop.getUpperBound(), some, n))
        hi = b.min(hi, b.ceilDiv(some, n));
      Value all = b.floorDiv(b.uniform(form, 1, least + d), d);
      all = b.floorDiv(all, n);
      fullHi = fullHi ? b.min(fullHi, all) : all;
      continue;
    }
    // j >= ceil(-(U + …) / c)
    Value some = b.ceilDiv(b.uniform(form, -1, -most), form.column);
    lo = b.max(lo, b.floorDiv(some, n));
    Value all = b.ceilDiv(b.uniform(form, -1, -least), form.column);
    all = b.ceilDiv(all, n);
    fullLo = fullLo ? b.max(fullLo, all) : all;
  }
  for (Value condition : someRows)
    hi = b.select(condition, hi, lo);
  if (hi != loop.getUpperBound() || lo != loop.getLowerBound())
    hi = b.max(hi, lo);

  KeyBlockRange range;
  range.lo = lo;
  range.hi = hi;
  range.hasLower = fullLo != nullptr;
  range.hasUpper = fullHi != nullptr || !allRows.empty();
  range.fullLo = fullLo ? b.min(b.max(fullLo, lo), hi) : lo;
  range.fullHi = fullHi ? b.min(fullHi, hi) : hi;
  for (Value condition : allRows)
    range.fullHi = b.select(condition, range.fullHi, range.fullLo);
  if (range.hasUpper)
    range.fullHi = b.max(range.fullHi, range.fullLo);
  return range;
}
