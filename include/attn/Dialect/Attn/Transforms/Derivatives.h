//===- Derivatives.h - derivatives of scalar operations -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only place that knows derivatives. For y = f(a, b, …) and a number L that
// depends on y, the adjoint of a value is dL over a change of it; the adjoint
// of a is that of y times the partial derivative of f by a:
//
//   y = a * b        da = dy * b, db = dy * a
//
// Forward the same factors are met: what the tangent of a adds to that of y is
// the adjoint of a, with the tangent in the place of dy.
//
// Where a function has no derivative, what PyTorch returns is taken, and the
// description of attn-differentiate lists it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_DERIVATIVES_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_DERIVATIVES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// The type of the adjoints of an operation: f64 where it has operands or
/// results of that, else f32.
mlir::Type getAdjointType(mlir::Operation *op);

/// The adjoints of the operands of an operation of arith or math, in their
/// type, from those of its results; null stands for 0, as an integer has. Fails
/// where the derivative is not known. Some of what is built may be without use.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildAdjoints(mlir::OpBuilder &b, mlir::Operation *op,
              mlir::ValueRange resultAdjoints);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_DERIVATIVES_H
