//===- MatchScores.cpp - the scores and the product in them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

SmallVector<ScoreMatch> Matcher::matchScores(const SoftmaxMatch &softmax) {
  // A finite constant hides a key only if no row is left without one: a row of
  // such constants alone has equal weights.
  MaskedScore masked = splitMask(e, softmax.scores, Hides::Lowest);
  bool keepsFinite = false;
  if (masked.isFinite) {
    bool sees = llvm::any_of(rootIndices, [&](ExprRef row) {
      return everyRowSees(e, masked.mask, row, softmax.key);
    });
    if (!sees) {
      masked = splitMask(e, softmax.scores, Hides::Infinite);
      keepsFinite = true;
    }
  }
  SmallVector<ExprRef> products;
  Expressions::walk(masked.score, [&](ExprRef node) {
    bool isProduct = isContraction(node);
    if (isProduct && Expressions::dependsOn(node, softmax.key))
      products.push_back(node);
    return !isProduct;
  });
  if (products.empty()) {
    fail("the scores hold no product of queries and keys");
    return {};
  }
  SmallVector<ScoreMatch> candidates;
  for (ExprRef product : products)
    if (product->bound().size() == 1 && product->init()->isReal(0))
      candidates.push_back({product, masked.score, masked.mask, keepsFinite});
  if (candidates.empty())
    fail("the product of queries and keys sums over " +
         Twine(products.front()->bound().size()) + " dimensions, wanted 1");
  return candidates;
}

/// Reductions in score and mask other than the product are tensors of the
/// graph, read at their positions.
bool Matcher::captureReductions(ScoreMatch &scores) {
  bool isComplete = true;
  auto capture = [&](ExprRef expr) {
    return e.rewrite(expr, [&](ExprRef node) -> ExprRef {
      if (node->kind != Kind::Reduction || node == scores.product)
        return node == scores.product ? node : nullptr;
      ArrayRef<ExprRef> origins = reader.originsOf(node);
      isComplete &= !origins.empty();
      return origins.empty() ? node : origins.front();
    });
  };
  scores.score = capture(scores.score);
  if (scores.mask)
    scores.mask = capture(scores.mask);
  if (!isComplete)
    fail("the scores hold a reduction that is no tensor of the graph");
  return isComplete;
}

/// x = scale * product with the scale as far as it is a number; `factor` came
/// with the operands.
void Matcher::matchScale(AttentionMatch &match, ExprRef product,
                         ExprRef factor) {
  ExprRef scaled = nullptr; // product * constant, if it stands nowhere else
  bool isScaled = match.score != product;
  Expressions::walk(match.score, [&](ExprRef node) {
    if (node != product && llvm::is_contained(node->operands, product)) {
      bool isScale =
          node->is<arith::MulFOp>() && node->operands[1]->isConstant();
      isScaled &= isScale && (!scaled || scaled == node);
      scaled = node;
    }
    return node != product;
  });
  FactorList factors = raise::product(factor);
  match.scale = factors.constant;
  if (isScaled && scaled)
    match.scale *= scaled->operands[1]->real;
  match.x = e.named(match.root);
  ExprRef x = match.x;
  for (ExprRef part : factors.factors)
    x = e.mul(x, part);
  for (ExprRef part : factors.divisors)
    x = e.make<arith::DivFOp>(e.f32, {x, part});
  match.score =
      e.substitute(match.score, {isScaled && scaled ? scaled : product}, {x});
}
