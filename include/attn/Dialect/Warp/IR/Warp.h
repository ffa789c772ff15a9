//===- Warp.h - the warp dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARP_H
#define ATTN_DIALECT_WARP_IR_WARP_H

#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "attn/Support/LLVM.h"
#include "attn/Support/OwnAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <vector>

#include "attn/Dialect/Warp/IR/WarpDialect.h.inc"
#include "attn/Dialect/Warp/IR/WarpEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpAttrs.h.inc"

namespace attn::warp {
class ProductOp;
/// Whether shapes match, and the atom accepts the operands; emits what is
/// wrong.
LogicalResult verifyProduct(ProductOp op);
} // namespace attn::warp

#include "attn/Dialect/Warp/IR/WarpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Warp/IR/WarpOps.h.inc"

namespace attn::warp {
/// The rules W1 to W5 of `warp.kernel`; emits what is broken.
LogicalResult verifyProtocol(KernelOp kernel);

/// The names of the roles that fill and drain a ring or mailbox.
StringRef getFiller(Value ring);
ArrayRef<Attribute> getDrainers(Value ring);
bool drains(RoleOp role, Value ring);

/// Whether an operation of the dialect computes a scalar from scalars and
/// memory, as those of other dialects do.
bool isOfScalars(Operation *op);
} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_WARP_H
