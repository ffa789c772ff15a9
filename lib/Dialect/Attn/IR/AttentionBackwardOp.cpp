//===- AttentionBackwardOp.cpp - gradients of attn.attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The numbers (C1), (C2), … are those of the operation's description.
//
//===----------------------------------------------------------------------===//

#include "ScoredVerify.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

std::optional<unsigned>
AttentionBackwardOp::getGradientNumber(unsigned capture) {
  ArrayRef<int64_t> listed = getGradCaptures().value_or(ArrayRef<int64_t>());
  const int64_t *found = llvm::find(listed, int64_t(capture));
  if (found == listed.end())
    return std::nullopt;
  return found - listed.begin();
}

RankedTensorType AttentionBackwardOp::getGradientType(Type capture) {
  if (auto tensor = dyn_cast<RankedTensorType>(capture))
    return tensor;
  return RankedTensorType::get({}, capture);
}

/// (C3) A sink has a gradient.
static LogicalResult verifySinkGradient(AttentionBackwardOp op) {
  Value sink = op.getSink(), gradient = op.getDSink();
  if (bool(sink) != bool(gradient))
    return op.emitOpError("wants a sink and d_sink together, got ")
           << (sink ? "no d_sink" : "no sink");
  if (sink && sink.getType() != gradient.getType())
    return op.emitOpError("wants d_sink of the type of sink, ")
           << sink.getType() << ", got " << gradient.getType();
  return success();
}

/// (C4) Captures with gradients, and these.
static LogicalResult verifyCaptureGradients(AttentionBackwardOp op) {
  ArrayRef<int64_t> listed = op.getGradCaptures().value_or(ArrayRef<int64_t>());
  int64_t numCaptures = op.getCaptures().size(), last = -1;
  for (int64_t number : listed) {
    if (number < 0 || number >= numCaptures)
      return op.emitOpError("wants grad_captures below the number of "
                            "captures, ")
             << numCaptures << ", got " << number;
    if (number <= last)
      return op.emitOpError("wants grad_captures in rising order, got ")
             << number << " after " << last;
    last = number;
    Type type = op.getCaptures()[number].getType();
    if (!isa<FloatType>(
            AttentionBackwardOp::getGradientType(type).getElementType()))
      return op.emitOpError("wants no gradient of capture #")
             << number << ", which is of integers: " << type;
  }
  if (op.getDCaptures().size() != listed.size())
    return op.emitOpError("wants one gradient for each of the ")
           << listed.size() << " captures of grad_captures, got "
           << op.getDCaptures().size();
  for (auto [number, gradient] : llvm::zip_equal(listed, op.getDCaptures())) {
    Type wanted = AttentionBackwardOp::getGradientType(
        op.getCaptures()[number].getType());
    if (gradient.getType() != wanted)
      return op.emitOpError("wants a gradient of capture #")
             << number << " of type " << wanted << ", got "
             << gradient.getType();
  }
  return success();
}

/// (C20) Sums in any order.
static LogicalResult verifyRecompute(AttentionBackwardOp op) {
  RecomputeAttr recompute = op.getRecomputeAttr();
  if (!recompute || recompute.getScores() != RecomputedScores::Once)
    return success();
  if (ScoredOp(op).getNumericsOrDefault().getDeterministic())
    return op.emitOpError("wants numerics with deterministic = false where "
                          "scores are recomputed once, got deterministic ones");
  if (ScoredOp(op).getNumericsOrDefault().getF32Products() == F32Products::IEEE)
    return op.emitOpError("wants f32_products = tf32x3 where scores are "
                          "recomputed once, got ieee");
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  SmallVector<NamedTensor> tensors = {
      NamedTensor::ofQuery("query", getQuery()),
      NamedTensor::ofKey("key", getKey()),
      NamedTensor::ofValue("value", getValue()),
      NamedTensor::ofOutput("output", getOutput()),
      NamedTensor::ofLse("lse", getLse()),
      NamedTensor::ofOutput("d_output", getDOutput())};
  if (getDLse())
    tensors.push_back(NamedTensor::ofLse("d_lse", getDLse()));
  tensors.push_back(NamedTensor::ofQuery("d_query", getDQuery()));
  tensors.push_back(NamedTensor::ofKey("d_key", getDKey()));
  tensors.push_back(NamedTensor::ofValue("d_value", getDValue()));
  return success(succeeded(verifyTensors(*this, tensors)) &&
                 succeeded(verifyOptions(*this)) &&
                 succeeded(verifySinkGradient(*this)) &&
                 succeeded(verifyCaptureGradients(*this)) &&
                 succeeded(verifyRecompute(*this)));
}

LogicalResult AttentionBackwardOp::verifyRegions() {
  // (C5) What goes back.
  Builder b(getContext());
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  return success(succeeded(verifyScoreAndMask(*this)) &&
                 succeeded(verifyRegion(*this, "pullback", getPullback(),
                                        {f32, f32, i32, i32, i32, i32}, f32)));
}

LogicalResult CaptureAddOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getCapture().getType());
  int64_t wanted = tensor ? tensor.getRank() : 0;
  if (static_cast<int64_t>(getIndices().size()) == wanted)
    return success();
  return emitOpError("adds to ")
         << getCapture().getType() << " and wants " << wanted
         << " indices, got " << getIndices().size();
}
