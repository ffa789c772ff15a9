//===- KernelOp.cpp - tile.kernel ---------------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/KernelOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn::tile;

static constexpr unsigned rank = 3;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     PlanAttr plan, ValueRange grid) {
  state.getOrAddProperties<Properties>().sym_name = builder.getStringAttr(name);
  state.getOrAddProperties<Properties>().plan = plan;
  state.addOperands(grid);
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations(rank, state.location);
  builder.createBlock(body, {}, SmallVector<Type>(rank, builder.getIndexType()),
                      locations);
  ensureTerminator(*body, builder, state.location);
}

void KernelOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral names[] = {"batch", "head", "block"};
  for (auto [number, name] : llvm::zip(getNumbers(), names))
    setName(number, name);
}

std::string KernelOp::findName(Block *block, StringRef name) {
  auto isTaken = [&](StringRef candidate) {
    return llvm::any_of(block->getOps<KernelOp>(), [&](KernelOp other) {
      return other.getSymName() == candidate;
    });
  };
  std::string found = name.str();
  for (unsigned number = 2; isTaken(found); ++number)
    found = (name + "_" + std::to_string(number)).str();
  return found;
}

// @name plan(#attn.plan<…>) grid(%b, %h, %x) in (%nb, %nh, %nx) independent { …
// }
ParseResult KernelOp::parse(OpAsmParser &p, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  SmallVector<OpAsmParser::Argument> numbers;
  SmallVector<OpAsmParser::UnresolvedOperand> grid;
  Type index = p.getBuilder().getIndexType();
  SMLoc numbersLoc, loc;
  if (p.parseSymbolName(properties.sym_name) || p.parseKeyword("plan") ||
      p.parseLParen() || p.parseAttribute(properties.plan) || p.parseRParen() ||
      p.parseKeyword("grid") || p.getCurrentLocation(&numbersLoc) ||
      p.parseArgumentList(numbers, OpAsmParser::Delimiter::Paren) ||
      p.parseKeyword("in") || p.getCurrentLocation(&loc) ||
      p.parseOperandList(grid, rank, OpAsmParser::Delimiter::Paren) ||
      p.resolveOperands(grid, {index, index, index}, loc, result.operands))
    return failure();
  if (numbers.size() != rank)
    return p.emitError(numbersLoc, "expected three block numbers, got ")
           << numbers.size();
  for (OpAsmParser::Argument &number : numbers)
    number.type = index;
  if (succeeded(p.parseOptionalKeyword("independent")))
    properties.independent = p.getBuilder().getUnitAttr();
  Region *body = result.addRegion();
  if (p.parseOptionalAttrDictWithKeyword(result.attributes) ||
      p.parseRegion(*body, numbers))
    return failure();
  ensureTerminator(*body, p.getBuilder(), result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &p) {
  p << " ";
  p.printSymbolName(getSymName());
  p << " plan(" << getPlan() << ") grid(";
  llvm::interleaveComma(getNumbers(), p);
  p << ") in (" << getGrid() << ")";
  if (getIndependent())
    p << " independent";
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getPlanAttrName(), getIndependentAttrName()});
  p << " ";
  p.printRegion(getRegion(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
}

LogicalResult KernelOp::verify() {
  // (C1)
  auto function =
      dyn_cast_if_present<FunctionOpInterface>((*this)->getParentOp());
  if (!function || (*this)->getBlock() != &function.getFunctionBody().front())
    return emitOpError("must stand in the entry block of a function");
  // (C2)
  return verifyNameAndBody(*this, getRegion().front());
}
