//===- AttentionSyntax.cpp - text form of attn.attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

void AttentionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOutput(), "o");
  setName(getLse(), "lse");
}

/// `keyword(%x: f32, …) { … }`, or nothing.
static ParseResult parseBody(OpAsmParser &parser, StringRef keyword,
                             Region &region) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseRegion(region, arguments))
    return failure();
  if (region.empty() || region.front().empty())
    return parser.emitError(loc)
           << "'" << keyword << "' region is empty: wanted an 'attn.yield', "
           << "or no '" << keyword << "' at all";
  return success();
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc operandLoc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands(3);
  if (parser.parseOperand(operands[0]) || parser.parseComma() ||
      parser.parseOperand(operands[1]) || parser.parseComma() ||
      parser.parseOperand(operands[2]))
    return failure();
  // The parts in brackets, in this order: how many operands each has.
  std::array<int32_t, 6> segments = {1, 1, 1, 0, 0, 0};
  size_t segment = 3;
  for (StringRef keyword : {"sink", "dropout", "captures"}) {
    size_t before = operands.size();
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
      return failure();
    segments[segment++] = static_cast<int32_t>(operands.size() - before);
  }
  if (segments[3] > 1)
    return parser.emitError(operandLoc)
           << "wants one sink, got " << segments[3];
  result.getOrAddProperties<Properties>().operandSegmentSizes = segments;

  SMLoc attributeLoc = parser.getCurrentLocation();
  auto attributeError = [&]() -> InFlightDiagnostic {
    return parser.emitError(attributeLoc)
           << "'" << result.name.getStringRef() << "' op ";
  };
  if (parser.parseOptionalAttrDict(result.attributes) ||
      failed(
          verifyInherentAttrs(result.name, result.attributes, attributeError)))
    return failure();

  Region *score = result.addRegion(), *mask = result.addRegion();
  if (parseBody(parser, "score", *score) || parseBody(parser, "mask", *mask))
    return failure();

  FunctionType type;
  SMLoc typeLoc;
  if (parser.parseColon() || parser.getCurrentLocation(&typeLoc) ||
      parser.parseType(type))
    return failure();
  if (type.getNumResults() != 2)
    return parser.emitError(typeLoc)
           << "wanted two result types, output and lse, got "
           << type.getNumResults();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), operandLoc,
                                result.operands);
}

/// The reverse of parseBody.
static void printBody(OpAsmPrinter &p, StringRef keyword, Region &region) {
  if (region.empty())
    return;
  p.increaseIndent();
  p.printNewline();
  p << keyword << "(";
  llvm::interleaveComma(region.getArguments(), p, [&](BlockArgument argument) {
    p.printRegionArgument(argument);
  });
  p << ") ";
  p.printRegion(region, /*printEntryBlockArgs=*/false);
  p.decreaseIndent();
}

void AttentionOp::print(OpAsmPrinter &p) {
  p << " " << getQuery() << ", " << getKey() << ", " << getValue();
  if (getSink())
    p << " sink(" << getSink() << ")";
  if (hasDropout())
    p << " dropout(" << getDropoutKey() << ")";
  if (!getCaptures().empty())
    p << " captures(" << getCaptures() << ")";
  p.printOptionalAttrDict((*this)->getAttrs(), {getOperandSegmentSizeAttr()});
  printBody(p, "score", getScore());
  printBody(p, "mask", getMask());
  bool hasRegion = hasScore() || hasMask();
  if (hasRegion) {
    p.increaseIndent();
    p.printNewline();
  }
  p << (hasRegion ? ": " : " : ");
  p.printFunctionalType(*this);
  if (hasRegion)
    p.decreaseIndent();
}
