//===- WarpOps.cpp - operations of the warp dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::warp;

#define GET_OP_CLASSES
#include "attn/Dialect/Warp/IR/WarpOps.cpp.inc"

// blocks(%x, %y, %z) in (%nx, %ny, %nz) warps(4) shared(98304) { … }
ParseResult KernelOp::parse(OpAsmParser &p, OperationState &result) {
  SmallVector<OpAsmParser::Argument> ids;
  SmallVector<OpAsmParser::UnresolvedOperand> grid;
  Type index = p.getBuilder().getIndexType();
  int64_t warps = 0, shared = 0;
  SMLoc loc;
  if (p.parseKeyword("blocks") ||
      p.parseArgumentList(ids, OpAsmParser::Delimiter::Paren) || p.parseKeyword("in") ||
      p.getCurrentLocation(&loc) ||
      p.parseOperandList(grid, 3, OpAsmParser::Delimiter::Paren) ||
      p.resolveOperands(grid, {index, index, index}, loc, result.operands) ||
      p.parseKeyword("warps") || p.parseLParen() || p.parseInteger(warps) || p.parseRParen())
    return failure();
  if (ids.size() != 3)
    return p.emitError(loc, "expected three block numbers, got ") << ids.size();
  Builder &b = p.getBuilder();
  result.addAttribute(getWarpsAttrName(result.name), b.getI64IntegerAttr(warps));
  if (succeeded(p.parseOptionalKeyword("shared"))) {
    if (p.parseLParen() || p.parseInteger(shared) || p.parseRParen())
      return failure();
    result.addAttribute(getSharedBytesAttrName(result.name), b.getI64IntegerAttr(shared));
  }
  for (OpAsmParser::Argument &id : ids)
    id.type = index;
  Region *body = result.addRegion();
  if (p.parseOptionalAttrDictWithKeyword(result.attributes) || p.parseRegion(*body, ids))
    return failure();
  ensureTerminator(*body, b, result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &p) {
  p << " blocks(";
  llvm::interleaveComma(getBody().getArguments(), p);
  p << ") in (" << getGridX() << ", " << getGridY() << ", " << getGridZ() << ") warps("
    << getWarps() << ")";
  if (std::optional<int64_t> bytes = getSharedBytes())
    p << " shared(" << *bytes << ")";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getWarpsAttrName(), getSharedBytesAttrName()});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

LogicalResult KernelOp::verify() { return success(); }
LogicalResult CopyOp::verify() { return success(); }
LogicalResult CopyAsyncOp::verify() { return success(); }
LogicalResult AwaitOp::verify() { return success(); }
LogicalResult ReleaseOp::verify() { return success(); }
LogicalResult StoreOp::verify() { return success(); }
LogicalResult GatherOp::verify() { return success(); }
LogicalResult LoadFragOp::verify() { return success(); }
LogicalResult MmaOp::verify() { return success(); }
LogicalResult SelectOp::verify() { return success(); }
LogicalResult CastOp::verify() { return success(); }
LogicalResult ConvertOp::verify() { return success(); }
LogicalResult BroadcastOp::verify() { return success(); }
LogicalResult ReduceOp::verify() { return success(); }
LogicalResult CoordsOp::verify() { return success(); }
