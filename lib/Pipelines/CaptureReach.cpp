//===- CaptureReach.cpp - captures smaller than their use -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/CaptureReach.h"

#include "CornerTerms.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/ExpandVariants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::terms;

/// More than this makes launches slow: further indices are not checked there.
static constexpr size_t maxOperations = 4096;
/// Readers of manifests refuse expressions that nest deeper than 64.
static constexpr size_t maxDepth = 60;

namespace {

/// The positions b, h, i and j that a value is computed from: a bit for each.
using Uses = unsigned;
constexpr Uses lengthUses = 4 | 8;
constexpr unsigned numCorners = 16;

/// A region, and what is known of it at each corner.
class RegionCorners {
public:
  RegionCorners(Region &region, const CornerFacts &facts);

  const CornerTerms &at(unsigned corner);
  Uses usesOf(Value value) const { return uses.lookup(value); }
  Value yielded() { return cast<YieldOp>(block.getTerminator()).getValue(); }
  /// The number of a captured tensor.
  unsigned captureOf(Value buffer) const {
    return cast<BlockArgument>(buffer).getArgNumber() - firstCapture;
  }

private:
  Block &block;
  const CornerFacts &facts;
  unsigned firstCapture;
  llvm::DenseMap<Value, Uses> uses;
  std::array<std::optional<CornerTerms>, numCorners> corners;
};

/// An index of a load, or a leading one of a search.
struct Index {
  Operation *read;
  Value buffer;
  unsigned dim;
  Value value;
};

class ReachCheck {
public:
  ReachCheck(ScoredOp op, const CornerFacts &facts, Artifact &artifact)
      : op(op), facts(facts), artifact(artifact) {
    if (op.hasMask())
      mask.emplace(op.getMask(), facts);
  }

  LogicalResult run();

private:
  LogicalResult checkRegion(Region &region, RegionCorners &corners);
  LogicalResult checkIndex(Index index, RegionCorners &region);
  LogicalResult report(Index index, RegionCorners &region,
                       const LaunchExpr &isWrong, const LaunchExpr &reached,
                       const LaunchExpr &size);
  LaunchExpr isShown(unsigned corner, Uses index);

  ScoredOp op;
  const CornerFacts &facts;
  Artifact &artifact;
  std::optional<RegionCorners> mask;
  size_t operations = 0; // of all checks
};

} // namespace

RegionCorners::RegionCorners(Region &region, const CornerFacts &facts)
    : block(region.front()), facts(facts) {
  unsigned first = block.getArgument(0).getType().isF32();
  firstCapture = first + 4;
  for (unsigned i = 0; i < 4; ++i)
    uses[block.getArgument(first + i)] = 1u << i;
  for (Operation &op : block.without_terminator()) {
    Uses all = 0;
    for (Value operand : op.getOperands())
      all |= uses.lookup(operand);
    for (Value result : op.getResults())
      uses[result] = all;
  }
}

const CornerTerms &RegionCorners::at(unsigned corner) {
  if (!corners[corner])
    corners[corner].emplace(facts, corner, block);
  return *corners[corner];
}

/// Whether a corner can tell that the index is wrong. `others` are the
/// positions that the region and the mask ask for besides.
static bool isCandidate(unsigned corner, Value index, Uses uses, Uses others) {
  // A position itself is largest at its end.
  if (isa<BlockArgument>(index) && (corner & uses) != uses)
    return false;
  // Batch entries and heads that nothing asks for: the first will do.
  if ((corner & ~(uses | others | lengthUses)) != 0)
    return false;
  // Where only others ask for lengths, the first query and last key say nothing
  // more than the other three.
  return (uses & lengthUses) != 0 || (corner & lengthUses) != 8;
}

/// Whether the mask shows the corner. Where the index is of heads or batch
/// entries that the mask does not ask for, it shows all of them or none, and
/// none is an attention to nothing.
LaunchExpr ReachCheck::isShown(unsigned corner, Uses index) {
  if (!mask)
    return constant(1);
  Uses asked = mask->usesOf(mask->yielded());
  if ((index & lengthUses) == 0 && index != 0 && (index & asked) == 0)
    return constant(1);
  return mask->at(corner).condition(mask->yielded()).isTrue;
}

