//===- Expression.cpp - one element of a tensor as scalar code -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include "Positions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// Variables of one reduction; numbers of bound variables are below the free.
static constexpr unsigned kMaxLoops = 16, kFirstFree = 1u << 20;

Expressions::Expressions(MLIRContext *context, bool splits)
    : context(context), splits(splits) {
  Builder b(context);
  f32 = b.getF32Type();
  i1 = b.getI1Type();
  i32 = b.getI32Type();
  i64 = b.getI64Type();
  indexType = b.getIndexType();
}

ExprRef Expressions::unique(Expr node) {
  // Constants by their bits: NaN has no place in an order of doubles.
  Key key(static_cast<int>(node.kind), node.type.getAsOpaquePointer(),
          node.number, node.predicate, llvm::bit_cast<uint64_t>(node.real),
          node.integer, node.value.getAsOpaquePointer(),
          static_cast<int>(node.combiner),
          node.name ? node.name->getAsOpaquePointer() : nullptr,
          std::vector<int64_t>(node.extents.begin(), node.extents.end()),
          std::vector<ExprRef>(node.operands.begin(), node.operands.end()));
  auto [entry, isNew] = uniqued.try_emplace(std::move(key), nullptr);
  if (isNew) {
    node.id = nodes.size();
    node.depth = 0;
    for (ExprRef operand : node.operands) {
      node.height = std::max(node.height, operand->height);
      node.depth = std::max(node.depth, operand->depth + 1);
    }
    if (node.kind == Kind::Reduction)
      ++node.height;
    node.range.reset();
    if (node.kind == Kind::Operation && node.type.isIndex() &&
        !node.operands.front()->isFloat())
      node.range = unwrappedInterval(node);
    nodes.push_back(std::move(node));
    entry->second = &nodes.back();
  }
  return entry->second;
}

ExprRef Expressions::variable(Extent extent) {
  if (extent == 1)
    return index(0);
  Expr node{Kind::Variable, indexType};
  node.number = kFirstFree + numVariables++;
  node.extents = {extent};
  return unique(std::move(node));
}

ExprRef Expressions::real(double value) {
  Expr node{Kind::Constant, f32};
  node.real = value;
  return unique(std::move(node));
}

ExprRef Expressions::integer(int64_t value, Type type) {
  // Constants are numbers; i1 alone has operations of its own.
  Expr node{Kind::Constant, type.isInteger(1) ? type : indexType};
  node.integer = type.isInteger(1) ? (value & 1) : value;
  return unique(std::move(node));
}

ExprRef Expressions::scalar(Value value) {
  Expr node{Kind::Scalar,
            isa<FloatType>(value.getType()) ? f32 : value.getType()};
  node.value = value;
  return unique(std::move(node));
}

ExprRef Expressions::named(Value value) {
  Expr node{Kind::Scalar, f32};
  node.value = value;
  return unique(std::move(node));
}

ExprRef Expressions::size(Extent extent) {
  if (isKnown(extent))
    return index(extent);
  Expr node{Kind::Size, indexType};
  node.extents = {extent};
  return unique(std::move(node));
}

ExprRef Expressions::element(Value tensor, ArrayRef<ExprRef> indices,
                             bool keepsRoundings) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Expr node{Kind::Element, isa<FloatType>(element) ? f32 : element};
  node.value = tensor;
  node.number = keepsRoundings ? 1 : 0;
  for (auto [dim, position] : llvm::enumerate(indices))
    node.operands.push_back(
        cast<RankedTensorType>(tensor.getType()).getDimSize(dim) == 1
            ? index(0)
            : position);
  return unique(std::move(node));
}

ExprRef Expressions::undefined(Type type) {
  return unique(Expr{Kind::Undefined, isa<FloatType>(type) ? f32 : type});
}

ExprRef Expressions::negated(ExprRef condition) {
  return make<arith::XOrIOp>(i1, {condition, integer(1, i1)});
}

