//===- RaiseTermsTest.cpp - the terms of attn-raise -----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expressions simplify while they are made. Here random ones are made of
// integers of all widths, and computed twice, as the graph says and as what is
// left of them says: the values must be the same at every position, and inside
// of the bounds that the expression has.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Conversion/LinalgToAttn/Expression.h"
#include "../../lib/Conversion/LinalgToAttn/Positions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace attn;
using namespace attn::raise;
using Kind = Expr::Kind;
using Predicate = arith::CmpIPredicate;

namespace {

/// `value` in the bits that integers of `type` have.
int64_t wrap(int64_t value, Type type) {
  if (type.isInteger(1))
    return value & 1;
  return type.isInteger(32) ? static_cast<int32_t>(value) : value;
}

int64_t arithmetic(StringRef name, int64_t a, int64_t b) {
  auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (name == "arith.addi")
    return static_cast<int64_t>(x + y);
  if (name == "arith.subi")
    return static_cast<int64_t>(x - y);
  if (name == "arith.muli")
    return static_cast<int64_t>(x * y);
  if (name == "arith.minsi")
    return std::min(a, b);
  if (name == "arith.maxsi")
    return std::max(a, b);
  if (name == "arith.minui")
    return static_cast<int64_t>(std::min(x, y));
  if (name == "arith.maxui")
    return static_cast<int64_t>(std::max(x, y));
  if (name == "arith.divsi")
    return a / b;
  if (name == "arith.remsi")
    return a % b;
  if (name == "arith.floordivsi")
    return llvm::divideFloorSigned(a, b);
  if (name == "arith.ceildivsi")
    return llvm::divideCeilSigned(a, b);
  if (name == "arith.andi")
    return a & b;
  if (name == "arith.ori")
    return a | b;
  if (name == "arith.xori")
    return a ^ b;
  ADD_FAILURE() << "no arithmetic for " << name.str();
  return 0;
}

bool compare(int64_t predicate, int64_t a, int64_t b) {
  return arith::applyCmpPredicate(static_cast<Predicate>(predicate),
                                  APInt(64, static_cast<uint64_t>(a)),
                                  APInt(64, static_cast<uint64_t>(b)));
}

/// The value of an index expression or integer, where variables and sizes are
/// what `known` says.
int64_t evaluate(ExprRef expr, const llvm::DenseMap<ExprRef, int64_t> &known) {
  if (auto found = known.find(expr); found != known.end())
    return found->second;
  auto operand = [&](unsigned number) {
    return evaluate(expr->operands[number], known);
  };
  switch (expr->kind) {
  case Kind::Constant:
    return expr->integer;
  case Kind::Join: {
    int64_t index = 0;
    for (auto [part, extent] : llvm::zip_equal(expr->operands, expr->extents))
      index = index * extent + evaluate(part, known);
    return index;
  }
  case Kind::Split: {
    int64_t index = operand(0);
    for (unsigned part = expr->extents.size() - 1; part > expr->number; --part)
      index /= expr->extents[part];
    return expr->number == 0 ? index : index % expr->extents[expr->number];
  }
  case Kind::Operation:
    break;
  default:
    ADD_FAILURE() << "no value for " << describe(expr);
    return 0;
  }
  StringRef name = expr->name->getStringRef();
  if (name == "arith.cmpi")
    return compare(expr->predicate, operand(0), operand(1));
  if (name == "arith.select")
    return operand(0) ? operand(1) : operand(2);
  if (name == "math.absi")
    return wrap(std::abs(operand(0)), expr->type);
  if (name == "arith.extsi" && expr->operands[0]->type.isInteger(1))
    return -operand(0);
  if (expr->operands.size() == 1)
    return wrap(operand(0), expr->type);
  return wrap(arithmetic(name, operand(0), operand(1)), expr->type);
}

class RaiseTermsTest : public ::testing::Test {
protected:
  RaiseTermsTest() : e(loaded(context)) {}

  static MLIRContext *loaded(MLIRContext &context) {
    context.loadDialect<arith::ArithDialect, math::MathDialect>();
    return &context;
  }
  /// A float that nothing is known about.
  ExprRef unknown() {
    return e.named(block.addArgument(e.f32, UnknownLoc::get(&context)));
  }

