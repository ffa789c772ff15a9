//===- AttentionJvpOp.cpp - tangents of attn.attention -*- C++ -*-===//
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

LogicalResult AttentionJvpOp::verify() {
  // (C2) What moves, and what of it comes out.
  NamedTensor tensors[] = {NamedTensor::ofQuery("query", getQuery()),
                           NamedTensor::ofKey("key", getKey()),
                           NamedTensor::ofValue("value", getValue()),
                           NamedTensor::ofQuery("t_query", getTQuery()),
                           NamedTensor::ofKey("t_key", getTKey()),
                           NamedTensor::ofValue("t_value", getTValue()),
                           NamedTensor::ofOutput("output", getOutput()),
                           NamedTensor::ofLse("lse", getLse()),
                           NamedTensor::ofOutput("t_output", getTOutput()),
                           NamedTensor::ofLse("t_lse", getTLse())};
  return success(succeeded(verifyTensors(*this, tensors)) &&
                 succeeded(verifyOptions(*this)));
}

LogicalResult AttentionJvpOp::verifyRegions() {
  // (C3) How a change of the score goes on.
  Builder b(getContext());
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  return success(succeeded(verifyScoreAndMask(*this)) &&
                 succeeded(verifyRegion(*this, "pushforward", getPushforward(),
                                        {f32, f32, i32, i32, i32, i32}, f32)));
}
