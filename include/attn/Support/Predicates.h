//===- Predicates.h - predicates of comparisons --------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_PREDICATES_H
#define ATTN_SUPPORT_PREDICATES_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn {

/// The predicate with which `b` compares to `a` as `a` does to `b`; those of
/// numbers without sign stay as they are.
inline arith::CmpIPredicate swapSides(arith::CmpIPredicate predicate) {
  using arith::CmpIPredicate;
  switch (predicate) {
  case CmpIPredicate::slt:
    return CmpIPredicate::sgt;
  case CmpIPredicate::sle:
    return CmpIPredicate::sge;
  case CmpIPredicate::sgt:
    return CmpIPredicate::slt;
  case CmpIPredicate::sge:
    return CmpIPredicate::sle;
  default:
    return predicate;
  }
}

} // namespace attn

#endif // ATTN_SUPPORT_PREDICATES_H
