//===- AttnDialect.cpp - the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/ArgumentAttributes.h"
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
  StringRef name = attribute.getName().getValue();
  bool isConstant = name == kConstantAttrName;
  if (!isConstant && name != kAlignedAttrName)
    return op->emitError("unknown attribute '")
           << name << "' of the attn dialect on argument " << number;
  auto function = dyn_cast<FunctionOpInterface>(op);
  Type type = function ? function.getArgumentTypes()[number] : Type();
  if (isConstant && !type)
    return op->emitError("'")
           << name << "' stands on an argument of a function, got argument "
           << number << " of '" << op->getName() << "'";
  if (!isConstant && !isa_and_present<ShapedType>(type))
    return op->emitError("'")
           << name << "' stands on an argument of a function that is a tensor, "
           << "got argument " << number << " of '" << op->getName() << "'";
  if (!isa<UnitAttr>(attribute.getValue()))
    return op->emitError("'") << name << "' must be a unit attribute, got "
                              << attribute.getValue();
  return success();
}

static bool isArgumentWith(Value value, StringRef attribute) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : FunctionOpInterface();
  return function && function.getArgAttr(argument.getArgNumber(), attribute);
}

bool attn::isAlignedArgument(Value value) {
  return isArgumentWith(value, kAlignedAttrName);
}

bool attn::isConstantArgument(Value value) {
  return isArgumentWith(value, kConstantAttrName);
}

LogicalResult AttnDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned number, NamedAttribute attribute) {
  return op->emitError("unknown attribute '")
         << attribute.getName().getValue() << "' of the attn dialect on result "
         << number;
}
