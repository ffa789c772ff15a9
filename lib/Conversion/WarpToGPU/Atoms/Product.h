//===- Product.h - a product on its way to instructions ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_PRODUCT_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_PRODUCT_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// `warp.mma` or `warp.mma_async`, with what one lane has of its operands: the
/// registers of fragments, the addresses of slots.
struct Product {
  ProductOp op;
  ValueRange a;
  Value b;
  ValueRange acc;
  /// Every element of the accumulator is the constant zero.
  bool startsAtZero = false;

  SlotType rightType() { return op.getB().getType(); }
  FragType accType() { return op.getAcc().getType(); }
  /// The slot of the left operand; null for registers.
  SlotType leftSlot() { return llvm::dyn_cast<SlotType>(op.getA().getType()); }
};

/// The emitter of an atom: gives the registers of the result.
using ProductEmitter = SmallVector<Value>(OpBuilder &builder, Product product);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_PRODUCT_H
