//===- TileDialect.cpp - the tile dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::tile;

// The type of the heads of tile.scores, where it is not i32.
static ParseResult parseHeadType(OpAsmParser &parser, Type &type) {
  type = parser.getBuilder().getI32Type();
  return succeeded(parser.parseOptionalComma()) ? parser.parseType(type)
                                                : ParseResult(success());
}

static void printHeadType(OpAsmPrinter &printer, Operation *, Type type) {
  if (!type.isInteger(32))
    printer << ", " << type;
}

#include "attn/Dialect/Tile/IR/TileDialect.cpp.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().strref();
  if (name != kIeeeAttrName)
    return op->emitError("unknown attribute '")
           << name << "' of the tile dialect";
  auto product = dyn_cast<vector::ContractionOp>(op);
  if (!product || !product.getLhsType().getElementType().isF32())
    return op->emitError("'")
           << name << "' stands on a vector.contract of f32, got '"
           << op->getName() << "'" << (product ? " of other elements" : "");
  if (!isa<UnitAttr>(attribute.getValue()))
    return op->emitError("'")
           << name << "' must be a unit, got " << attribute.getValue();
  return success();
}
