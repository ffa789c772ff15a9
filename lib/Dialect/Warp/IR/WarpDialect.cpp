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

/// Before the operands; texts had no atom once.
static ParseResult parseProductAtom(OpAsmParser &parser,
                                    ProductAtomAttr &atom) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  std::optional<ProductAtom> known;
  if (succeeded(parser.parseOptionalKeyword(&name)))
    known = symbolizeProductAtom(name);
  if (!known)
    return parser.emitError(loc, "expected the instruction of the product "
                                 "before its operands: ")
           << "mma_sync, mma_tf32, fma_f32 or wgmma"
           << (name.empty() ? "" : ", got ") << name;
  atom = ProductAtomAttr::get(parser.getContext(), *known);
  return success();
}

static void printProductAtom(OpAsmPrinter &printer, Operation *,
                             ProductAtomAttr atom) {
  printer << stringifyProductAtom(atom.getValue());
}

// %pool[%p0, %row, %c0], [%p1, %row, %c0]
static ParseResult
parseBoxes(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &view,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices,
           IntegerAttr &boxes) {
  int64_t number = 0;
  size_t rank = 0;
  if (parser.parseOperand(view))
    return failure();
  do {
    SMLoc loc = parser.getCurrentLocation();
    size_t before = indices.size();
    if (parser.parseOperandList(indices, OpAsmParser::Delimiter::Square))
      return failure();
    size_t here = indices.size() - before;
    if (number++ == 0)
      rank = here;
    else if (here != rank)
      return parser.emitError(loc, "got a box of ")
             << here << " indices, the first has " << rank;
  } while (succeeded(parser.parseOptionalComma()));
  boxes = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

template <typename Copy>
static void printBoxes(OpAsmPrinter &printer, Copy copy, Value view,
                       OperandRange, IntegerAttr) {
  printer << view;
  llvm::interleaveComma(
      llvm::seq<int64_t>(copy.getBoxes()), printer,
      [&](int64_t number) { printer << "[" << copy.getBox(number) << "]"; });
}

/// `group(%group)`, if there is a group that something asks for, and the
/// region.
static ParseResult parseRoleBody(OpAsmParser &p, Region &body,
                                 RoleKindAttr kind) {
  Builder &builder = p.getBuilder();
  SmallVector<OpAsmParser::Argument> group;
  if (succeeded(p.parseOptionalKeyword("group"))) {
    if (p.parseLParen() || p.parseArgument(group.emplace_back()) ||
        p.parseRParen())
      return failure();
    group.back().type = builder.getIndexType();
  }
  SMLoc loc = p.getCurrentLocation();
  if (p.parseRegion(body, group))
    return failure();
  RoleOp::ensureTerminator(body, builder, p.getEncodedSourceLoc(loc));
  if (group.empty() && kind.getValue() == RoleKind::Compute)
    body.addArgument(builder.getIndexType(), p.getEncodedSourceLoc(loc));
  return success();
}

static void printRoleBody(OpAsmPrinter &p, Operation *, Region &body,
                          RoleKindAttr) {
  if (body.getNumArguments() == 1 && !body.getArgument(0).use_empty())
    p << "group(" << body.getArgument(0) << ") ";
  p.printRegion(body, /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
}

#include "attn/Dialect/Warp/IR/WarpDialect.cpp.inc"
#include "attn/Dialect/Warp/IR/WarpEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpAttrs.cpp.inc"
#include "attn/Dialect/Warp/IR/WarpInterfaces.cpp.inc"
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