  MLIRContext context;
  Block block;
  Expressions e;
};

/// An expression, and what the graph says it is, at each of some positions.
struct Term {
  ExprRef expr;
  Type type; // in the graph
  std::vector<int64_t> values;
};

/// Makes random terms of terms.
class Generator {
public:
  Generator(Expressions &e, unsigned seed) : e(e), random(seed) {
    positions.resize(numPositions);
    for (Extent extent : {5, 12, 64, 4096}) {
      ExprRef variable = e.variable(extent);
      add(variable, e.indexType, [&](size_t number) {
        int64_t value = number == 0   ? 0
                        : number == 1 ? extent - 1
                                      : draw(0, extent - 1);
        return positions[number][variable] = value;
      });
    }
    for (Type type : {e.i32, e.i64, e.indexType})
      for (int64_t value : {0, 1, 2, 4, -1, -7, 100, 65536, 2147483647})
        add(e.integer(value, type), type, [&](size_t) { return value; });
  }

  /// One more term; false where the one that was drawn is not defined.
  bool step() {
    switch (draw(0, 9)) {
    case 0:
      return cast();
    case 1:
    case 2:
      return comparison();
    case 3:
      return logic();
    case 4:
      return selection();
    default:
      return binary();
    }
  }

  void check() const {
    const Term &term = terms.back();
    std::optional<IntegerRange> bounds = interval(term.expr);
    for (size_t number = 0; number < numPositions; ++number) {
      int64_t value = evaluate(term.expr, positions[number]);
      ASSERT_EQ(value, term.values[number]) << describe(term.expr);
      if (bounds && !term.type.isInteger(1)) {
        ASSERT_LE(bounds->low, value) << describe(term.expr);
        ASSERT_GE(bounds->high, value) << describe(term.expr);
      }
    }
  }

private:
  static constexpr size_t numPositions = 12;

  int64_t draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  void add(ExprRef expr, Type type, function_ref<int64_t(size_t)> value) {
    Term term{expr, type, {}};
    for (size_t number = 0; number < numPositions; ++number)
      term.values.push_back(wrap(value(number), type));
    terms.push_back(std::move(term));
  }
  /// A term of a type, a new one more often than an old one; none if unlucky.
  const Term *pick(Type type) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const Term &term =
          terms[draw(draw(0, 1) ? terms.size() / 2 : 0, terms.size() - 1)];
      if (term.type == type)
        return &term;
    }
    return nullptr;
  }
  Type drawType() {
    Type types[] = {e.i32, e.i64, e.indexType};
    return types[draw(0, 2)];
  }
  OperationName nameOf(StringRef name) {
    return OperationName(name, e.getContext());
  }

  bool binary() {
    static constexpr StringLiteral names[] = {
        "arith.addi",  "arith.subi",  "arith.muli",       "arith.minsi",
        "arith.maxsi", "arith.minui", "arith.maxui",      "arith.divsi",
        "arith.remsi", "arith.addi",  "arith.floordivsi", "arith.ceildivsi"};
    StringRef name = names[draw(0, std::size(names) - 1)];
    Type type = drawType();
    const Term *a = pick(type), *b = pick(type);
    if (!a || !b)
      return false;
    bool divides = name.contains("div") || name.contains("rem");
    if (divides && !llvm::all_of(b->values, [](int64_t x) { return x > 0; }))
      return false;
    std::vector<int64_t> x = a->values, y = b->values;
    add(e.operation(nameOf(name), type, {a->expr, b->expr}), type,
        [&](size_t number) { return arithmetic(name, x[number], y[number]); });
    return true;
  }
  bool comparison() {
    Type type = drawType();
    const Term *a = pick(type), *b = pick(type);
    if (!a || !b)
      return false;
    int64_t predicate = draw(0, 9);
    std::vector<int64_t> x = a->values, y = b->values;
    add(e.make<arith::CmpIOp>(e.i1, {a->expr, b->expr}, predicate), e.i1,
        [&](size_t number) {
          return compare(predicate, x[number], y[number]);
        });
    return true;
  }
  bool logic() {
    static constexpr StringLiteral names[] = {"arith.andi", "arith.ori",
                                              "arith.xori"};
    StringRef name = names[draw(0, 2)];
    const Term *a = pick(e.i1), *b = pick(e.i1);
    if (!a || !b)
      return false;
    std::vector<int64_t> x = a->values, y = b->values;
    bool negates = draw(0, 3) == 0;
    if (negates) {
      add(e.negated(a->expr), e.i1, [&](size_t number) { return !x[number]; });
      return true;
    }
    add(e.operation(nameOf(name), e.i1, {a->expr, b->expr}), e.i1,
        [&](size_t number) { return arithmetic(name, x[number], y[number]); });
    return true;
  }
  bool selection() {
    Type type = drawType();
    const Term *c = pick(e.i1), *a = pick(type), *b = pick(type);
    if (!c || !a || !b)
      return false;
    std::vector<int64_t> w = c->values, x = a->values, y = b->values;
    add(e.make<arith::SelectOp>(type, {c->expr, a->expr, b->expr}), type,
        [&](size_t number) { return w[number] ? x[number] : y[number]; });
    return true;
  }
  bool cast() {
    struct Cast {
      StringLiteral name;
      Type from, to;
    };
    const Cast casts[] = {{"arith.extsi", e.i32, e.i64},
                          {"arith.trunci", e.i64, e.i32},
                          {"arith.index_cast", e.i32, e.indexType},
                          {"arith.index_cast", e.indexType, e.i32},
                          {"arith.index_cast", e.i64, e.indexType},
                          {"arith.extui", e.i1, e.i32},
                          {"arith.extsi", e.i1, e.i64}};
    const Cast &cast = casts[draw(0, std::size(casts) - 1)];
    const Term *a = pick(cast.from);
    if (!a)
      return false;
    std::vector<int64_t> x = a->values;
    bool isNegated = cast.name == "arith.extsi" && cast.from.isInteger(1);
    add(e.operation(nameOf(cast.name), cast.to, {a->expr}), cast.to,
        [&](size_t number) { return isNegated ? -x[number] : x[number]; });
    return true;
  }

  Expressions &e;
  std::mt19937 random;
  std::vector<llvm::DenseMap<ExprRef, int64_t>> positions;
  std::vector<Term> terms;
};

} // namespace

