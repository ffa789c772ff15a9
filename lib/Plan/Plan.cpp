//===- Plan.cpp - plans of an attention operation -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include "MaskSample.h"
#include "MaskShape.h"
#include "attn/Dialect/Attn/IR/ArgumentAttributes.h"
#include "attn/Dialect/Attn/IR/BlockGrain.h"
#include "attn/Dialect/Attn/IR/KeySlope.h"
#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace attn;

/// Whether `score` reads a capture by what depends on the number of a query or
/// a key.
static bool readsByPosition(Region &score) {
  constexpr unsigned queryNumber = 3; // of x, b, h, i, j
  SetVector<Operation *> dependent;
  for (BlockArgument number : score.getArguments().slice(queryNumber, 2))
    getForwardSlice(number, &dependent);
  return llvm::any_of(dependent, llvm::IsaPred<CaptureLoadOp>);
}

/// Whether all that `score` reads by position is a number or two, of the query
/// or of the key, in rows.
static bool readsRows(Region &score) {
  constexpr unsigned queryNumber = 3; // of x, b, h, i, j
  SetVector<Operation *> dependent;
  ValueRange positions = score.getArguments().slice(queryNumber, 2);
  for (Value number : positions)
    getForwardSlice(number, &dependent);
  constexpr int64_t mostNumbers = 2;
  int64_t count = 0;
  for (Operation *op : dependent) {
    auto load = dyn_cast<CaptureLoadOp>(op);
    if (!load)
      continue;
    ValueRange indices = load.getIndices();
    auto depends = [&](Value index) {
      return llvm::is_contained(positions, index) ||
             dependent.contains(index.getDefiningOp());
    };
    if (!llvm::is_contained(positions, indices.back()) ||
        llvm::any_of(indices.drop_back(), depends))
      return false;
    ++count;
  }
  return count > 0 && count <= mostNumbers;
}

/// Whether all that the score reads by position is 16-bit floats at […, i, j]
/// of arguments that boxes may be copied of.
static bool readsPairs(ScoredOp op) {
  constexpr unsigned query = 3, key = 4;
  Region &score = op.getScore();
  Value i = score.getArgument(query), j = score.getArgument(key);
  auto isAligned = [&](Value buffer) {
    auto argument = dyn_cast<BlockArgument>(buffer);
    return argument &&
           isAlignedArgument(op.getCaptures()[argument.getArgNumber() -
                                              ScoredOp::kScoreArguments]);
  };
  bool has = false;
  WalkResult walk = score.walk([&](CaptureLoadOp load) {
    auto depends = [&](Value index) {
      if (index == i || index == j)
        return true;
      SetVector<Operation *> slice;
      (void)getBackwardSlice(index, &slice);
      return llvm::any_of(slice, [&](Operation *op) {
        return llvm::is_contained(op->getOperands(), i) ||
               llvm::is_contained(op->getOperands(), j);
      });
    };
    ValueRange indices = load.getIndices();
    if (llvm::none_of(indices, depends))
      return WalkResult::advance();
    size_t rank = indices.size();
    // A tensor map has as many dimensions.
    constexpr size_t mostDimensions = 4;
    bool isPair = rank >= 2 && rank <= mostDimensions &&
                  indices[rank - 1] == j && indices[rank - 2] == i &&
                  llvm::none_of(indices.drop_back(2), depends) &&
                  isa<Float16Type, BFloat16Type>(load.getType()) &&
                  isAligned(load.getBuffer());
    has |= isPair;
    return isPair ? WalkResult::advance() : WalkResult::interrupt();
  });
  return has && !walk.wasInterrupted();
}

