//===- AttentionVerify.cpp - constraints of attn.attention -*- C++ -*-===//
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

using namespace mlir;
using namespace attn;

/// (C12) The named variants that exist.
static LogicalResult verifyVariants(AttentionOp op) {
  ArrayAttr variants = op.getVariantsAttr();
  if (!variants)
    return success();
  for (Attribute variant : variants)
    if (!isa<CausalAttr, WindowAttr, SoftcapAttr, AlibiAttr>(variant))
      return op.emitOpError("wants variants among #attn.causal, #attn.window, "
                            "#attn.softcap and #attn.alibi, got ")
             << variant;
  return success();
}

LogicalResult AttentionOp::verify() {
  NamedTensor tensors[] = {NamedTensor::ofQuery("query", getQuery()),
                           NamedTensor::ofKey("key", getKey()),
                           NamedTensor::ofValue("value", getValue()),
                           NamedTensor::ofOutput("output", getOutput()),
                           NamedTensor::ofLse("lse", getLse())};
  return success(succeeded(verifyTensors(*this, tensors)) &&
                 succeeded(verifyVariants(*this)) &&
                 succeeded(verifyOptions(*this)));
}

LogicalResult AttentionOp::verifyRegions() { return verifyScoreAndMask(*this); }
