//===- Positions.cpp - what integers of an expression can be -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Integer operations whose result fits their type compute with numbers; the
// type of such an operation is index, whatever it was, and casts between
// integer types that keep the number are gone. Another operation keeps its
// type, in which it wraps around.
//
//===----------------------------------------------------------------------===//

#include "Positions.h"

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

static std::optional<IntegerRange> rangeOf(Type type) {
  if (type.isInteger(1))
    return IntegerRange{0, 1};
  if (auto integer = dyn_cast<IntegerType>(type))
    if (integer.getWidth() < 64)
      return IntegerRange{-(int64_t(1) << (integer.getWidth() - 1)),
                          (int64_t(1) << (integer.getWidth() - 1)) - 1};
  return std::nullopt;
}

bool IntegerRange::fits(Type type) const {
  std::optional<IntegerRange> range = rangeOf(type);
  return !range || (range->low <= low && high <= range->high);
}

static std::optional<IntegerRange>
hull(std::initializer_list<__int128> values) {
  __int128 low = *values.begin(), high = low;
  for (__int128 value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low < INT64_MIN || high > INT64_MAX)
    return std::nullopt;
  return IntegerRange{int64_t(low), int64_t(high)};
}

static std::optional<IntegerRange> combine(StringRef name, IntegerRange a,
                                           IntegerRange b) {
  using Wide = __int128;
  if (name == "arith.addi")
    return hull({Wide(a.low) + b.low, Wide(a.high) + b.high});
  if (name == "arith.subi")
    return hull({Wide(a.low) - b.high, Wide(a.high) - b.low});
  if (name == "arith.muli")
    return hull({Wide(a.low) * b.low, Wide(a.low) * b.high,
                 Wide(a.high) * b.low, Wide(a.high) * b.high});
  if (name == "arith.minsi")
    return IntegerRange{std::min(a.low, b.low), std::min(a.high, b.high)};
  if (name == "arith.maxsi")
    return IntegerRange{std::max(a.low, b.low), std::max(a.high, b.high)};
  bool byPositive = b.low > 0;
  if (byPositive && (name == "arith.divsi" || name == "arith.floordivsi" ||
                     name == "arith.ceildivsi"))
    return IntegerRange{a.low < 0 ? a.low : 0, a.high > 0 ? a.high : 0};
  if (byPositive && name == "arith.remsi")
    return IntegerRange{a.low < 0 ? 1 - b.high : 0,
                        a.high > 0 ? std::min(a.high, b.high - 1) : 0};
  return std::nullopt;
}

std::optional<IntegerRange> attn::raise::unwrappedInterval(const Expr &expr) {
  StringRef name = expr.name->getStringRef();
  if (name == "arith.select") {
    auto a = interval(expr.operands[1]), b = interval(expr.operands[2]);
    if (a && b)
      return IntegerRange{std::min(a->low, b->low), std::max(a->high, b->high)};
    return std::nullopt;
  }
  if (expr.operands.size() == 2) {
    auto a = interval(expr.operands[0]), b = interval(expr.operands[1]);
    return a && b ? combine(name, *a, *b) : std::nullopt;
  }
  if (name == "math.absi")
    if (auto a = interval(expr.operands[0]); a && a->low > INT64_MIN)
      return IntegerRange{a->low > 0 ? a->low : 0, std::max(-a->low, a->high)};
  return std::nullopt;
}

std::optional<IntegerRange> attn::raise::interval(ExprRef expr) {
  switch (expr->kind) {
  case Kind::Constant:
    return IntegerRange{expr->integer, expr->integer};
  case Kind::Variable:
    if (isKnown(expr->extents[0]))
      return IntegerRange{0, std::max<int64_t>(expr->extents[0] - 1, 0)};
    return IntegerRange{0, kMaxSize - 1};
  case Kind::Size:
    return IntegerRange{0, kMaxSize};
  case Kind::Join:
  case Kind::Split:
    return IntegerRange{0, kMaxSize - 1};
  case Kind::Operation:
    return expr->range ? expr->range : rangeOf(expr->type);
  default:
    return rangeOf(expr->type);
  }
}