ExprRef Expressions::operation(OperationName name, Type type,
                               ArrayRef<ExprRef> operands, int64_t predicate) {
  Expr node{Kind::Operation, isa<FloatType>(type) ? f32 : type};
  node.name = name;
  node.predicate = predicate;
  node.operands.assign(operands.begin(), operands.end());
  if (operands.size() == 2 && name.hasTrait<OpTrait::IsCommutative>()) {
    auto order = [](ExprRef expr) {
      return std::make_pair(expr->isConstant(), expr->id);
    };
    if (order(operands[1]) < order(operands[0]))
      std::swap(node.operands[0], node.operands[1]);
  }
  if (node.is<arith::SelectOp>())
    return simplifySelect(node);
  bool isFloat = node.isFloat() || node.operands.front()->isFloat();
  if (ExprRef simpler = isFloat ? simplifyFloat(node) : simplifyInteger(node))
    return simpler;
  return unique(std::move(node));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

ExprRef Expressions::reduction(Combiner combiner, ExprRef body, ExprRef init,
                               ArrayRef<ExprRef> variables) {
  // A sum that starts elsewhere is a sum from 0, and then some.
  if (combiner == Combiner::Add && isa<FloatType>(body->type) &&
      !init->isReal(0))
    return add(reduction(combiner, body, real(0), variables), init);
  if (ExprRef split =
          splits ? splitLast(combiner, body, init, variables) : nullptr) {
    ++numSplits;
    return split;
  }
  // max(x - m) of a maximum m is max(x) - m, to the last bit.
  if (combiner == Combiner::Max && init->isReal(-HUGE_VAL) &&
      body->is<arith::SubFOp>() && isMaximum(body->operands[1]) &&
      llvm::none_of(variables, [&](ExprRef variable) {
        return dependsOn(body->operands[1], variable);
      }))
    return make<arith::SubFOp>(
        f32, {reduction(combiner, body->operands[0], init, variables),
              body->operands[1]});
  Expr node{Kind::Reduction, body->type};
  node.combiner = combiner;
  SmallVector<ExprRef> loops, bound;
  for (ExprRef variable : variables) {
    if (!variable->isVariable())
      continue; // a loop of one turn
    Expr renamed{Kind::Variable, indexType};
    // Unlike any bound variable of a reduction inside of the body.
    renamed.number = kMaxLoops * body->height + loops.size();
    renamed.extents = variable->extents;
    loops.push_back(variable);
    bound.push_back(unique(std::move(renamed)));
  }
  node.operands = {substitute(body, loops, bound), init};
  llvm::append_range(node.operands, bound);
  return unique(std::move(node));
}

ExprRef Expressions::instantiate(ExprRef reduction,
                                 ArrayRef<ExprRef> variables) {
  return substitute(reduction->body(), reduction->bound(), variables);
}

//===----------------------------------------------------------------------===//
// Traversal
//===----------------------------------------------------------------------===//

/// `expr`, which is no reduction, with other operands.
ExprRef Expressions::rebuild(ExprRef expr, ArrayRef<ExprRef> operands) {
  switch (expr->kind) {
  case Kind::Operation:
    return operation(*expr->name, expr->type, operands, expr->predicate);
  case Kind::Join:
    return join(operands, expr->extents);
  case Kind::Split:
    return split(operands[0], expr->extents, expr->number);
  case Kind::Rounding:
    return rounding(operands[0], expr->type);
  default:
    Expr copy = *expr;
    copy.height = 0;
    copy.operands.assign(operands.begin(), operands.end());
    return unique(std::move(copy));
  }
}

ExprRef Expressions::rewrite(ExprRef root,
                             function_ref<ExprRef(ExprRef)> replace) {
  llvm::DenseMap<ExprRef, ExprRef> done;
  std::function<ExprRef(ExprRef)> visit = [&](ExprRef expr) -> ExprRef {
    if (ExprRef known = done.lookup(expr))
      return known;
    ExprRef result = replace(expr);
    if (!result && expr->kind == Kind::Reduction) {
      // The new body may hold reductions with the number of this one's
      // variables: these become free for a while.
      SmallVector<ExprRef> variables;
      for (ExprRef bound : expr->bound())
        variables.push_back(variable(bound->extents[0]));
      result = reduction(expr->combiner, visit(instantiate(expr, variables)),
                         visit(expr->init()), variables);
    } else if (!result) {
      SmallVector<ExprRef> operands;
      bool changed = false;
      for (ExprRef operand : expr->operands) {
        operands.push_back(visit(operand));
        changed |= operands.back() != operand;
      }
      result = changed ? rebuild(expr, operands) : expr;
    }
    done[expr] = result;
    return result;
  };
  return visit(root);
}

ExprRef Expressions::substitute(ExprRef root, ArrayRef<ExprRef> from,
                                ArrayRef<ExprRef> to) {
  return rewrite(root, [&](ExprRef expr) -> ExprRef {
    for (auto [old, replacement] : llvm::zip_equal(from, to))
      if (expr == old)
        return replacement;
    return nullptr;
  });
}

void Expressions::walk(ExprRef root, function_ref<bool(ExprRef)> visit) {
  llvm::SmallPtrSet<ExprRef, 16> seen;
  SmallVector<ExprRef> worklist = {root};
  while (!worklist.empty()) {
    ExprRef expr = worklist.pop_back_val();
    if (!seen.insert(expr).second || !visit(expr))
      continue;
    for (auto [number, operand] : llvm::enumerate(expr->operands))
      if (expr->kind != Kind::Reduction || number < 2)
        worklist.push_back(operand);
  }
}

bool Expressions::contains(ExprRef root, function_ref<bool(ExprRef)> wanted) {
  bool found = false;
  walk(root, [&](ExprRef expr) {
    found |= wanted(expr);
    return !found;
  });
  return found;
}

bool Expressions::dependsOn(ExprRef root, ExprRef node) {
  return contains(root, [&](ExprRef expr) { return expr == node; });
}

//===----------------------------------------------------------------------===//
// Simplification of float operations
//===----------------------------------------------------------------------===//

/// The value of a function of one constant, if it is one that scales are
/// written with.
static std::optional<double> evaluate(StringRef name, double x) {
  if (name == "math.sqrt")
    return std::sqrt(x);
  if (name == "math.rsqrt")
    return 1 / std::sqrt(x);
  if (name == "math.exp")
    return std::exp(x);
  if (name == "math.exp2")
    return std::exp2(x);
  if (name == "math.log")
    return std::log(x);
  if (name == "math.log2")
    return std::log2(x);
  if (name == "math.absf")
    return std::fabs(x);
  return std::nullopt;
}

static std::optional<double> evaluate(StringRef name, double x, double y) {
  if (name == "arith.addf")
    return x + y;
  if (name == "arith.subf")
    return x - y;
  if (name == "arith.mulf")
    return x * y;
  if (name == "arith.divf")
    return x / y;
  if (name == "arith.maximumf" || name == "arith.maxnumf")
    return std::max(x, y);
  if (name == "arith.minimumf" || name == "arith.minnumf")
    return std::min(x, y);
  if (name == "math.powf")
    return std::pow(x, y);
  return std::nullopt;
}

/// The condition under which `expr` is 1, if it is 0 or 1; else null.
static ExprRef bitOf(Expressions &e, ExprRef expr) {
  if (!expr->is<arith::SelectOp>())
    return nullptr;
  if (expr->operands[1]->isReal(1) && expr->operands[2]->isReal(0))
    return expr->operands[0];
  if (expr->operands[1]->isReal(0) && expr->operands[2]->isReal(1))
    return e.negated(expr->operands[0]);
  return nullptr;
}

/// Whether products with and divisions by a number do not round.
static bool isPowerOfTwo(double x) {
  int exponent;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}

/// Scales and their places: a negation, a division by a constant and nested
/// products with constants are one product, the constant last.
///
/// That rounds otherwise than the graph does, which matters where an integer is
/// made of the value: a position on the boundary of a bucket would move. So
/// constants move only in what depends on a sum of the graph, whose order is
/// nobody's promise, or where they are powers of two.
ExprRef Expressions::simplifyFloat(const Expr &node) {
  StringRef name = node.name->getStringRef();
  ExprRef a = node.operands[0];
  ExprRef b = node.operands.size() > 1 ? node.operands[1] : nullptr;
  bool folds = node.isFloat() && a->isConstant() && a->isFloat();
  if (folds && node.operands.size() == 1)
    if (std::optional<double> value = evaluate(name, a->real))
      return real(static_cast<float>(*value));
  if (folds && b && b->isConstant() && b->isFloat())
    if (std::optional<double> value = evaluate(name, a->real, b->real))
      return real(static_cast<float>(*value));
  if (a->isConstant() && !a->isFloat() &&
      (name == "arith.sitofp" || name == "arith.uitofp"))
    return real(static_cast<double>(a->integer));

  if (name == "arith.fptosi")
    if (ExprRef quotient = integerQuotient(node))
      return quotient;

  // A bit as a number, and functions of a choice of constants, are choices.
  if (name == "arith.uitofp" && a->type.isInteger(1))
    return make<arith::SelectOp>(f32, {a, real(1), real(0)});
  if (name == "arith.cmpf" && a->isConstant() && b->isConstant())
    return integer(arith::applyCmpPredicate(
                       static_cast<arith::CmpFPredicate>(node.predicate),
                       llvm::APFloat(a->real), llvm::APFloat(b->real)),
                   i1);
  if ((node.isFloat() || name == "arith.cmpf") &&
      (node.operands.size() == 1 || node.operands.size() == 2))
    for (unsigned side = 0; side < node.operands.size(); ++side) {
      ExprRef choice = node.operands[side];
      bool isChoice = choice->is<arith::SelectOp>() && choice->isFloat() &&
                      choice->operands[1]->isConstant() &&
                      choice->operands[2]->isConstant();
      if (!isChoice || (b && !node.operands[1 - side]->isConstant()))
        continue;
      auto with = [&](ExprRef value) {
        SmallVector<ExprRef> operands(node.operands.begin(),
                                      node.operands.end());
        operands[side] = value;
        return operation(*node.name, node.type, operands, node.predicate);
      };
      return make<arith::SelectOp>(node.type, {choice->operands[0],
                                               with(choice->operands[1]),
                                               with(choice->operands[2])});
    }
  // A product of bits is one.
  if (name == "arith.mulf")
    if (ExprRef first = bitOf(*this, a), second = bitOf(*this, b);
        first && second)
      return make<arith::SelectOp>(f32,
                                   {both(first, second), real(1), real(0)});

  if (name == "arith.negf")
    return mul(a, real(-1));
  bool hasSum = llvm::any_of(
      node.operands, [](ExprRef operand) { return operand->height > 0; });
  if (name == "math.fma" && hasSum)
    return add(mul(a, b), node.operands[2]);
  if ((name == "arith.addf" || name == "arith.subf") && b->isReal(0))
    return a;
  if (name == "arith.divf" && b->isConstant() && std::isnormal(b->real) &&
      std::isnormal(1 / b->real) && (hasSum || isPowerOfTwo(b->real)))
    return mul(a, real(1 / b->real));
  if (name == "arith.mulf" && b->isConstant()) {
    if (b->real == 1)
      return a;
    if (a->is<arith::MulFOp>() && a->operands[1]->isConstant() &&
        std::isnormal(a->operands[1]->real) && std::isnormal(b->real) &&
        std::isnormal(a->operands[1]->real * b->real) &&
        (hasSum || isPowerOfTwo(a->operands[1]->real) || isPowerOfTwo(b->real)))
      return mul(a->operands[0], real(a->operands[1]->real * b->real));
  }
  bool isMax = name == "arith.maximumf" || name == "arith.maxnumf";
  // A maximum of a value and a smaller constant than any float is the value.
  if (isMax && b->isReal(-HUGE_VAL))
    return a;
  // Where a maximum was subtracted from both: what is left of it is 0.
  if (isMax && a->is<arith::SubFOp>() && b->is<arith::SubFOp>() &&
      a->operands[1] == b->operands[1] && isMaximum(a->operands[1]))
    return make<arith::SubFOp>(
        f32, {operation(*node.name, f32, {a->operands[0], b->operands[0]}),
              a->operands[1]});
  if (name == "arith.subf" && a == b && isMaximum(a))
    return real(0);
  if (name == "math.powf" && hasSum && a->isConstant() && a->real > 0)
    return make<math::ExpOp>(f32, {mul(b, real(std::log(a->real)))});
  // A sum of exponentials is no less than 0.
  if (name == "math.absf" && a->isReduction(Combiner::Add) &&
      (a->body()->is<math::ExpOp>() || a->body()->is<math::Exp2Op>()) &&
      a->init()->isReal(0))
    return a;
  return nullptr;
}

ExprRef Expressions::simplifySelect(const Expr &node) {
  ExprRef condition = node.operands[0];
  ExprRef yes = node.operands[1], no = node.operands[2];
  if (yes == no || condition->isInteger(1))
    return yes;
  if (condition->isInteger(0))
    return no;
  // A dimension of size 1 has position 0 alone: select(size == 1, 0, position).
  if (yes->isInteger(0) && condition->is<arith::CmpIOp>() &&
      condition->predicate == static_cast<int64_t>(arith::CmpIPredicate::eq) &&
      condition->operands[0]->kind == Kind::Size &&
      condition->operands[1]->isInteger(1) &&
      (no->isVariable() || no->kind == Kind::Split) &&
      no->extents[no->isVariable() ? 0 : no->number] ==
          condition->operands[0]->extents[0])
    return no;
  // Where the condition is a negation, the values trade places.
  if (condition->is<arith::XOrIOp>() && condition->operands[1]->isInteger(1))
    return make<arith::SelectOp>(node.type, {condition->operands[0], no, yes});
  // One choice by the same condition, or its opposite, is enough.
  auto within = [&](ExprRef expr, bool holds) {
    if (!expr->is<arith::SelectOp>())
      return expr;
    if (expr->operands[0] == condition)
      return expr->operands[holds ? 1 : 2];
    return expr->operands[0] == negated(condition)
               ? expr->operands[holds ? 2 : 1]
               : expr;
  };
  if (within(yes, true) != yes || within(no, false) != no)
    return make<arith::SelectOp>(
        node.type, {condition, within(yes, true), within(no, false)});
  if (node.type.isInteger(1)) {
    if (yes->isInteger(1) && no->isInteger(0))
      return condition;
    if (yes->isInteger(0) && no->isInteger(1))
      return negated(condition);
    auto either = [&](ExprRef a, ExprRef b) {
      return make<arith::OrIOp>(i1, {a, b});
    };
    if (yes->isInteger(1))
      return either(condition, no);
    if (no->isInteger(1))
      return either(negated(condition), yes);
    if (yes->isInteger(0))
      return both(negated(condition), no);
    if (no->isInteger(0))
      return both(condition, yes);
  }
  // A number that is chosen twice is chosen once, where there are but two.
  auto isChoice = [](ExprRef expr) {
    return expr->is<arith::SelectOp>() && expr->operands[1]->isConstant() &&
           expr->operands[2]->isConstant();
  };
  if (node.isFloat() && yes->isConstant() && isChoice(no))
    for (unsigned side : {1u, 2u})
      if (no->operands[side] == yes) {
        ExprRef inner = no->operands[0];
        ExprRef either = make<arith::OrIOp>(
            i1, {condition, side == 1 ? inner : negated(inner)});
        return make<arith::SelectOp>(node.type,
                                     {either, yes, no->operands[3 - side]});
      }
  if (node.isFloat() && no->isConstant() && isChoice(yes))
    for (unsigned side : {1u, 2u})
      if (yes->operands[side] == no) {
        ExprRef inner = yes->operands[0];
        ExprRef all = both(condition, side == 2 ? inner : negated(inner));
        return make<arith::SelectOp>(node.type,
                                     {all, yes->operands[3 - side], no});
      }
  // select(a > b, a, b) is a maximum.
  if (condition->is<arith::CmpFOp>() && node.isFloat()) {
    auto predicate = static_cast<arith::CmpFPredicate>(condition->predicate);
    bool isGreater = predicate == arith::CmpFPredicate::OGT ||
                     predicate == arith::CmpFPredicate::OGE ||
                     predicate == arith::CmpFPredicate::UGT ||
                     predicate == arith::CmpFPredicate::UGE;
    bool isLess = predicate == arith::CmpFPredicate::OLT ||
                  predicate == arith::CmpFPredicate::OLE ||
                  predicate == arith::CmpFPredicate::ULT ||
                  predicate == arith::CmpFPredicate::ULE;
    ExprRef a = condition->operands[0], b = condition->operands[1];
    bool isMax =
        (isGreater && a == yes && b == no) || (isLess && a == no && b == yes);
    bool isMin =
        (isLess && a == yes && b == no) || (isGreater && a == no && b == yes);
    // Which one it is where a value beside a constant is no number.
    bool isUnordered = predicate >= arith::CmpFPredicate::UEQ;
    ExprRef chosen = isUnordered ? yes : no;
    bool keepsNaN =
        !chosen->isConstant() && (a->isConstant() || b->isConstant());
    if (isMax)
      return keepsNaN ? make<arith::MaximumFOp>(f32, {a, b})
                      : make<arith::MaxNumFOp>(f32, {a, b});
    if (isMin)
      return keepsNaN ? make<arith::MinimumFOp>(f32, {a, b})
                      : make<arith::MinNumFOp>(f32, {a, b});
  }
  return unique(Expr(node));
}
