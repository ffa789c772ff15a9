//===- RingItem.h - item numbers as base plus constant --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_RINGITEM_H
#define ATTN_DIALECT_WARP_IR_RINGITEM_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"

namespace attn::warp {

/// An item number of a ring, read as base + offset. A constant has no base.
/// Two items are known to be the same, or a known distance apart, only if they
/// have the same base.
struct RingItem {
  Value base;
  int64_t offset = 0;

  /// Looks through additions and subtractions of constants.
  static RingItem of(Value number);

  bool operator==(const RingItem &other) const {
    return base == other.base && offset == other.offset;
  }
};

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_RINGITEM_H
