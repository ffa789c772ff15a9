//===- RingItem.cpp - item numbers as base plus constant ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/RingItem.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace attn::warp;

RingItem RingItem::of(Value number) {
  RingItem item = {number, 0};
  // Verifiers see operations that use their own results, too.
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (item.base) {
    APInt constant;
    if (matchPattern(item.base, m_ConstantInt(&constant)))
      return {Value(), item.offset + constant.getSExtValue()};
    Operation *op = item.base.getDefiningOp();
    if (op && !seen.insert(op).second)
      return item;
    if (auto add = dyn_cast_or_null<arith::AddIOp>(op)) {
      if (matchPattern(add.getRhs(), m_ConstantInt(&constant)))
        item = {add.getLhs(), item.offset + constant.getSExtValue()};
      else if (matchPattern(add.getLhs(), m_ConstantInt(&constant)))
        item = {add.getRhs(), item.offset + constant.getSExtValue()};
      else
        return item;
      continue;
    }
    auto sub = dyn_cast_or_null<arith::SubIOp>(op);
    if (!sub || !matchPattern(sub.getRhs(), m_ConstantInt(&constant)))
      return item;
    item = {sub.getLhs(), item.offset - constant.getSExtValue()};
  }
  return item;
}
