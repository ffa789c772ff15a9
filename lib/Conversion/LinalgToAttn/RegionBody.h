//===- RegionBody.h - expressions as the body of a region -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_REGIONBODY_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_REGIONBODY_H

#include "Expression.h"
#include "mlir/IR/Builders.h"

namespace attn::raise {

/// Whether `expr` is a part of an index that takes a division by an unknown
/// size: it is read from a captured table.
bool needsTable(ExprRef expr);

/// What `exprs` read of the function, as operands of attention: tensors,
/// scalars, and sizes.
class CapturedValues {
public:
  /// Builds what is needed before the insertion point: sizes and indices
  /// become i32 and i64.
  CapturedValues(OpBuilder &b, Location loc, Extents &extents, ExprRef x,
                 ArrayRef<ExprRef> exprs);
  ArrayRef<Value> values() const { return captured; }
  /// The number of the capture that is the leaf `expr`.
  unsigned numberOf(ExprRef expr) const;

private:
  SmallVector<Value> captured;
  llvm::DenseMap<ExprRef, unsigned> scalars;
  llvm::DenseMap<Value, unsigned> tensors;
};

/// Writes expressions as scalar code.
class RegionBody {
public:
  RegionBody(OpBuilder &b, Location loc, const CapturedValues &captures,
             ValueRange captured)
      : b(b), loc(loc), captures(captures), captured(captured) {}

  /// `expr` is `value` from here on; an i32 for a position.
  void bind(ExprRef expr, Value value) {
    built[{expr, value.getType()}] = value;
  }
  /// Tensors are read by tensor.extract, not as captures of attention.
  void readInPlace() { readsInPlace = true; }
  Value emitFloat(ExprRef expr);
  /// An integer as `type`, which holds it.
  Value emitInteger(ExprRef expr, Type type);

private:
  Value emitOperation(ExprRef expr, Type type);
  Value emitElement(ExprRef expr);
  Value convert(Value value, Type type);

  OpBuilder &b;
  Location loc;
  const CapturedValues &captures;
  ValueRange captured;
  bool readsInPlace = false;
  llvm::DenseMap<std::pair<ExprRef, Type>, Value> built;
};

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_REGIONBODY_H
