//===- OwnAttributes.h - misspelt attributes are refused --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_OWNATTRIBUTES_H
#define ATTN_SUPPORT_OWNATTRIBUTES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/OpDefinition.h"

namespace attn {

/// Refuses attributes that `op` does not define and that have no dialect's
/// prefix: each is misspelt. Names the one that is spelt most alike, else all.
inline LogicalResult verifyOwnAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName().getValue(), nearest;
    if (name.contains('.'))
      continue;
    SmallVector<StringRef> known;
    unsigned least = name.size() / 2 + 1;
    for (StringRef other : op->getName().getAttributeNames()) {
      if (other.ends_with("SegmentSizes"))
        continue;
      known.push_back(other);
      unsigned distance = name.edit_distance(other, true, least);
      if (distance < least) {
        least = distance;
        nearest = other;
      }
    }
    InFlightDiagnostic error = op->emitOpError("has no attribute '")
                               << name << "'";
    if (!nearest.empty())
      error << ", did you mean '" << nearest << "'?";
    else if (!known.empty())
      error << ", expected among " << known;
    return error;
  }
  return success();
}

/// An operation with this trait has no other attributes than those of its
/// definition and those of dialects, whose names have a prefix.
template <typename ConcreteOp>
class OwnAttributes
    : public mlir::OpTrait::TraitBase<ConcreteOp, OwnAttributes> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return verifyOwnAttributes(op);
  }
};

} // namespace attn

#endif // ATTN_SUPPORT_OWNATTRIBUTES_H
