//===- WarpDialect.cpp - the warp dialect ---------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::warp;

/// `@first, @second`.
static ParseResult parseRoleNames(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<Attribute> roles;
  if (parser.parseCommaSeparatedList([&]() -> ParseResult {
        StringAttr name;
        if (parser.parseSymbolName(name))
          return failure();
        roles.push_back(FlatSymbolRefAttr::get(name));
        return success();
      }))
    return failure();
  names = parser.getBuilder().getArrayAttr(roles);
  return success();
}

static void printRoleNames(OpAsmPrinter &printer, Operation *,
                           ArrayAttr names) {
  if (names)
    llvm::interleaveComma(names, printer);
}

#include "attn/Dialect/Warp/IR/WarpDialect.cpp.inc"
#include "attn/Dialect/Warp/IR/WarpEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Warp/IR/WarpOps.cpp.inc"

void WarpDialect::initialize() {
  registerTypes();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Warp/IR/WarpAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Warp/IR/WarpOps.cpp.inc"
      >();
}