//===----------------------------------------------------------------------===//
// Simplification of integer operations
//===----------------------------------------------------------------------===//

static bool isNonNegative(ExprRef expr) {
  auto range = interval(expr);
  return range && range->low >= 0 && !expr->type.isInteger(1);
}

/// The signed predicate that an unsigned one is for numbers that are not
/// negative.
static int64_t asSigned(int64_t predicate) {
  using P = arith::CmpIPredicate;
  switch (static_cast<P>(predicate)) {
  case P::ult:
    return static_cast<int64_t>(P::slt);
  case P::ule:
    return static_cast<int64_t>(P::sle);
  case P::ugt:
    return static_cast<int64_t>(P::sgt);
  case P::uge:
    return static_cast<int64_t>(P::sge);
  default:
    return predicate;
  }
}

static std::optional<int64_t> fold(StringRef name, int64_t predicate, int64_t a,
                                   int64_t b) {
  int64_t result;
  if (name == "arith.addi")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  if (name == "arith.subi")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  if (name == "arith.muli")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  if (name == "arith.cmpi")
    return arith::applyCmpPredicate(
        static_cast<arith::CmpIPredicate>(predicate),
        APInt(64, static_cast<uint64_t>(a)),
        APInt(64, static_cast<uint64_t>(b)));
  if (b > 0 && a >= 0 && (name == "arith.divsi" || name == "arith.floordivsi"))
    return a / b;
  if (b > 0 && a >= 0 && name == "arith.remsi")
    return a % b;
  return std::nullopt;
}

/// Operations on i1.
static ExprRef simplifyLogic(Expressions &e, const Expr &node) {
  ExprRef a = node.operands[0], b = node.operands[1];
  if (node.is<arith::AndIOp>()) {
    if (a == b || b->isInteger(1))
      return a;
    if (b->isInteger(0))
      return b;
  }
  if (node.is<arith::OrIOp>()) {
    if (a == b || b->isInteger(0))
      return a;
    if (b->isInteger(1))
      return b;
  }
  // A comparison with a constant is the bit or its negation.
  if (node.is<arith::CmpIOp>() && b->isConstant()) {
    auto predicate = static_cast<arith::CmpIPredicate>(node.predicate);
    if (predicate == arith::CmpIPredicate::eq)
      return b->isInteger(1) ? a : e.negated(a);
    if (predicate == arith::CmpIPredicate::ne)
      return b->isInteger(1) ? e.negated(a) : a;
  }
  if (!node.is<arith::XOrIOp>())
    return nullptr;
  if (b->isInteger(0))
    return a;
  if (a->isConstant() && b->isConstant())
    return e.integer(a->integer ^ b->integer, e.i1);
  if (!b->isInteger(1))
    return nullptr;
  // A negation enters a comparison of integers, and ends another negation.
  if (a->is<arith::XOrIOp>() && a->operands[1]->isInteger(1))
    return a->operands[0];
  if (a->is<arith::CmpIOp>()) {
    auto predicate =
        arith::invertPredicate(static_cast<arith::CmpIPredicate>(a->predicate));
    return e.make<arith::CmpIOp>(e.i1, a->operands,
                                 static_cast<int64_t>(predicate));
  }
  return nullptr;
}