TEST_F(RaiseTermsTest, IntegersKeepTheirValues) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator generator(e, seed);
    for (int number = 0; number < 150; ++number)
      if (generator.step())
        ASSERT_NO_FATAL_FAILURE(generator.check());
  }
}

TEST_F(RaiseTermsTest, TwoSpellingsAreOneExpression) {
  ExprRef i = e.variable(64), j = e.variable(64);
  auto add = [&](ExprRef a, ExprRef b) {
    return e.make<arith::AddIOp>(e.i32, {a, b});
  };
  EXPECT_EQ(add(i, j), add(j, i));
  EXPECT_EQ(add(i, e.index(0)), i);
  EXPECT_NE(add(i, j), add(i, i));
  // A cast that keeps the number is none.
  EXPECT_EQ(e.make<arith::IndexCastOp>(e.i32, {i}), i);
  EXPECT_EQ(e.make<arith::ExtSIOp>(e.i64, {add(i, j)}), add(i, j));
  // not (i < j) is i >= j.
  auto less = static_cast<int64_t>(Predicate::slt);
  auto notLess = static_cast<int64_t>(Predicate::sge);
  EXPECT_EQ(e.negated(e.make<arith::CmpIOp>(e.i1, {i, j}, less)),
            e.make<arith::CmpIOp>(e.i1, {i, j}, notLess));
  // A position is below its size.
  EXPECT_TRUE(
      e.make<arith::CmpIOp>(e.i1, {i, e.index(64)}, less)->isInteger(1));
  EXPECT_FALSE(
      e.make<arith::CmpIOp>(e.i1, {i, e.index(63)}, less)->isConstant());
  ExprRef k = e.variable(-1);
  EXPECT_TRUE(e.make<arith::CmpIOp>(e.i1, {k, e.size(-1)}, less)->isInteger(1));
  EXPECT_FALSE(
      e.make<arith::CmpIOp>(e.i1, {k, e.size(-2)}, less)->isConstant());
}

