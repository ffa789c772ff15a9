//===- Forms.cpp - sums and products in expressions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

bool attn::raise::isMaximum(ExprRef expr) {
  if (expr->is<arith::SelectOp>())
    expr = expr->operands[expr->operands[1]->isConstant() ? 2 : 1];
  return expr->isReduction(Combiner::Max) ||
         (expr->height > 0 &&
          (expr->is<arith::MaximumFOp>() || expr->is<arith::MaxNumFOp>()));
}

void LinearSum::scale(double factor) {
  constant *= factor;
  for (auto &[id, term] : terms)
    term.second *= factor;
}

void LinearSum::add(std::pair<ExprRef, double> term) {
  auto &sum = terms[term.first->id];
  sum = {term.first, sum.second + term.second};
}

static bool nearly(double a, double b) {
  return a == b || std::fabs(a - b) <= 2e-3 * std::fabs(a) * 1e-3;
}

bool LinearSum::matches(const LinearSum &other) const {
  if (terms.size() != other.terms.size() || !nearly(constant, other.constant))
    return false;
  for (const auto &[id, term] : terms) {
    auto found = other.terms.find(id);
    if (found == other.terms.end() ||
        !nearly(term.second, found->second.second))
      return false;
  }
  return true;
}

/// What `isTerm` says is not taken apart.
static LinearSum takeApart(ExprRef expr, function_ref<bool(ExprRef)> isTerm) {
  LinearSum form;
  // What is still to be taken apart, users first: they were created later. Each
  // node once, however often it is added.
  std::map<unsigned, std::pair<ExprRef, double>, std::greater<>> open;
  auto add = [&](ExprRef part, double factor) {
    auto &sum = open[part->id];
    sum.first = part;
    sum.second += factor;
  };
  add(expr, 1);
  while (!open.empty()) {
    auto [part, factor] = open.extract(open.begin()).mapped();
    if (part->isConstant()) {
      form.constant += factor * part->real;
    } else if (isTerm(part)) {
      form.terms[part->id] = {part, factor};
    } else if (part->is<arith::AddFOp>() || part->is<arith::SubFOp>()) {
      add(part->operands[0], factor);
      add(part->operands[1], part->is<arith::SubFOp>() ? -factor : factor);
    } else if (part->is<arith::MulFOp>() && part->operands[1]->isConstant()) {
      add(part->operands[0], factor * part->operands[1]->real);
    } else if (factor != 0 || !isMaximum(part)) {
      form.terms[part->id] = {part, factor};
    }
  }
  return form;
}

LinearSum attn::raise::linearForm(ExprRef expr) {
  return takeApart(expr, [](ExprRef) { return false; });
}

LinearSum attn::raise::linearFormOfReductions(ExprRef expr) {
  return takeApart(expr, [](ExprRef part) { return part->height == 0; });
}

/// Factors beyond which a product is not taken apart: of a power of a power the
/// number doubles.
static constexpr size_t maxFactors = 256;

static void addFactors(ExprRef expr, bool divides, FactorList &result) {
  bool isFull = result.factors.size() + result.divisors.size() >= maxFactors;
  if (expr->is<arith::MulFOp>() && !isFull) {
    addFactors(expr->operands[0], divides, result);
    addFactors(expr->operands[1], divides, result);
  } else if (expr->is<arith::DivFOp>() && !isFull) {
    addFactors(expr->operands[0], divides, result);
    addFactors(expr->operands[1], !divides, result);
  } else if (expr->isConstant()) {
    result.constant *= divides ? 1 / expr->real : expr->real;
  } else {
    (divides ? result.divisors : result.factors).push_back(expr);
  }
}

FactorList attn::raise::product(ExprRef expr) {
  FactorList result;
  addFactors(expr, false, result);
  return result;
}

std::string attn::raise::text(double value) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", value);
  return result;
}

std::string attn::raise::describe(ExprRef expr) {
  switch (expr->kind) {
  case Kind::Operation:
    return expr->name->getStringRef().str();
  case Kind::Reduction:
    switch (expr->combiner) {
    case Combiner::Add:
      return "a sum";
    case Combiner::Mul:
      return "a product";
    case Combiner::Max:
      return "a maximum";
    case Combiner::Min:
      return "a minimum";
    default:
      return "a reduction";
    }
  case Kind::Constant:
    return expr->isFloat() ? text(expr->real) : std::to_string(expr->integer);
  case Kind::Element: {
    // Read as far as possible: this operation could not be.
    Operation *producer = expr->value.getDefiningOp();
    return producer ? "an element of what " +
                          producer->getName().getStringRef().str() + " makes"
                    : "an element of an argument";
  }
  case Kind::Scalar:
    return "a scalar";
  case Kind::Rounding:
    return "a rounding";
  case Kind::Undefined:
    return "an undefined value";
  default:
    return "a position";
  }
}