ExprRef Expressions::simplifyInteger(const Expr &node) {
  StringRef name = node.name->getStringRef();
  ExprRef a = node.operands[0];
  ExprRef b = node.operands.size() > 1 ? node.operands[1] : nullptr;
  if (node.type.isInteger(1) && b && a->type.isInteger(1))
    if (ExprRef simpler = simplifyLogic(*this, node))
      return simpler;

  // Casts that keep the number. A bit becomes a number by its own cast.
  bool isUnsignedCast = name == "arith.extui" || name == "arith.index_castui";
  if (isUnsignedCast || name == "arith.extsi" || name == "arith.index_cast" ||
      name == "arith.trunci") {
    if (a->type.isInteger(1) && a->isConstant())
      return integer(isUnsignedCast ? a->integer : -a->integer, node.type);
    auto range = interval(a);
    bool keeps = range && range->fits(node.type) && !a->type.isInteger(1) &&
                 !node.type.isInteger(1) &&
                 (!isUnsignedCast || range->low >= 0);
    // Without bounds, an extension of 64 bits or a cast to index is none.
    bool isWide = (node.type.isIndex() || node.type.isInteger(64)) &&
                  !isUnsignedCast && !a->type.isInteger(1);
    return keeps || isWide ? a : nullptr;
  }

  if (b && a->isConstant() && b->isConstant() && !a->type.isInteger(1))
    if (auto value = fold(name, node.predicate, a->integer, b->integer))
      if (IntegerRange{*value, *value}.fits(node.type))
        return integer(*value, node.type);
  // A position is below the size of its dimension, a size not below itself.
  if (name == "arith.cmpi" && !a->type.isInteger(1) &&
      node.predicate == static_cast<int64_t>(arith::CmpIPredicate::slt)) {
    if (a == b)
      return integer(0, i1);
    bool isInside =
        a->isVariable() &&
        (b->kind == Kind::Size
             ? a->extents[0] == b->extents[0]
             : b->isConstant() && isKnown(a->extents[0]) &&
                   a->extents[0] <= b->integer && a->extents[0] > 0);
    if (isInside)
      return integer(1, i1);
  }
  // Bits as numbers: a product of them is one, a comparison asks for the bit.
  auto isBit = [](ExprRef expr) {
    return expr->is<arith::ExtUIOp>() && expr->operands[0]->type.isInteger(1);
  };
  if (name == "arith.muli" && isBit(a) && isBit(b))
    return make<arith::ExtUIOp>(node.type,
                                {both(a->operands[0], b->operands[0])});
  if (name == "arith.cmpi" && isBit(a) && b->isConstant()) {
    auto compare = [&](int64_t bit) {
      return make<arith::CmpIOp>(i1, {index(bit), b}, node.predicate);
    };
    return make<arith::SelectOp>(i1, {a->operands[0], compare(1), compare(0)});
  }
  if ((name == "arith.addi" || name == "arith.subi") && b->isInteger(0))
    return a;
  if ((name == "arith.muli" || name == "arith.divsi" ||
       name == "arith.floordivsi" || name == "arith.ceildivsi" ||
       name == "arith.divui") &&
      b->isInteger(1))
    return a;

  // Unsigned operations on numbers that are not negative.
  if (b && isNonNegative(a) && isNonNegative(b)) {
    if (name == "arith.divui")
      return make<arith::DivSIOp>(node.type, {a, b});
    if (name == "arith.remui")
      return make<arith::RemSIOp>(node.type, {a, b});
    if (name == "arith.minui")
      return make<arith::MinSIOp>(node.type, {a, b});
    if (name == "arith.maxui")
      return make<arith::MaxSIOp>(node.type, {a, b});
    if (name == "arith.floordivsi")
      return make<arith::DivSIOp>(node.type, {a, b});
    if (name == "arith.cmpi" && asSigned(node.predicate) != node.predicate)
      return make<arith::CmpIOp>(i1, {a, b}, asSigned(node.predicate));
  }

  // Parts of a position: i / c and i % c where c divides the size.
  if (b && a->isVariable() && b->isConstant() && b->integer > 1 &&
      isKnown(a->extents[0]) && a->extents[0] % b->integer == 0) {
    Extent parts[] = {a->extents[0] / b->integer, b->integer};
    if (name == "arith.divsi")
      return split(a, parts, 0);
    if (name == "arith.remsi")
      return split(a, parts, 1);
  }

  if (!node.type.isIndex() && !node.type.isInteger(1))
    if (auto range = unwrappedInterval(node); range && range->fits(node.type)) {
      Expr number = node;
      number.type = indexType;
      return unique(std::move(number));
    }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Joins and splits
//===----------------------------------------------------------------------===//

ExprRef Expressions::join(ArrayRef<ExprRef> parts, ArrayRef<Extent> extents) {
  SmallVector<ExprRef> kept;
  SmallVector<Extent> sizes;
  for (auto [part, extent] : llvm::zip_equal(parts, extents)) {
    if (extent == 1)
      continue;
    if (part->kind == Kind::Join) {
      llvm::append_range(kept, part->operands);
      llvm::append_range(sizes, part->extents);
      continue;
    }
    kept.push_back(part);
    sizes.push_back(extent);
  }
  if (kept.empty())
    return index(0);
  if (kept.size() == 1)
    return kept.front();
  if (llvm::all_of(kept, [](ExprRef part) { return part->isInteger(0); }))
    return index(0);
  // All parts of one index, in order.
  ExprRef first = kept.front();
  if (first->kind == Kind::Split && llvm::equal(first->extents, sizes)) {
    bool isWhole = true;
    for (auto [number, part] : llvm::enumerate(kept))
      isWhole &= part->kind == Kind::Split && part->number == number &&
                 part->operands == first->operands &&
                 llvm::equal(part->extents, sizes);
    if (isWhole)
      return first->operands[0];
  }
  Expr node{Kind::Join, indexType};
  node.operands.assign(kept.begin(), kept.end());
  node.extents.assign(sizes.begin(), sizes.end());
  return unique(std::move(node));
}

/// Groups the parts of `index` so that group k has size extents[k], from the
/// fastest on; the parts of group `number`.
static ExprRef regroup(Expressions &e, ExprRef index, ArrayRef<Extent> extents,
                       unsigned number) {
  unsigned end = index->operands.size();
  for (unsigned group = extents.size(); group-- > 0;) {
    unsigned begin = end;
    Extent size = 1;
    while (size != extents[group]) {
      if (begin == 0 || (size != 1 && !isKnown(size)))
        return nullptr;
      --begin;
      if (size == 1)
        size = index->extents[begin];
      else if (isKnown(index->extents[begin]))
        size *= index->extents[begin];
      else
        return nullptr;
      if (isKnown(size) && isKnown(extents[group]) && size > extents[group])
        return nullptr;
    }
    if (group == number)
      return e.join(ArrayRef(index->operands).slice(begin, end - begin),
                    ArrayRef(index->extents).slice(begin, end - begin));
    end = begin;
  }
  return nullptr;
}

ExprRef Expressions::split(ExprRef index, ArrayRef<Extent> extents,
                           unsigned number) {
  if (extents[number] == 1 || index->isInteger(0))
    return this->index(0);
  // Parts of one position are no parts.
  SmallVector<Extent> sizes;
  unsigned kept = 0;
  for (auto [position, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    if (position == number)
      kept = sizes.size();
    sizes.push_back(extent);
  }
  if (sizes.size() == 1)
    return index;
  if (index->kind == Kind::Join)
    if (ExprRef part = regroup(*this, index, sizes, kept))
      return part;
  Expr node{Kind::Split, indexType};
  node.number = kept;
  node.extents.assign(sizes.begin(), sizes.end());
  node.operands = {index};
  return unique(std::move(node));
}

std::optional<SmallVector<ExprRef>> attn::raise::atoms(ExprRef index) {
  SmallVector<ExprRef> result;
  if (index->isInteger(0))
    return result;
  if (index->kind != Kind::Join) {
    if (!index->isVariable())
      return std::nullopt;
    return SmallVector<ExprRef>{index};
  }
  for (ExprRef part : index->operands) {
    if (part->isInteger(0))
      continue;
    if (!part->isVariable())
      return std::nullopt;
    result.push_back(part);
  }
  return result;
}
