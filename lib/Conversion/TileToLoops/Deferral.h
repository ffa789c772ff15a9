//===- Deferral.h - which values need no buffer -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOLOOPS_DEFERRAL_H
#define ATTN_CONVERSION_TILETOLOOPS_DEFERRAL_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace attn {

/// Decides, for a whole kernel before it is rewritten, which vector operations
/// are computed element by element inside the loop nest of their user
/// ("deferred") and after which operation each other value is dead.
///
/// Deferred are: operations whose elements cost nothing (constants,
/// coordinates), those that only rename elements (broadcast, shape_cast,
/// transpose), and elementwise operations with one user in the same block that
/// asks for each element once. So no element is computed twice, and no memory
/// is read later than the program says.
class Deferral {
public:
  explicit Deferral(Operation *kernel);

  /// True when `op` gets no loop nest of its own.
  bool isDeferred(Operation *op) const { return deferred.contains(op); }

  /// The vector values that are dead once `op` has been lowered.
  ArrayRef<Value> diesAfter(Operation *op) const;

private:
  Operation *lastUse(Value value, Block *block);

  llvm::DenseSet<Operation *> deferred;
  llvm::DenseMap<Value, Operation *> lastUses;
  llvm::DenseMap<Operation *, SmallVector<Value>> deaths;
};

/// True when `op` maps over its vector operands element by element.
bool isElementwise(Operation *op);

/// True when `op` has a vector operand or a vector result.
bool touchesVectors(Operation *op);

} // namespace attn

#endif // ATTN_CONVERSION_TILETOLOOPS_DEFERRAL_H
