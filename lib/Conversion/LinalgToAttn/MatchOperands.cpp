//===- MatchOperands.cpp - query, key, value and their dimensions -*- C++
//-*-===//
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
using Kind = Expr::Kind;

//===----------------------------------------------------------------------===//
// Levels: a tensor, and those it was made from
//===----------------------------------------------------------------------===//

static bool hasVariables(ExprRef expr) {
  return Expressions::contains(expr,
                               [](ExprRef node) { return node->isVariable(); });
}

static unsigned widthOf(Value tensor) {
  return getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth();
}

/// `element` and what it was made from by casts that lose nothing, views, and,
/// where wanted, products with something that is the same everywhere.
SmallVector<Level> Matcher::levelsOf(ExprRef element, bool takesFactors) {
  SmallVector<Level> levels;
  ExprRef factor = e.real(1);
  while (true) {
    levels.push_back({element->value,
                      SmallVector<ExprRef>(element->operands.begin(),
                                           element->operands.end()),
                      factor});
    ExprRef next = reader.readOnce(element->value, element->operands);
    if (!next)
      return levels;
    Product parts = product(next);
    ExprRef source = nullptr;
    factor = e.mul(factor, e.real(parts.constant));
    bool isKnown = takesFactors || parts.constant == 1;
    for (ExprRef part : parts.factors) {
      // A tensor of one number is that number.
      if (takesFactors && !hasVariables(reader.expand(part)))
        part = reader.expand(part);
      if (part->kind == Kind::Element && hasVariables(part) && !source)
        source = part;
      else if (takesFactors && !hasVariables(part))
        factor = e.mul(factor, part);
      else
        isKnown = false;
    }
    for (ExprRef part : parts.divisors) {
      if (!hasVariables(reader.expand(part)))
        part = reader.expand(part);
      isKnown &= takesFactors && !hasVariables(part);
      factor = e.make<arith::DivFOp>(e.f32, {factor, part});
    }
    if (!isKnown || !source || !source->isFloat() ||
        widthOf(source->value) > widthOf(element->value))
      return levels;
    element = source;
  }
}

/// The atoms of the indices of a level in order, if it is read everywhere
/// exactly once, dimension by dimension.
static std::optional<SmallVector<ExprRef>> atomsOf(const Level &level,
                                                   Extents &extents) {
  SmallVector<ExprRef> all;
  for (auto [dim, index] : llvm::enumerate(level.indices)) {
    auto parts = atoms(index);
    if (!parts)
      return std::nullopt;
    Extent size = extents.of(level.tensor, dim);
    if (parts->empty() && size != 1)
      return std::nullopt;
    Extent product = 1;
    for (ExprRef atom : *parts) {
      if (llvm::is_contained(all, atom))
        return std::nullopt;
      all.push_back(atom);
      bool isKnownProduct = isKnown(product) && isKnown(atom->extents[0]);
      product = parts->size() == 1 ? atom->extents[0]
                : isKnownProduct   ? product * atom->extents[0]
                                   : -1;
    }
    // A join of unknown sizes is what the dimension was made from.
    bool isJoin = parts->size() > 1 && !isKnown(product);
    if (!parts->empty() && !isJoin && product != size)
      return std::nullopt;
  }
  return all;
}

/// The parts that variables other than `fixed` are split into somewhere in
/// `levels`; empty if there are none.
static std::pair<ExprRef, SmallVector<Extent>>
findSplit(ArrayRef<Level> levels, ArrayRef<ExprRef> fixed) {
  std::pair<ExprRef, SmallVector<Extent>> found;
  for (const Level &level : levels)
    for (ExprRef index : level.indices)
      Expressions::walk(index, [&](ExprRef node) {
        if (!found.first && node->kind == Kind::Split &&
            node->operands[0]->isVariable() &&
            !llvm::is_contained(fixed, node->operands[0]))
          found = {node->operands[0], SmallVector<Extent>(node->extents.begin(),
                                                          node->extents.end())};
        return !found.first;
      });
  return found;
}

