//===- Match.cpp - attention found in a function -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"

#include "RegionBody.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::raise;
using Kind = Expr::Kind;

std::nullopt_t Matcher::fail(Twine text) {
  if (reason.empty())
    reason = text.str();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What else reads scores and weights
//===----------------------------------------------------------------------===//

/// The values that `op` uses, those of its regions included.
static SetVector<Value> usedBy(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  if (op->getNumRegions() > 0)
    getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

/// The operations in `block` that `root` depends on, itself included.
static SetVector<Operation *> backwardSlice(Operation *root) {
  SetVector<Operation *> slice;
  SmallVector<Operation *> worklist = {root};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!slice.insert(op))
      continue;
    for (Value value : usedBy(op))
      if (Operation *producer = value.getDefiningOp();
          producer && producer->getBlock() == root->getBlock())
        worklist.push_back(producer);
  }
  return slice;
}

/// The operations of `slice` that read both tensors, or, where none reads them
/// itself, the first that depend on both.
static SmallVector<Operation *>
findProducts(const SetVector<Operation *> &slice, Value query, Value key) {
  SmallVector<Operation *> products;
  for (Operation *op : slice) {
    SetVector<Value> used = usedBy(op);
    if (used.contains(query) && used.contains(key) &&
        (query != key || llvm::count(op->getOperands(), query) > 1))
      products.push_back(op);
  }
  if (!products.empty())
    return products;
  SmallVector<Operation *> ordered(slice.begin(), slice.end());
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::DenseMap<Operation *, unsigned> reads;
  for (Operation *op : ordered) {
    unsigned own = 0;
    bool isFirst = true;
    for (Value value : usedBy(op)) {
      unsigned theirs = value == query ? 1 : 0;
      theirs |= value == key ? 2 : 0;
      if (Operation *producer = value.getDefiningOp())
        theirs |= reads.lookup(producer);
      own |= theirs;
      isFirst &= theirs != 3;
    }
    reads[op] = own;
    if (own == 3 && isFirst)
      products.push_back(op);
  }
  return products;
}

/// lse = maximum + log(sum), if that is what `user` computes or what is made of
/// its result alone.
bool Matcher::replaceLse(AttentionMatch &match, const SoftmaxMatch &softmax,
                         Operation *user, SetVector<Operation *> &replaced) {
  SmallVector<Operation *> worklist = {user};
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    if (replaced.contains(next))
      continue;
    std::optional<bool> isLse = computesLse(match, softmax, next);
    if (!isLse || (!*isLse && next->use_empty()))
      return false;
    replaced.insert(next);
    if (!*isLse)
      worklist.append(next->user_begin(), next->user_end());
  }
  return true;
}

/// Whether `user` computes the lse, for which `match` then has it; nothing for
/// what has no place in it.
std::optional<bool> Matcher::computesLse(AttentionMatch &match,
                                         const SoftmaxMatch &softmax,
                                         Operation *user) {
  Value result = user->getNumResults() == 1 ? user->getResult(0) : Value();
  auto type = result ? dyn_cast<RankedTensorType>(result.getType())
                     : RankedTensorType();
  if (!type || user->getBlock() != root.getParentBlock())
    return std::nullopt;
  SmallVector<ExprRef> indices, atomsOfRows;
  bool keepsDimension = type.getRank() == int64_t(rootIndices.size());
  for (auto [index, whole] : llvm::zip_equal(rootIndices, match.rootIndices)) {
    bool isOfValues = whole == match.valueDim;
    if (isOfValues && !keepsDimension)
      continue;
    indices.push_back(isOfValues ? e.index(0) : index);
    atomsOfRows.push_back(isOfValues ? e.index(0) : whole);
    if (isOfValues && type.getDimSize(indices.size() - 1) != 1)
      return false;
  }
  if (type.getRank() != int64_t(indices.size()))
    return false;
  ExprRef lse = e.make<math::LogOp>(e.f32, {softmax.sum});
  if (softmax.maximum)
    lse = e.add(lse, softmax.maximum);
  // What stands in for the maximum of a row that sees no key changes nothing.
  auto withoutGuards = [&](ExprRef expr) {
    return e.rewrite(expr, [](ExprRef node) {
      ExprRef inner = guarded(node);
      bool isGuard = inner != node && inner->isReduction(Combiner::Max);
      return isGuard ? inner : nullptr;
    });
  };
  if (!softmax.hidesMore && type.getElementType().isF32() &&
      withoutGuards(reader.read(result, indices)) == withoutGuards(lse)) {
    if (match.lse)
      return std::nullopt;
    match.lse = result;
    match.lseIndices = atomsOfRows;
    return true;
  }
  return false;
}

