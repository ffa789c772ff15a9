//===- MatchOperands.cpp - query, key, value and their dimensions --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "Positions.h"

#include <cmath>

using namespace mlir;
using namespace attn::raise;

//===----------------------------------------------------------------------===//
// Which dimension is which
//===----------------------------------------------------------------------===//

static bool isIn(ArrayRef<ExprRef> list, ExprRef expr) {
  return llvm::is_contained(list, expr);
}

/// Shared dimensions number batches and key heads, those of the query alone
/// groups and rows.
void Matcher::placeDimensions(AttentionMatch &match,
                              ArrayRef<ExprRef> queryOnly,
                              ArrayRef<ExprRef> shared) {
  // Rows: what the mask looks at, else what is as long as the keys, else what
  // has no known size, else what varies fastest.
  ExprRef row = nullptr;
  auto isRead = [&](ExprRef atom) {
    bool found = match.mask && Expressions::dependsOn(match.mask, atom);
    Expressions::walk(match.score, [&](ExprRef node) {
      found |= node == atom;
      return node->kind != Expr::Kind::Reduction; // the product reads all
    });
    return found;
  };
  auto rank = [&](ExprRef atom) {
    return std::make_tuple(isRead(atom),
                           atom->extents[0] == match.column->extents[0],
                           !isKnown(atom->extents[0]));
  };
  auto areInOne = [&](ExprRef a, ExprRef b) {
    return llvm::any_of(match.rootIndices, [&](ExprRef index) {
      return Expressions::dependsOn(index, a) &&
             Expressions::dependsOn(index, b);
    });
  };
  // What shares a dimension of the output with key heads are groups, where
  // another dimension says that there is one row.
  bool hasUnit = llvm::any_of(
      match.rootIndices, [](ExprRef index) { return index->isInteger(0); });
  auto isGroup = [&](ExprRef atom) {
    return hasUnit && !isRead(atom) && llvm::any_of(shared, [&](ExprRef key) {
             return areInOne(atom, key);
           });
  };
  for (ExprRef atom : queryOnly)
    if (!isGroup(atom) && (!row || rank(atom) >= rank(row)))
      row = atom;
  if (row)
    match.rows = {row};
  for (ExprRef atom : queryOnly)
    if (atom != row)
      match.groups.push_back(atom);
  // Of several shared dimensions the last numbers key heads, with the parts of
  // the same dimension of the output.
  size_t numBatches = shared.size();
  while (numBatches > 0 && areInOne(shared[numBatches - 1], shared.back()))
    --numBatches;
  // Where that is all of them, the others are batches; so is a single one,
  // unless a sink numbers it.
  if (numBatches == 0)
    numBatches = shared.size() > 1 ? shared.size() - 1 : shared.size();
  while (numBatches > 0 && match.sink &&
         Expressions::dependsOn(match.sink, shared[numBatches - 1]))
    --numBatches;
  match.batch.assign(shared.begin(), shared.begin() + numBatches);
  match.keyHeads.assign(shared.begin() + numBatches, shared.end());
}

/// Score and mask see one position each of batch, head, query and key.
void Matcher::renamePositions(AttentionMatch &match) {
  SmallVector<ExprRef> heads(match.keyHeads);
  llvm::append_range(heads, match.groups);
  ArrayRef<ExprRef> dims[] = {match.batch, heads, match.rows, match.column};
  for (auto [number, parts] : llvm::enumerate(dims)) {
    if (parts.size() == 1) {
      match.positions[number] = parts.front();
      continue;
    }
    SmallVector<Extent> sizes;
    Extent whole = 1;
    for (ExprRef part : parts) {
      sizes.push_back(part->extents[0]);
      whole = isKnown(whole) && isKnown(sizes.back()) ? whole * sizes.back()
                                                      : sizes.front();
    }
    // More than one turn, so that it is a variable where nothing is known.
    ExprRef position = e.variable(whole == 1 ? kMaxSize : whole);
    match.positions[number] = position;
    SmallVector<ExprRef> split;
    for (size_t part = 0; part < parts.size(); ++part)
      split.push_back(e.split(position, sizes, part));
    match.score = e.substitute(match.score, parts, split);
    if (match.mask)
      match.mask = e.substitute(match.mask, parts, split);
  }
}

/// The sink is a number, or one element of a tensor for each head, in their
/// order.
bool Matcher::isSinkOfHeads(const AttentionMatch &match) {
  SmallVector<ExprRef> heads(match.keyHeads), read;
  llvm::append_range(heads, match.groups);
  ExprRef sink = match.sink;
  if (sink->isConstant())
    return true;
  bool isOfHeads = sink->kind == Expr::Kind::Element;
  for (ExprRef index :
       isOfHeads ? ArrayRef<ExprRef>(sink->operands) : ArrayRef<ExprRef>()) {
    auto parts = atoms(index);
    isOfHeads &= parts.has_value();
    if (parts)
      llvm::append_range(read, *parts);
  }
  isOfHeads &= read == heads && !heads.empty();
  if (isOfHeads) {
    auto type = cast<RankedTensorType>(sink->value.getType());
    // Nothing is left out: where the index is 0, there is nothing else.
    for (auto [index, size] : llvm::zip_equal(sink->operands, type.getShape()))
      isOfHeads &= !index->isConstant() || size == 1;
    isOfHeads &= isa<FloatType>(type.getElementType()) &&
                 type.getElementTypeBitWidth() <= 32 && !type.getEncoding();
  }
  if (!isOfHeads)
    return fail("what joins the sum is not one number for each head"), false;
  return true;
}

