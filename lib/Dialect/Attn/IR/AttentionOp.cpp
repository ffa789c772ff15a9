//===- AttentionOp.cpp - attn.attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"

void AttentionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOutput(), "o");
  setName(getLse(), "lse");
}
ParseResult AttentionOp::parse(OpAsmParser &, OperationState &) { return failure(); }
void AttentionOp::print(OpAsmPrinter &) {}
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult AttentionOp::verifyRegions() { return success(); }
LogicalResult CaptureLoadOp::verify() { return success(); }