LogicalResult ReachCheck::report(Index index, RegionCorners &region,
                                 const LaunchExpr &isWrong,
                                 const LaunchExpr &reached,
                                 const LaunchExpr &size) {
  std::string name = facts.captureName(region.captureOf(index.buffer));
  if (valueOf(isWrong) == 1 && valueOf(size) && valueOf(reached))
    return index.read->emitOpError("reads index ")
           << *valueOf(reached) << " of dimension " << index.dim << " of '"
           << name << "', which has " << *valueOf(size) << " elements there";
  LaunchExpr isWrongHere = logicalAnd(isWrong, facts.hasPositions());
  LaunchCheck check;
  check.lhs = binary(
      LaunchExpr::Kind::Max, size,
      terms::select(isWrongHere, add(reached, constant(1)), constant(0)));
  check.rhs = size;
  check.message = "dimension " + std::to_string(index.dim) + " of '" + name +
                  "' is smaller than its indices reach";
  if (llvm::is_contained(artifact.checks, check))
    return success();
  operations += count(check.lhs);
  if (operations <= maxOperations && depth(check.lhs) <= maxDepth)
    artifact.checks.push_back(std::move(check));
  return success();
}

LogicalResult ReachCheck::checkIndex(Index index, RegionCorners &region) {
  std::optional<LaunchExpr> size =
      facts.captureSize(region.captureOf(index.buffer), index.dim);
  if (!size)
    return success();
  bool isMask = mask && &region == &*mask;
  Uses uses = region.usesOf(index.value);
  Uses others = region.usesOf(region.yielded());
  if (mask)
    others |= mask->usesOf(mask->yielded());
  for (unsigned corner = 0; corner < numCorners; ++corner) {
    if (!isCandidate(corner, index.value, uses, others))
      continue;
    const CornerTerms &terms = region.at(corner);
    IntegerTerm reached = terms.integer(index.value);
    LaunchExpr isWrong =
        logicalAnd(reached.isKnown, logicalNot(isLess(reached.value, *size)));
    isWrong = logicalAnd(isWrong, terms.matters(index.read->getResult(0)));
    if (!isMask)
      isWrong = logicalAnd(isWrong, isShown(corner, uses));
    if (valueOf(isWrong) != 0 && valueOf(facts.hasPositions()) != 0 &&
        failed(report(index, region, isWrong, reached.value, *size)))
      return failure();
  }
  return success();
}

LogicalResult ReachCheck::checkRegion(Region &region, RegionCorners &corners) {
  auto check = [&](auto read) -> LogicalResult {
    for (auto [dim, value] : llvm::enumerate(read.getIndices()))
      if (failed(checkIndex({read, read.getBuffer(), unsigned(dim), value},
                            corners)))
        return failure();
    return success();
  };
  // What a search looks for is no index: it may be anything.
  for (Operation &op : region.front().without_terminator())
    if (failed(llvm::TypeSwitch<Operation *, LogicalResult>(&op)
                   .Case<CaptureLoadOp, CaptureSearchOp>(check)
                   .Default(success())))
      return failure();
  return success();
}

LogicalResult ReachCheck::run() {
  if (op.hasScore()) {
    RegionCorners score(op.getScore(), facts);
    if (failed(checkRegion(op.getScore(), score)))
      return failure();
  }
  return mask ? checkRegion(op.getMask(), *mask) : success();
}

LogicalResult attn::checkCaptureReach(ScoredOp op, int64_t query, int64_t key,
                                      Artifact &artifact) {
  auto isRead = [](Operation *found) {
    return isa<CaptureLoadOp, CaptureSearchOp>(found) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
  };
  if (!op->walk(isRead).wasInterrupted())
    return success();
  // Variants hide positions too: in a copy they are regions.
  auto function = op->getParentOfType<func::FuncOp>();
  OwningOpRef<func::FuncOp> copy = cast<func::FuncOp>(function->clone());
  ScoredOp copied;
  copy->walk([&](ScoredOp found) { copied = found; });
  // Outside of passes nobody has loaded what they are written in.
  op->getContext()
      ->loadDialect<arith::ArithDialect, math::MathDialect,
                    tensor::TensorDialect>();
  IRRewriter rewriter(op->getContext());
  if (auto attention = dyn_cast<AttentionOp>(copied.getOperation()))
    copied = expandVariants(rewriter, attention);
  CornerFacts facts(copied, query, key, artifact);
  return ReachCheck(copied, facts, artifact).run();
}