//===----------------------------------------------------------------------===//
// The product of query and key
//===----------------------------------------------------------------------===//

SmallVector<ScoreMatch> Matcher::matchScores(const SoftmaxMatch &softmax) {
  // A finite constant hides a key only if no row is left without one: a row of
  // such constants alone has equal weights.
  MaskedScore masked = splitMask(e, softmax.scores, /*finite=*/true);
  bool keepsFinite = false;
  if (masked.isFinite) {
    bool sees = llvm::any_of(rootIndices, [&](ExprRef row) {
      return everyRowSees(e, masked.mask, row, softmax.key);
    });
    if (!sees) {
      masked = splitMask(e, softmax.scores, /*finite=*/false);
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
  auto rank = [&](ExprRef atom) {
    bool isRead = Expressions::dependsOn(match.score, atom) ||
                  (match.mask && Expressions::dependsOn(match.mask, atom));
    return std::make_tuple(isRead, atom->extents[0] == match.column->extents[0],
                           !isKnown(atom->extents[0]));
  };
  for (ExprRef atom : queryOnly)
    if (!row || rank(atom) >= rank(row))
      row = atom;
  if (row)
    match.rows = {row};
  for (ExprRef atom : queryOnly)
    if (atom != row)
      match.groups.push_back(atom);
  // Of several shared dimensions the last numbers key heads, with the parts of
  // the same dimension of the output.
  match.batch.assign(shared.begin(), shared.end());
  auto isWithLast = [&](ExprRef atom) {
    return llvm::any_of(match.rootIndices, [&](ExprRef index) {
      return Expressions::dependsOn(index, atom) &&
             Expressions::dependsOn(index, shared.back());
    });
  };
  while (!match.batch.empty() && isWithLast(match.batch.back())) {
    match.keyHeads.insert(match.keyHeads.begin(), match.batch.back());
    match.batch.pop_back();
  }
  // One shared dimension is the batch.
  if (match.batch.empty())
    std::swap(match.batch, match.keyHeads);
}

/// Work to bring a level into the order batch, head, length, dimension: a
/// transposition, then a cast, then a reshape.
static unsigned costOf(ArrayRef<ExprRef> order, ArrayRef<ExprRef> wanted,
                       const Level &level, Type element) {
  unsigned cost = llvm::equal(order, wanted) ? 0 : 4;
  if (getElementTypeOrSelf(level.tensor.getType()) != element)
    cost += 2;
  if (level.indices.size() != 4)
    cost += 1;
  return cost;
}

/// The level that costs least; of equals the last, which the graph has first.
static const Level *cheapest(ArrayRef<Level> levels, ArrayRef<ExprRef> wanted,
                             Type element, Extents &extents) {
  const Level *best = nullptr;
  unsigned bestCost = 0;
  for (const Level &level : levels) {
    auto order = atomsOf(level, extents);
    if (!order || order->size() != wanted.size() ||
        !llvm::all_of(*order, [&](ExprRef atom) { return isIn(wanted, atom); }))
      continue;
    unsigned cost = costOf(*order, wanted, level, element);
    if (!best || cost <= bestCost) {
      best = &level;
      bestCost = cost;
    }
  }
  return best;
}

/// True if some level of an operand has its dimensions in an order that no
/// layout of attention has: the dimension `last` is neither last nor in front
/// of the length, which then is last.
static bool isPermuted(ArrayRef<Level> levels, ExprRef length, ExprRef last,
                       Extents &extents) {
  return llvm::any_of(levels, [&](const Level &level) {
    auto order = atomsOf(level, extents);
    if (!order || order->back() == last)
      return false;
    return order->back() != length || order->size() < 2 ||
           order->end()[-2] != last;
  });
}

/// The widest of the narrowest types of the operands and that of the result.
static FloatType elementOf(ArrayRef<ArrayRef<Level>> operands, Value root) {
  Type widest = getElementTypeOrSelf(root.getType());
  for (ArrayRef<Level> levels : operands) {
    Type narrowest = getElementTypeOrSelf(levels.back().tensor.getType());
    unsigned width = narrowest.getIntOrFloatBitWidth();
    if (width > widest.getIntOrFloatBitWidth())
      widest = narrowest;
    else if (width == widest.getIntOrFloatBitWidth() && narrowest != widest)
      widest = Float32Type::get(root.getContext()); // f16 and bf16
  }
  return dyn_cast<FloatType>(widest);
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
  Product factors = raise::product(factor);
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

std::optional<AttentionMatch>
Matcher::matchOperands(const SoftmaxMatch &softmax, ScoreMatch scores) {
  ExprRef depth = e.variable(scores.product->bound()[0]->extents[0]);
  Product parts = product(e.instantiate(scores.product, {depth}));
  ExprRef query = nullptr, key = nullptr, rest = e.real(parts.constant);
  for (ExprRef factor : parts.factors) {
    bool isTensor =
        factor->kind == Kind::Element && Expressions::dependsOn(factor, depth);
    bool isKey = Expressions::dependsOn(factor, softmax.key);
    ExprRef &side = isKey ? key : query;
    if (isTensor && !side)
      side = factor;
    else if (!isTensor && !hasVariables(factor))
      rest = e.mul(rest, factor);
    else
      return fail("the product of queries and keys holds " + describe(factor) +
                  " too");
  }
  for (ExprRef divisor : parts.divisors) {
    if (hasVariables(divisor))
      return fail("the product of queries and keys is divided inside its sum");
    rest = e.make<arith::DivFOp>(e.f32, {rest, divisor});
  }
  if (!query || !key)
    return fail("the product that makes the scores is not one of a tensor "
                "with keys and one without");
  if (Expressions::dependsOn(softmax.value, depth) ||
      !Expressions::dependsOn(softmax.value, softmax.key))
    return fail("the values do not vary with the keys");

  AttentionMatch match;
  match.root = root;
  match.column = softmax.key;
  match.headDim = depth;
  Value queryTensor = query->value, keyTensor = key->value;
  SmallVector<Level> queries = levelsOf(query, true),
                     keys = levelsOf(key, true),
                     values = levelsOf(softmax.value, false);

  // Positions that are read in parts become joins of their parts.
  match.rootIndices = rootIndices;
  match.score = scores.score;
  match.mask = scores.mask;
  for (int turn = 0; turn < 8; ++turn) {
    SmallVector<Level> all = queries;
    llvm::append_range(all, keys);
    llvm::append_range(all, values);
    ExprRef whole;
    SmallVector<Extent> sizes;
    std::tie(whole, sizes) = findSplit(all, {softmax.key, depth});
    if (!whole)
      break;
    SmallVector<ExprRef> fresh;
    for (Extent size : sizes)
      fresh.push_back(e.variable(size));
    ExprRef joined = e.join(fresh, sizes);
    auto refine = [&](ExprRef expr) {
      return e.substitute(expr, {whole}, {joined});
    };
    for (SmallVector<Level> *levels : {&queries, &keys, &values})
      for (Level &level : *levels)
        for (ExprRef &index : level.indices)
          index = refine(index);
    for (ExprRef &index : match.rootIndices)
      index = refine(index);
    match.score = refine(match.score);
    scores.product = refine(scores.product);
    if (match.mask)
      match.mask = refine(match.mask);
  }

  SmallVector<ExprRef> output;
  for (ExprRef index : match.rootIndices)
    llvm::append_range(output, *atoms(index));
  // Key and value agree on what they share; the fewer dimensions, the less of
  // them was repeated before.
  auto sharedOf = [&](const Level &level,
                      ExprRef last) -> std::optional<SmallVector<ExprRef>> {
    auto order = atomsOf(level, extents);
    if (!order)
      return std::nullopt;
    SmallVector<ExprRef> shared;
    for (ExprRef atom : output)
      if (isIn(*order, atom) && atom != last)
        shared.push_back(atom);
    unsigned others = isIn(*order, softmax.key) + (last && isIn(*order, last));
    if (shared.size() + others != order->size() || !isIn(*order, softmax.key))
      return std::nullopt;
    return shared;
  };
  // The dimension of values: of the output and in no other operand.
  auto firstQuery = atomsOf(queries.front(), extents);
  auto firstKey = atomsOf(keys.front(), extents);
  if (!firstQuery || !firstKey)
    return fail(Twine("the ") + (firstQuery ? "keys" : "queries") +
                " are not read along the dimensions of their tensor");
  for (ExprRef atom : output)
    if (Expressions::dependsOn(softmax.value, atom) &&
        !isIn(*firstQuery, atom) && !isIn(*firstKey, atom))
      match.valueDim = match.valueDim ? match.valueDim : atom;
  if (!match.valueDim)
    return fail("the values have no dimension of their own");
  std::optional<SmallVector<ExprRef>> shared;
  for (const Level &k : keys) {
    auto ofKey = sharedOf(k, depth);
    for (const Level &v : values) {
      auto ofValue = sharedOf(v, match.valueDim);
      if (ofKey && ofValue && *ofKey == *ofValue &&
          (!shared || ofKey->size() < shared->size()))
        shared = ofKey;
    }
  }
  if (!shared)
    return fail("keys and values differ in more than their last dimension");

  SmallVector<ExprRef> queryOnly;
  for (ExprRef atom : *firstQuery) {
    if (atom == depth || isIn(*shared, atom))
      continue;
    if (!isIn(output, atom))
      return fail("the queries have a dimension that the output has not");
    queryOnly.push_back(atom);
  }
  for (ExprRef atom : *shared)
    if (!isIn(*firstQuery, atom))
      return fail("the keys have a dimension that the queries have not");
  for (ExprRef atom : output)
    if (atom != match.valueDim && !isIn(*shared, atom) &&
        !isIn(queryOnly, atom))
      return fail("the output has a dimension that neither queries nor keys "
                  "have");
  // The order of the query, where that saves a transposition.
  SmallVector<ExprRef> ordered;
  for (ExprRef atom : *firstQuery)
    if (isIn(*shared, atom))
      ordered.push_back(atom);
  placeDimensions(match, queryOnly, ordered);

  ExprRef row = match.rows.empty() ? nullptr : match.rows.front();
  if (isPermuted(queries, row, depth, extents) ||
      isPermuted(keys, match.column, depth, extents) ||
      isPermuted(values, match.column, match.valueDim, extents))
    return fail("queries, keys or values are read in an order of dimensions "
                "that is no layout of theirs");

  match.element = elementOf({queries, keys, values}, root);
  auto order = [&](bool isQuery, ExprRef last) {
    SmallVector<ExprRef> result(match.batch);
    llvm::append_range(result, match.keyHeads);
    if (isQuery) {
      llvm::append_range(result, match.groups);
      llvm::append_range(result, match.rows);
    } else {
      result.push_back(match.column);
    }
    result.push_back(last);
    return result;
  };
  const Level *q =
      cheapest(queries, order(true, depth), match.element, extents);
  const Level *k = cheapest(keys, order(false, depth), match.element, extents);
  const Level *v =
      cheapest(values, order(false, match.valueDim), match.element, extents);
  if (!q || !k || !v)
    return fail(Twine("the ") +
                (!q   ? "queries"
                 : !k ? "keys"
                      : "values") +
                " are not read along the dimensions of their tensor");
  match.query = *q;
  match.key = *k;
  match.value = *v;
  matchScale(match, scores.product, e.mul(e.mul(rest, q->factor), k->factor));
  if (!std::isfinite(static_cast<float>(match.scale)))
    return fail("the scale is not finite");
  renamePositions(match);
  if (!checkUses(match, softmax, queryTensor, keyTensor))
    return std::nullopt;
  return match;
}
