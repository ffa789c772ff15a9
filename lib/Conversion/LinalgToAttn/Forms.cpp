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

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

void LinearForm::scale(double factor) {
  constant *= factor;
  for (auto &[id, term] : terms)
    term.second *= factor;
}

static bool nearly(double a, double b) {
  return a == b || std::fabs(a - b) <= 2e-3 * std::fabs(a) * 1e-3;
}

bool LinearForm::matches(const LinearForm &other) const {
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

static void addTerms(ExprRef expr, double factor, LinearForm &form) {
  if (expr->isConstant()) {
    form.constant += factor * expr->real;
  } else if (expr->is<arith::AddFOp>()) {
    addTerms(expr->operands[0], factor, form);
    addTerms(expr->operands[1], factor, form);
  } else if (expr->is<arith::SubFOp>()) {
    addTerms(expr->operands[0], factor, form);
    addTerms(expr->operands[1], -factor, form);
  } else if (expr->is<arith::MulFOp>() && expr->operands[1]->isConstant()) {
    addTerms(expr->operands[0], factor * expr->operands[1]->real, form);
  } else {
    auto &term = form.terms[expr->id];
    term.first = expr;
    term.second += factor;
  }
}

LinearForm attn::raise::linearForm(ExprRef expr) {
  LinearForm form;
  addTerms(expr, 1, form);
  return form;
}

static void addFactors(ExprRef expr, bool divides, Product &result) {
  if (expr->is<arith::MulFOp>()) {
    addFactors(expr->operands[0], divides, result);
    addFactors(expr->operands[1], divides, result);
  } else if (expr->is<arith::DivFOp>()) {
    addFactors(expr->operands[0], divides, result);
    addFactors(expr->operands[1], !divides, result);
  } else if (expr->isConstant()) {
    result.constant *= divides ? 1 / expr->real : expr->real;
  } else {
    (divides ? result.divisors : result.factors).push_back(expr);
  }
}

Product attn::raise::product(ExprRef expr) {
  Product result;
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
  case Kind::Element:
    return "an element of a tensor";
  case Kind::Scalar:
    return "a scalar";
  case Kind::Undefined:
    return "an undefined value";
  default:
    return "a position";
  }
}