/// Query and key of `product`, whose head dimension is `depth`; null in front
/// of a reason.
static std::string splitProduct(Expressions &e, ExprRef product, ExprRef depth,
                                ExprRef key, OperandLevels &operands) {
  FactorList parts = attn::raise::product(e.instantiate(product, {depth}));
  operands.factor = e.real(parts.constant);
  for (ExprRef factor : parts.factors) {
    bool isTensor = factor->kind == Expr::Kind::Element &&
                    Expressions::dependsOn(factor, depth);
    ExprRef &side = Expressions::dependsOn(factor, key) ? operands.keyElement
                                                        : operands.queryElement;
    if (isTensor && !side)
      side = factor;
    else if (!isTensor && !hasVariables(factor))
      operands.factor = e.mul(operands.factor, factor);
    else
      return "the product of queries and keys holds " + describe(factor) +
             " too";
  }
  for (ExprRef divisor : parts.divisors) {
    if (hasVariables(divisor))
      return "the product of queries and keys is divided inside its sum";
    operands.factor = e.make<arith::DivFOp>(e.f32, {operands.factor, divisor});
  }
  if (!operands.queryElement || !operands.keyElement)
    return "the product that makes the scores is not one of a tensor with keys "
           "and one without";
  return "";
}

/// Whether `index` numbers queries as well as keys: a batch or a head.
static bool isShared(const OperandLevels &operands, ExprRef index) {
  return Expressions::dependsOn(operands.queryElement, index) &&
         Expressions::dependsOn(operands.keyElement, index);
}

/// Positions that operands read in parts become joins of their parts,
/// everywhere.
void Matcher::refinePositions(AttentionMatch &match, OperandLevels &operands,
                              ExprRef &product) {
  // Every turn takes one variable apart; there are few.
  for (int turn = 0; turn < 8; ++turn) {
    SmallVector<OperandLevel> all = operands.queries;
    llvm::append_range(all, operands.keys);
    llvm::append_range(all, operands.values);
    SmallVector<ExprRef> fixed = {match.column, match.headDim};
    auto split = findSplit(all, fixed);
    if (!split.first) {
      // What tells heads from batches: scores, and views across both.
      all.push_back({Value(), {match.score}, nullptr});
      for (ExprRef expr : {match.mask, match.sink})
        if (expr)
          all.back().indices.push_back(expr);
      for (ExprRef index : match.rootIndices)
        if (!isShared(operands, index))
          fixed.push_back(index);
      split = findSplit(all, fixed, /*throughJoins=*/true);
    }
    if (!split.first)
      return;
    SmallVector<ExprRef> fresh;
    for (Extent size : split.second)
      fresh.push_back(e.variable(size));
    ExprRef joined = e.join(fresh, split.second);
    auto refine = [&](ExprRef &expr) {
      if (expr)
        expr = e.substitute(expr, {split.first}, {joined});
    };
    for (SmallVector<OperandLevel> *levels :
         {&operands.queries, &operands.keys, &operands.values})
      for (OperandLevel &level : *levels)
        llvm::for_each(level.indices, refine);
    llvm::for_each(match.rootIndices, refine);
    for (ExprRef *expr : {&match.score, &match.mask, &match.sink, &product})
      refine(*expr);
  }
}

/// The atoms that a level of keys or values shares with the output: all but
/// the key and `last`.
static std::optional<SmallVector<ExprRef>> sharedOf(const OperandLevel &level,
                                                    ExprRef key, ExprRef last,
                                                    Extents &extents,
                                                    ArrayRef<ExprRef> output) {
  auto order = atomsOf(level, extents);
  if (!order || !isIn(*order, key))
    return std::nullopt;
  SmallVector<ExprRef> shared;
  for (ExprRef atom : output)
    if (isIn(*order, atom) && atom != last)
      shared.push_back(atom);
  unsigned others = isIn(*order, last) ? 2 : 1;
  if (shared.size() + others != order->size())
    return std::nullopt;
  return shared;
}

/// Key and value agree on what they share; the fewer dimensions, the less of
/// them was repeated before.
static std::optional<SmallVector<ExprRef>>
findShared(const AttentionMatch &match, const OperandLevels &operands,
           Extents &extents, ArrayRef<ExprRef> output) {
  std::optional<SmallVector<ExprRef>> shared;
  for (const OperandLevel &key : operands.keys) {
    auto ofKey = sharedOf(key, match.column, match.headDim, extents, output);
    for (const OperandLevel &value : operands.values) {
      auto ofValue =
          sharedOf(value, match.column, match.valueDim, extents, output);
      if (ofKey && ofValue && *ofKey == *ofValue &&
          (!shared || ofKey->size() < shared->size()))
        shared = ofKey;
    }
  }
  return shared;
}

