//===- AttnToTile.cpp - attn to tile --------------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile.h"

#include "CaptureSums.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Recompute.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILE
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// True for a dimension of an argument and for pure code on scalars.
static bool isScalarCode(Operation &op) {
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return isa<BlockArgument>(dim.getSource());
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
         llvm::all_of(op.getOperandTypes(), isScalar) &&
         llvm::all_of(op.getResultTypes(), isScalar);
}

/// A dimension that the tensor has. MLIR leaves open what any other is.
static LogicalResult checkDim(tensor::DimOp dim) {
  auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
  if (!type)
    return dim.emitOpError("expected a tensor of known rank, got ")
           << dim.getSource().getType();
  std::optional<int64_t> number = dim.getConstantIndex();
  if (number && *number >= 0 && *number < type.getRank())
    return success();
  InFlightDiagnostic error = dim.emitOpError("expected the number of one of ")
                             << type.getRank() << " dimensions, got ";
  if (number)
    return error << *number;
  return error << "a number that is no constant";
}

bool attn::hasAttention(func::FuncOp func) {
  return func.walk([](ScoredOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Of an attn.attention_backward: its pullback, what that adds to captures, and
/// what is computed again.
static LogicalResult checkBackward(AttentionBackwardOp op) {
  if (op.hasPullback() &&
      (failed(checkRegion(op.getPullback())) || failed(matchCaptureSums(op))))
    return failure();
  RecomputeAttr recompute = op.getRecomputeAttr();
  if (!recompute || recompute.getScores() == RecomputedScores::Auto ||
      recompute.getLse() == RecomputedLse::Auto)
    return op.emitOpError("leaves open what it recomputes: run attn-recompute "
                          "first");
  return checkRecompute(op);
}

FailureOr<KernelMatch> attn::matchKernels(func::FuncOp func) {
  KernelMatch match{func, nullptr, {}};
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("has ")
           << func.getBody().getBlocks().size()
           << " blocks, expected one: a kernel is one attn.attention with "
              "scalar code";
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (auto attention = dyn_cast<ScoredOp>(op)) {
      if (match.attention) {
        InFlightDiagnostic diag = attention->emitOpError(
            "is the second attention of its function, expected one");
        diag.attachNote(match.attention.getLoc()) << "first attention is here";
        return diag;
      }
      match.attention = attention;
      continue;
    }
    if (!isScalarCode(op))
      return op.emitOpError("cannot be part of a kernel, expected "
                            "attn.attention, tensor.dim of an argument or "
                            "scalar code");
    if (auto dim = dyn_cast<tensor::DimOp>(op); dim && failed(checkDim(dim)))
      return failure();
    match.scalarOps.push_back(&op);
  }
  ScoredOp attention = match.attention;
  if (!attention)
    return func.emitOpError("holds its attention inside another operation, "
                            "expected it at the top level");
  ArrayAttr variants = attention.getVariantsAttr();
  if (variants && !variants.empty())
    return attention->emitOpError("has variants, expected regions only: run "
                                  "attn-expand-variants first");
  if (!attention.getPlanAttr())
    return attention->emitOpError("has no plan: run attn-plan first");
  for (auto [number, operand] : llvm::enumerate(attention->getOperands()))
    if (isa<RankedTensorType>(operand.getType()) &&
        !isa<BlockArgument>(operand))
      return attention->emitOpError("operand #")
             << number << " is not an argument of the function";
  for (auto [number, value] :
       llvm::enumerate(func.getBody().front().getTerminator()->getOperands()))
    if (value.getDefiningOp() != attention)
      return func.emitOpError("result #")
             << number << " is not a result of the attention";
  for (auto [number, type] : llvm::enumerate(func.getArgumentTypes()))
    if (!isa<RankedTensorType>(type) && !type.isIntOrIndexOrFloat())
      return func.emitOpError("argument #")
             << number << " has type " << type
             << ", expected a ranked tensor or a scalar";
  for (Region *region : {&attention.getScore(), &attention.getMask()})
    if (!region->empty() && failed(checkRegion(*region)))
      return failure();
  auto backward = dyn_cast<AttentionBackwardOp>(attention.getOperation());
  auto jvp = dyn_cast<AttentionJvpOp>(attention.getOperation());
  if ((backward && failed(checkBackward(backward))) ||
      (jvp && jvp.hasPushforward() &&
       failed(checkRegion(jvp.getPushforward()))) ||
      failed(checkRegionCost(attention)))
    return failure();
  return match;
}

static func::FuncOp buildKernels(OpBuilder &b, KernelMatch match) {
  Operation *op = match.attention;
  if (isa<AttentionBackwardOp>(op))
    return buildBackward(b, match);
  return isa<AttentionJvpOp>(op) ? buildJvp(b, match) : buildForward(b, match);
}

namespace {
struct ConvertAttnToTile final
    : attn::impl::ConvertAttnToTileBase<ConvertAttnToTile> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<KernelMatch> matches;
    bool valid = true;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!hasAttention(func))
        continue;
      FailureOr<KernelMatch> match = matchKernels(func);
      if (succeeded(match) &&
          !SymbolTable::symbolKnownUseEmpty(func, getOperation())) {
        func.emitOpError("is called, but becomes a kernel with another type");
        match = FailureOr<KernelMatch>();
      }
      if (succeeded(match))
        matches.push_back(*match);
      else
        valid = false;
    }
    if (!valid)
      return signalPassFailure();

    OpBuilder builder(&getContext());
    for (KernelMatch &match : matches) {
      func::FuncOp kernel = buildKernels(builder, match);
      IRRewriter rewriter(builder);
      tile::shareScalarCode(rewriter, kernel);
      match.func->erase();
    }
  }
};
} // namespace