plan::Workload plan::getWorkload(ScoredOp op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  Workload workload;
  workload.headDim = op.getHeadDim();
  workload.valueHeadDim = op.getValueHeadDim();
  workload.elementBytes = query.getElementTypeBitWidth() / 8;
  workload.hasScore = op.hasScore();
  workload.isSoftcap = isSoftcap(op.getScore());
  workload.hasMask = op.hasMask();
  workload.isHalf = op.hasMask() && isHalf(op.getMask());
  workload.isScattered = op.hasMask() && isScattered(op.getMask());
  workload.comparesFew = workload.isScattered && comparesFew(op.getMask());
  if (workload.isScattered)
    if (BlockGrain grain = findBlockGrain(op.getMask()); grain.isCoarse())
      workload.queryGrain = grain.queries, workload.keyGrain = grain.keys;
  workload.periods = op.hasMask() ? countPeriods(op.getMask()) : 0;
  bool isSorted =
      op.hasMask() &&
      (!op.getSortedCaptures().value_or(ArrayRef<int64_t>()).empty() ||
       !op.getMask().front().getOps<CaptureSearchOp>().empty());
  workload.isOfDocuments = isSorted && isOfDocuments(op.getMask());
  workload.nearKeys = op.hasMask() ? countNearKeys(op.getMask()) : 0;
  workload.seenKeys = op.hasMask() ? countSeenKeys(op.getMask()) : 0;
  // Scalars are lengths, which a causal mask captures as well.
  workload.hasCaptures = llvm::any_of(op.getCaptures().getTypes(),
                                      llvm::IsaPred<RankedTensorType>);
  workload.readsByPosition = op.hasScore() && readsByPosition(op.getScore());
  workload.readsRows = op.hasScore() && readsRows(op.getScore());
  workload.readsPairs = op.hasScore() && readsPairs(op);
  workload.hasDropout = op.getDropoutP().has_value();
  workload.hasIeeeProducts =
      op.getNumericsOrDefault().getF32Products() == F32Products::IEEE;
  if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation())) {
    workload.isBackward = true;
    // Numbers of queries or keys are added up beside the products.
    workload.hasPullback = backward.changesGradient() ||
                           (backward.hasPullback() && workload.readsByPosition);
    workload.inAnyOrder = !op.getNumericsOrDefault().getDeterministic();
  }
  workload.isJvp = isa<AttentionJvpOp>(op.getOperation());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  if (!query.isDynamicDim(ScoredOp::kHead) &&
      !key.isDynamicDim(ScoredOp::kHead))
    workload.headsPerKeyHead =
        query.getDimSize(ScoredOp::kHead) /
        std::max<int64_t>(key.getDimSize(ScoredOp::kHead), 1);
  std::optional<KeyInterval> shown = readKeyInterval(op.getMask());
  bool hasFirst = shown && !shown->lower.empty(),
       hasLast = shown && !shown->upper.empty();
  // Before attn-expand-variants the same is said by name.
  if (ArrayAttr variants = op.getVariantsAttr()) {
    bool isCausal = llvm::any_of(variants, llvm::IsaPred<CausalAttr>);
    for (Attribute variant : variants) {
      bool isMask = isa<CausalAttr, WindowAttr>(variant);
      if (isMask)
        workload.isHalf = isa<CausalAttr>(variant) && !workload.hasMask;
      else
        workload.isSoftcap = isa<SoftcapAttr>(variant) && !workload.hasScore;
      (isMask ? workload.hasMask : workload.hasScore) = true;
      auto window = dyn_cast<WindowAttr>(variant);
      if (window && window.getLeft() >= 0)
        workload.nearKeys = window.getLeft() + 1;
      hasFirst |= window && window.getLeft() >= 0;
      hasLast |= isa<CausalAttr>(variant) || (window && window.getRight() >= 0);
      if (window && window.getLeft() >= 0 && window.getRight() >= 0)
        workload.seenKeys = window.getLeft() + window.getRight() + 1;
      if (window && window.getLeft() >= 0 && isCausal)
        workload.seenKeys = window.getLeft() + 1;
    }
  }
  workload.isWindow = shown && hasFirst && hasLast;
  constexpr unsigned lengthDim = 2; // of batch, heads, length, dim
  if (!query.isDynamicDim(lengthDim))
    workload.queries = query.getDimSize(lengthDim);
  // Of an H100 or H200: which GPU it will be is not known.
  constexpr int64_t multiprocessors = 132;
  auto outer = query.getShape().take_front(lengthDim + 1);
  if (!ShapedType::isDynamicShape(outer))
    workload.rows =
        llvm::divideCeil(ShapedType::getNumElements(outer), multiprocessors);
  return workload;
}

