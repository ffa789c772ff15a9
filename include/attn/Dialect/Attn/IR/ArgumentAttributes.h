//===- ArgumentAttributes.h - what callers say of arguments ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ARGUMENTATTRIBUTES_H
#define ATTN_DIALECT_ATTN_IR_ARGUMENTATTRIBUTES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"

namespace attn {

/// On an argument of a function that is a tensor: its address and its strides,
/// but for the last one, are multiples of 16 bytes. A promise of the caller: a
/// kernel may copy boxes of it to shared memory then, as it does those of
/// query, key and value. Where it is broken the runtime copies the tensor
/// first.
inline constexpr StringLiteral kAlignedAttrName = "attn.aligned";

/// Whether a value is an argument with that promise.
bool isAlignedArgument(Value value);

/// On an argument of a function: nobody asks for its gradient, where it is a
/// capture, as if it was no float.
inline constexpr StringLiteral kConstantAttrName = "attn.constant";

/// Whether a value is an argument that has none.
bool isConstantArgument(Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ARGUMENTATTRIBUTES_H
