//===- Levels.cpp - an operand, and what it was made from -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Levels.h"

#include "Positions.h"

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

bool attn::raise::hasVariables(ExprRef expr) {
  return Expressions::contains(expr,
                               [](ExprRef node) { return node->isVariable(); });
}

static unsigned widthOf(Value tensor) {
  return getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth();
}

SmallVector<OperandLevel> attn::raise::levelsOf(Expressions &e, Reader &reader,
                                                ExprRef element,
                                                bool takesFactors) {
  SmallVector<OperandLevel> levels;
  ExprRef factor = e.real(1);
  while (true) {
    levels.push_back({element->value,
                      SmallVector<ExprRef>(element->operands.begin(),
                                           element->operands.end()),
                      factor});
    ExprRef next = reader.readOnce(element->value, element->operands);
    if (!next)
      return levels;
    FactorList parts = product(next);
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

std::optional<SmallVector<ExprRef>>
attn::raise::atomsOf(const OperandLevel &level, Extents &extents) {
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

/// The part of a join that a boundary between the parts of `split` goes
/// through, and its sizes on both sides; null if there is none.
static std::pair<ExprRef, SmallVector<Extent>> findBoundary(ExprRef split) {
  ExprRef joined = split->operands[0];
  unsigned next = joined->operands.size();
  for (Extent wanted : llvm::reverse(split->extents)) {
    while (wanted != 1) {
      if (next == 0)
        return {};
      Extent size = joined->extents[--next];
      if (!isKnown(size) || !isKnown(wanted) || size < 1 || wanted < 1)
        return {};
      if (size > wanted)
        return size % wanted == 0
                   ? std::pair(joined->operands[next],
                               SmallVector<Extent>{size / wanted, wanted})
                   : std::pair(ExprRef(), SmallVector<Extent>());
      if (wanted % size != 0)
        return {};
      wanted /= size;
    }
  }
  return {};
}

std::pair<ExprRef, SmallVector<Extent>>
attn::raise::findSplit(ArrayRef<OperandLevel> levels, ArrayRef<ExprRef> fixed,
                       bool throughJoins) {
  std::pair<ExprRef, SmallVector<Extent>> found;
  for (const OperandLevel &level : levels)
    for (ExprRef index : level.indices)
      Expressions::walk(index, [&](ExprRef node) {
        if (found.first || node->kind != Kind::Split)
          return !found.first;
        std::pair<ExprRef, SmallVector<Extent>> here = {
            node->operands[0], llvm::to_vector<6>(node->extents)};
        if (throughJoins && here.first->kind == Kind::Join)
          here = findBoundary(node);
        if (here.first && here.first->isVariable() &&
            !llvm::is_contained(fixed, here.first))
          found = here;
        return !found.first;
      });
  return found;
}

/// Work to bring a level into the order batch, head, length, dimension: a
/// transposition, then a cast, then a reshape.
static unsigned costOf(ArrayRef<ExprRef> order, ArrayRef<ExprRef> wanted,
                       const OperandLevel &level, Type element) {
  unsigned cost = llvm::equal(order, wanted) ? 0 : 4;
  if (getElementTypeOrSelf(level.tensor.getType()) != element)
    cost += 2;
  if (level.indices.size() != 4)
    cost += 1;
  return cost;
}

const OperandLevel *attn::raise::cheapest(ArrayRef<OperandLevel> levels,
                                          ArrayRef<ExprRef> wanted,
                                          Type element, Extents &extents) {
  const OperandLevel *best = nullptr;
  unsigned bestCost = 0;
  for (const OperandLevel &level : levels) {
    auto order = atomsOf(level, extents);
    if (!order || order->size() != wanted.size() ||
        !llvm::all_of(*order, [&](ExprRef atom) {
          return llvm::is_contained(wanted, atom);
        }))
      continue;
    unsigned cost = costOf(*order, wanted, level, element);
    if (!best || cost <= bestCost) {
      best = &level;
      bestCost = cost;
    }
  }
  return best;
}

bool attn::raise::isPermuted(ArrayRef<OperandLevel> levels,
                             ArrayRef<ExprRef> lengths, ExprRef last,
                             Extents &extents) {
  return llvm::any_of(levels, [&](const OperandLevel &level) {
    auto order = atomsOf(level, extents);
    return order && order->back() != last &&
           !llvm::is_contained(lengths, order->back());
  });
}

FloatType attn::raise::elementOf(ArrayRef<ArrayRef<OperandLevel>> operands,
                                 Value root) {
  Type widest = getElementTypeOrSelf(root.getType());
  for (ArrayRef<OperandLevel> levels : operands) {
    Type narrowest = getElementTypeOrSelf(levels.back().tensor.getType());
    unsigned width = narrowest.getIntOrFloatBitWidth();
    if (width > widest.getIntOrFloatBitWidth())
      widest = narrowest;
    else if (width == widest.getIntOrFloatBitWidth() && narrowest != widest)
      widest = Float32Type::get(root.getContext()); // f16 and bf16
  }
  return dyn_cast<FloatType>(widest);
}