/// Nothing else may read the scores or what is made of them, or they would be
/// computed twice; the log-sum-exp of the rows is a result of attention.
bool Matcher::checkUses(AttentionMatch &match, const SoftmaxMatch &softmax,
                        Value query, Value key) {
  Operation *rootOp = root.getDefiningOp();
  SetVector<Operation *> slice = backwardSlice(rootOp);
  SetVector<Operation *> replaced;
  SmallVector<Operation *> worklist = findProducts(slice, query, key);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!replaced.insert(op) || op == rootOp)
      continue;
    for (Operation *user : op->getUsers()) {
      while (user->getBlock() != rootOp->getBlock() && user->getParentOp())
        user = user->getParentOp();
      if (slice.contains(user)) {
        worklist.push_back(user);
        continue;
      }
      if (isa<tensor::DimOp>(user))
        continue;
      // What the weights are made of may be the lse itself.
      if ((match.lse && match.lse.getDefiningOp() == op) ||
          computesLse(match, softmax, op) == true)
        continue;
      if (!replaceLse(match, softmax, user, replaced)) {
        fail("scores or weights are also read by " +
             user->getName().getStringRef());
        return false;
      }
    }
  }
  if (!replaced.contains(rootOp)) {
    fail("the product of queries and keys is not an operation of this block");
    return false;
  }
  // What a region captures is computed before.
  bool capturesReplaced = false;
  for (ExprRef expr : {match.score, match.mask, match.sink}) {
    if (!expr)
      continue;
    capturesReplaced |= Expressions::contains(expr, [&](ExprRef node) {
      return node != match.x && node->value &&
             replaced.contains(node->value.getDefiningOp());
    });
  }
  if (capturesReplaced) {
    fail("a part of the scores is computed from the scores");
    return false;
  }
  match.replaced.assign(replaced.begin(), replaced.end());
  llvm::sort(match.replaced,
             [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  return true;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// What the operation wants of the types.
static std::string whyNoOperation(const AttentionMatch &match) {
  Type element = match.element;
  if (!element || !(element.isF16() || element.isBF16() || element.isF32()))
    return "the elements are neither f16, bf16 nor f32";
  for (const OperandLevel *level : {&match.query, &match.key, &match.value}) {
    auto type = cast<RankedTensorType>(level->tensor.getType());
    if (type.getEncoding())
      return "a tensor has an encoding";
  }
  for (ExprRef dim : {match.headDim, match.valueDim}) {
    if (!dim->isVariable() || !isKnown(dim->extents[0]))
      return "the head dimension is not known";
    if (dim->extents[0] > 256)
      return "the head dimension is " + std::to_string(dim->extents[0]) +
             ", wanted up to 256";
  }
  for (ArrayRef<ExprRef> dims : {ArrayRef(match.rows), ArrayRef(match.column)})
    for (ExprRef dim : dims)
      if (isKnown(dim->extents[0]) && dim->extents[0] > (1 << 30))
        return "a length is above 2^30";
  return "";
}

/// A constant whose exponential is next to nothing in f32.
static bool hasLowConstant(ExprRef score) {
  return Expressions::contains(score, [](ExprRef node) {
    return node->isConstant() && node->isFloat() && node->real < -80;
  });
}

static std::string listParts(const AttentionMatch &match) {
  std::string parts = "scale " + text(match.scale);
  if (match.score != match.x)
    parts += ", score";
  if (match.mask)
    parts += ", mask";
  if (match.sink)
    parts += ", sink";
  if (!match.groups.empty())
    parts += ", grouped heads";
  if (match.lse)
    parts += ", lse";
  for (auto [name, dim] :
       {std::pair("head", match.headDim), std::pair("value", match.valueDim)})
    if (dim->extents[0] % 8 != 0)
      parts += ", " + std::string(name) + " dimension " +
               std::to_string(dim->extents[0]) + " padded to a multiple of 8";
  return parts;
}

/// Whether arguments of the function have these sizes.
static bool isKnownBefore(Extents &extents, ArrayRef<Extent> sizes) {
  return llvm::all_of(sizes, [&](Extent size) {
    return isKnown(size) ||
           llvm::any_of(extents.placesOf(size), [](const auto &place) {
             return isa<BlockArgument>(place.tensor);
           });
  });
}

std::optional<AttentionMatch> Matcher::match(Value value, Miss &miss) {
  root = value;
  reason.clear();
  rootIndices = reader.makeIndices(root);
  miss.loc = root.getLoc();
  auto attempt = [&]() -> std::optional<AttentionMatch> {
    ExprRef output = reader.readOnce(root, rootIndices);
    if (!output)
      return std::nullopt;
    output = reader.expand(output);
    auto softmax = matchSoftmax(output);
    if (!softmax)
      return std::nullopt;
    // Several products make no difference to what is computed: one is that of
    // queries and keys, the others are biases.
    std::optional<AttentionMatch> found;
    bool keepsFiniteMask = false;
    for (ScoreMatch &scores : matchScores(*softmax)) {
      keepsFiniteMask = scores.keepsFiniteMask;
      if (captureReductions(scores))
        found = matchOperands(*softmax, scores);
      if (found)
        break;
    }
    if (!found)
      return std::nullopt;
    std::string problem = whyNoOperation(*found);
    if (!softmax->maximum && hasLowConstant(found->score))
      problem = "no maximum is subtracted, and a row of low constants has no "
                "weights then";
    for (ExprRef expr : {found->score, found->mask})
      if (expr && problem.empty())
        problem = whyNoRegion(expr, found->x, found->positions);
    for (ExprRef expr : {found->score, found->mask})
      if (expr && problem.empty() &&
          Expressions::contains(expr, [&](ExprRef n) {
            return needsTable(n) && !isKnownBefore(extents, n->extents);
          }))
        problem = "the scores depend on a part of a position of unknown size";
    if (!problem.empty())
      return fail(problem);
    found->found = listParts(*found);
    if (keepsFiniteMask)
      found->found += "; a finite mask is part of the score, as a row may see "
                      "no key";
    return found;
  };
  std::optional<AttentionMatch> result = attempt();
  miss.reason = reason;
  return result;
}
