//===- Parts.cpp - key blocks of a warpgroup --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"

#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

static void lowerPartRow(RewriterBase &rewriter, PartRowOp part) {
  Location loc = part.getLoc();
  Integers ints(rewriter, loc);
  bool isGroup = bool(part->getParentOfType<RoleOp>());
  Value row =
      isGroup ? ints.mul(ints.warpgroup(), part.getRows()) : ints.constant(0);
  rewriter.replaceOp(part, ints.toIndex(row));
}

static void lowerNarrow(RewriterBase &rewriter, NarrowOp narrow) {
  auto role = narrow->getParentOfType<RoleOp>();
  if (!role || role.isCopy()) {
    rewriter.replaceOp(narrow, {narrow.getLo(), narrow.getHi()});
    return;
  }
  Location loc = narrow.getLoc();
  Value lo = narrow.getLo(), hi = narrow.getHi();
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  auto min = [&](Value a, Value b) {
    return rewriter.createOrFold<arith::MinSIOp>(loc, a, b);
  };
  auto max = [&](Value a, Value b) {
    return rewriter.createOrFold<arith::MaxSIOp>(loc, a, b);
  };
  Value first = lo;
  if (narrow.getOwnLo() != lo) {
    Value last = max(arith::SubIOp::create(rewriter, loc, hi, one), lo);
    first = min(max(narrow.getOwnLo(), lo), last);
  }
  Value end = hi;
  if (narrow.getOwnHi() != hi) {
    Value second = rewriter.createOrFold<arith::AddIOp>(loc, first, one);
    end = min(max(narrow.getOwnHi(), second), hi);
  }
  rewriter.replaceOp(narrow, {first, end});
}

void attn::warp::lowerParts(RewriterBase &rewriter, gpu::GPUFuncOp function) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<PartRowOp, NarrowOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    if (auto part = dyn_cast<PartRowOp>(op))
      lowerPartRow(rewriter, part);
    else
      lowerNarrow(rewriter, cast<NarrowOp>(op));
  }
}