/// Finds the dimension of values, and which of the others are shared and which
/// are of the query alone.
bool Matcher::matchDimensions(AttentionMatch &match,
                              const OperandLevels &operands) {
  SmallVector<ExprRef> output;
  for (ExprRef index : match.rootIndices) {
    auto parts = atoms(index);
    if (!parts)
      return fail("the output is not written along its dimensions"), false;
    llvm::append_range(output, *parts);
  }
  auto query = atomsOf(operands.queries.front(), extents);
  auto key = atomsOf(operands.keys.front(), extents);
  if (!query || !key)
    return fail(Twine("the ") + (query ? "keys" : "queries") +
                " are not read along the dimensions of their tensor"),
           false;
  // The dimension of values: of the output and in no other operand.
  for (ExprRef atom : output) {
    bool isOfValue =
        llvm::any_of(operands.values.front().indices, [&](ExprRef index) {
          return Expressions::dependsOn(index, atom);
        });
    if (isOfValue && !match.valueDim && !isIn(*query, atom) &&
        !isIn(*key, atom))
      match.valueDim = atom;
  }
  if (!match.valueDim)
    return fail("the values have no dimension of their own"), false;
  auto shared = findShared(match, operands, extents, output);
  if (!shared)
    return fail("keys and values differ in more than their last dimension"),
           false;

  // In the order of the query, where that saves a transposition.
  SmallVector<ExprRef> queryOnly, ordered;
  for (ExprRef atom : *query) {
    if (isIn(*shared, atom))
      ordered.push_back(atom);
    else if (atom != match.headDim)
      queryOnly.push_back(atom);
    if (atom != match.headDim && !isIn(output, atom))
      return fail("the queries have a dimension that the output has not"),
             false;
  }
  if (ordered.size() != shared->size())
    return fail("the keys have a dimension that the queries have not"), false;
  for (ExprRef atom : output)
    if (atom != match.valueDim && !isIn(*query, atom))
      return fail("the output has a dimension that neither queries nor keys "
                  "have"),
             false;
  placeDimensions(match, queryOnly, ordered);
  return true;
}

/// Takes of each operand the level that is nearest to what attention wants.
bool Matcher::chooseLevels(AttentionMatch &match,
                           const OperandLevels &operands) {
  if (isPermuted(operands.queries, match.rows, match.headDim, extents) ||
      isPermuted(operands.keys, match.column, match.headDim, extents) ||
      isPermuted(operands.values, match.column, match.valueDim, extents))
    return fail("queries, keys or values are read in an order of dimensions "
                "that is no layout of theirs"),
           false;
  match.element =
      elementOf({operands.queries, operands.keys, operands.values}, root);
  auto choose = [&](ArrayRef<OperandLevel> levels, bool isQuery, ExprRef last,
                    StringRef name, OperandLevel &chosen) {
    SmallVector<ExprRef> order(match.batch);
    llvm::append_range(order, match.keyHeads);
    if (isQuery) {
      llvm::append_range(order, match.groups);
      llvm::append_range(order, match.rows);
    } else {
      order.push_back(match.column);
    }
    order.push_back(last);
    const OperandLevel *best = cheapest(levels, order, match.element, extents);
    if (!best)
      return fail("the " + name +
                  " are not read along the dimensions of their tensor"),
             false;
    chosen = *best;
    return true;
  };
  return choose(operands.queries, true, match.headDim, "queries",
                match.query) &&
         choose(operands.keys, false, match.headDim, "keys", match.key) &&
         choose(operands.values, false, match.valueDim, "values", match.value);
}

std::optional<AttentionMatch>
Matcher::matchOperands(const SoftmaxMatch &softmax, ScoreMatch scores) {
  AttentionMatch match;
  match.root = root;
  match.column = softmax.key;
  match.headDim = e.variable(scores.product->bound()[0]->extents[0]);
  match.rootIndices = rootIndices;
  match.score = scores.score;
  match.mask = scores.mask;
  match.sink = softmax.sink;
  OperandLevels operands;
  std::string problem =
      splitProduct(e, scores.product, match.headDim, match.column, operands);
  if (!problem.empty())
    return fail(problem);
  if (!Expressions::dependsOn(softmax.value, softmax.key))
    return fail("the values do not vary with the keys");
  operands.queries = levelsOf(e, reader, operands.queryElement, true);
  operands.keys = levelsOf(e, reader, operands.keyElement, true);
  operands.values = levelsOf(e, reader, softmax.value, false);

  refinePositions(match, operands, scores.product);
  if (!matchDimensions(match, operands) || !chooseLevels(match, operands))
    return std::nullopt;
  ExprRef factor = e.mul(match.query.factor, match.key.factor);
  matchScale(match, scores.product, e.mul(operands.factor, factor));
  if (!std::isfinite(static_cast<float>(match.scale)))
    return fail("the scale is not finite");
  if (match.sink && !isSinkOfHeads(match))
    return std::nullopt;
  renamePositions(match);
  if (!checkUses(match, softmax, operands.queryElement->value,
                 operands.keyElement->value))
    return std::nullopt;
  return match;
}
