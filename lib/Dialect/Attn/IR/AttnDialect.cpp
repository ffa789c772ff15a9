//===- AttnDialect.cpp - the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"

void AttnDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().strref();
  if (name != kNumericsAttrName)
    return op->emitError("unknown attribute '")
           << name << "' of the attn dialect";
  if (!isa<FunctionOpInterface>(op))
    return op->emitError("'")
           << name << "' stands on a function, got '" << op->getName() << "'";
  if (!isa<NumericsAttr>(attribute.getValue()))
    return op->emitError("'") << name << "' must be a #" << name << ", got "
                              << attribute.getValue();
  return success();
}

LogicalResult AttnDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned number,
                                                    NamedAttribute attribute) {
  return op->emitError("unknown attribute '")
         << attribute.getName().getValue()
         << "' of the attn dialect on argument " << number;
}

LogicalResult AttnDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned number, NamedAttribute attribute) {
  return op->emitError("unknown attribute '")
         << attribute.getName().getValue() << "' of the attn dialect on result "
         << number;
}
