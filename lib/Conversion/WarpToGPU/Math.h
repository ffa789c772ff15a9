//===- Math.h - scalar math by the instructions of the GPU ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_MATH_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_MATH_H

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// Replaces the scalar math of a lowered kernel by instructions of the GPU. The
/// error names an operation that has none. `precise`: exponentials, quotients
/// and roots are right to the last bit or two of f32, as those of a processor
/// are. `bySteps`: many multiplications are cheaper than a special function.
LogicalResult lowerMath(gpu::GPUFuncOp function, bool precise, bool bySteps);

/// What a quotient or a square root makes of scalars, rounded as IEEE 754 has
/// it, and a logarithm of base e or 2, within a unit in the last place; null
/// for other operations.
Value computeExactly(OpBuilder &builder, Operation *op, ValueRange operands);
/// Quotients and logarithms of scalars that `exact` names become such, and all
/// their roots, which all elements share.
void lowerExactMath(RewriterBase &rewriter, gpu::GPUFuncOp function,
                    const DecisionPaths &exact);
/// Powers of 2 and e that all elements share (of scalars) become accurate ones.
void lowerSharedPowers(RewriterBase &rewriter, gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_MATH_H