TEST_F(RaiseTermsTest, JoinsAndSplitsUndoEachOther) {
  Extent extents[] = {4, 8, 16};
  ExprRef parts[] = {e.variable(4), e.variable(8), e.variable(16)};
  ExprRef whole = e.join(parts, extents);
  for (unsigned number = 0; number < 3; ++number)
    EXPECT_EQ(e.split(whole, extents, number), parts[number]);
  Extent coarse[] = {32, 16};
  EXPECT_EQ(e.split(whole, coarse, 0), e.join(ArrayRef(parts).take_front(2),
                                              ArrayRef(extents).take_front(2)));
  EXPECT_EQ(e.split(whole, coarse, 1), parts[2]);
  // Parts that are not those of the join stay a split.
  Extent other[] = {2, 256};
  EXPECT_EQ(e.split(whole, other, 0)->kind, Kind::Split);
  ExprRef index = e.variable(512);
  ExprRef high = e.split(index, other, 0), low = e.split(index, other, 1);
  EXPECT_EQ(e.join({high, low}, other), index);
  EXPECT_NE(e.join({low, high}, {256, 2}), index);
  // A dimension of one element is no part.
  EXPECT_EQ(e.join({parts[0], e.index(0)}, {4, 1}), parts[0]);
  // i / 16 and i % 16 of a size that 16 divides.
  Extent halves[] = {32, 16};
  EXPECT_EQ(e.make<arith::DivSIOp>(e.indexType, {index, e.index(16)}),
            e.split(index, halves, 0));
  EXPECT_EQ(e.make<arith::RemSIOp>(e.indexType, {index, e.index(16)}),
            e.split(index, halves, 1));
  EXPECT_EQ(e.make<arith::RemSIOp>(e.indexType, {index, e.index(7)})->kind,
            Kind::Operation);
}

TEST_F(RaiseTermsTest, AtomsOfAnIndex) {
  ExprRef i = e.variable(4), j = e.variable(8);
  auto whole = atoms(e.join({i, j}, {4, 8}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (SmallVector<ExprRef>{i, j}));
  EXPECT_EQ(atoms(e.index(0))->size(), 0u);
  EXPECT_EQ(*atoms(j), (SmallVector<ExprRef>{j}));
  EXPECT_FALSE(atoms(e.index(3)));
  EXPECT_FALSE(atoms(e.make<arith::AddIOp>(e.indexType, {i, j})));
}

TEST_F(RaiseTermsTest, ReductionsDoNotNameTheirVariables) {
  ExprRef i = e.variable(64), j = e.variable(64), x = unknown();
  auto sum = [&](ExprRef variable) {
    ExprRef number = e.make<arith::SIToFPOp>(e.f32, {variable});
    return e.reduction(Combiner::Add, e.mul(number, x), e.real(0), {variable});
  };
  EXPECT_EQ(sum(i), sum(j));
  EXPECT_FALSE(Expressions::dependsOn(sum(i), i));
  // Its body at another position.
  ExprRef at = e.instantiate(sum(i), {j});
  EXPECT_TRUE(Expressions::dependsOn(at, j));
  EXPECT_EQ(at, e.mul(e.make<arith::SIToFPOp>(e.f32, {j}), x));
  // A sum that starts elsewhere is a sum, and then some.
  EXPECT_EQ(e.reduction(Combiner::Add, e.mul(x, x), x, {i}),
            e.add(e.reduction(Combiner::Add, e.mul(x, x), e.real(0), {i}), x));
}

TEST_F(RaiseTermsTest, LinearForms) {
  ExprRef x = unknown(), y = unknown();
  ExprRef twice = e.mul(x, e.real(2));
  LinearSum form = linearForm(e.add(e.add(twice, y), e.real(3)));
  EXPECT_EQ(form.constant, 3);
  ASSERT_EQ(form.terms.size(), 2u);
  EXPECT_EQ(form.terms.at(x->id).second, 2);
  EXPECT_EQ(form.terms.at(y->id).second, 1);
  LinearSum other = linearForm(e.add(e.real(3), e.add(y, e.add(x, x))));
  EXPECT_TRUE(form.matches(other));
  other.scale(2);
  EXPECT_FALSE(form.matches(other));
  LinearSum difference = linearForm(e.make<arith::SubFOp>(e.f32, {x, y}));
  EXPECT_EQ(difference.terms.at(x->id).second, 1);
  EXPECT_EQ(difference.terms.at(y->id).second, -1);
}

TEST_F(RaiseTermsTest, ProductsAndDivisors) {
  ExprRef x = unknown(), y = unknown(), z = unknown();
  FactorList of =
      product(e.make<arith::DivFOp>(e.f32, {e.mul(e.mul(x, e.real(4)), y), z}));
  EXPECT_EQ(of.constant, 4);
  EXPECT_EQ(of.factors.size(), 2u);
  EXPECT_EQ(of.divisors, (SmallVector<ExprRef>{z}));
}