plan::Workload plan::getWorkload(ScoredOp op, TargetKind target) {
  Workload workload = getWorkload(op);
  if (op.hasMask() && !op.getVariantsAttr() &&
      asksForVisits(workload, getTarget(target)))
    workload.visits = sampleMask(op.getMask());
  return workload;
}

plan::Tiles plan::getTiles(PlanAttr plan) {
  return {plan.getBlockQ(),       plan.getBlockK(),
          plan.getWarps(),        plan.getStages(),
          plan.getQInRegisters(), plan.getConsumerRegisters(),
          plan.getBlocksPerSm(),  plan.getScheduler() == SchedulerKind::Grid,
          plan.getSplitKeys(),    plan.getPackedHeads()};
}

const TargetInfo &plan::getTarget(TargetKind target) {
  const TargetInfo *info = findTarget(stringifyTargetKind(target));
  assert(info && "every TargetKind has a row in TargetInfo.cpp");
  return *info;
}

LogicalResult plan::verify(ScoredOp op, PlanAttr plan) {
  std::string obstacle = findObstacle(getWorkload(op), getTiles(plan),
                                      getTarget(plan.getTarget()));
  bool isResident = plan.getScheduler() == SchedulerKind::Static ||
                    plan.getScheduler() == SchedulerKind::Dynamic;
  if (obstacle.empty() && isResident &&
      !getTarget(plan.getTarget()).hasWarpgroups)
    obstacle =
        ("scheduler is " + stringifySchedulerKind(plan.getScheduler()) +
         ", expected auto or grid on " + stringifyTargetKind(plan.getTarget()))
            .str();
  RecomputedScores scores = plan.getScores();
  if (obstacle.empty() && scores != RecomputedScores::Auto &&
      !isa<AttentionBackwardOp>(op.getOperation()))
    obstacle = ("scores is " + stringifyRecomputedScores(scores) +
                ", expected auto of what is no gradients")
                   .str();
  if (obstacle.empty())
    return success();
  return op->emitOpError("plan is not feasible: ") << obstacle;
}

LogicalResult plan::editPasses(PassSelection &passes, TargetKind target,
                               const PassRequest &request, Location loc) {
  for (bool run : {false, true})
    for (StringRef name : run ? request.enabled : request.disabled) {
      std::string fault = findPassFault(name, stringifyTargetKind(target));
      if (!fault.empty())
        return emitError(loc) << fault;
      passes.setUse(findOptionalPass(name)->pass,
                    run ? PassUse::On : PassUse::Off);
    }
  return success();
}

FailureOr<PlanAttr> plan::parsePlan(StringRef text, MLIRContext *context,
                                    std::string &message) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  auto plan = dyn_cast_or_null<PlanAttr>(parseAttribute(text, context));
  if (!plan)
    return failure();
  return plan;
}

FailureOr<PlanAttr> plan::parsePlan(StringRef text, Location loc) {
  // The parser's own complaints go into one diagnostic at `loc`.
  std::string message;
  FailureOr<PlanAttr> plan = parsePlan(text, loc.getContext(), message);
  if (succeeded(plan))
    return plan;
  InFlightDiagnostic diagnostic = emitError(loc) << "got plan '" << text
                                                 << "', expected #attn.plan<…>";
  if (!message.empty())
    diagnostic << ": " << message;
  return failure();
}
