//===- AttentionSyntax.cpp - text forms of attention -*- C++ -*-===//
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

void AttentionBackwardOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getDQuery(), "dq");
  setName(getDKey(), "dk");
  setName(getDValue(), "dv");
  if (getDSink())
    setName(getDSink(), "dsink");
  for (Value gradient : getDCaptures())
    setName(gradient, "dc");
}

void AttentionJvpOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOutput(), "o");
  setName(getLse(), "lse");
  setName(getTOutput(), "to");
  setName(getTLse(), "tlse");
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

namespace {
/// The text form of an operation over scores: its operands, those in brackets
/// after a keyword, attributes, regions after a keyword, the type.
struct Syntax {
  int32_t numTensors; // without a keyword
  ArrayRef<StringRef> keywords;
  ArrayRef<StringRef> bodies;
};
} // namespace

static constexpr StringRef forwardKeywords[] = {"sink", "dropout", "captures"};
static constexpr StringRef forwardBodies[] = {"score", "mask"};
static constexpr Syntax forwardSyntax = {3, forwardKeywords, forwardBodies};
static constexpr StringRef backwardKeywords[] = {"d_lse", "sink", "dropout",
                                                 "captures"};
static constexpr StringRef backwardBodies[] = {"score", "mask", "pullback"};
static constexpr Syntax backwardSyntax = {6, backwardKeywords, backwardBodies};
static constexpr StringRef jvpBodies[] = {"score", "mask", "pushforward"};
static constexpr Syntax jvpSyntax = {6, forwardKeywords, jvpBodies};

/// `%q, …` and the operands in brackets; how many each part has.
static ParseResult
parseOperands(OpAsmParser &parser, const Syntax &syntax,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
              MutableArrayRef<int32_t> segments) {
  SMLoc loc = parser.getCurrentLocation();
  for (int32_t number = 0; number < syntax.numTensors; ++number) {
    if ((number != 0 && parser.parseComma()) ||
        parser.parseOperand(operands.emplace_back()))
      return failure();
    segments[number] = 1;
  }
  for (auto [number, keyword] : llvm::enumerate(syntax.keywords)) {
    size_t before = operands.size();
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
      return failure();
    int32_t count = operands.size() - before;
    segments[syntax.numTensors + number] = count;
    if (count > 1 && (keyword == "sink" || keyword == "d_lse"))
      return parser.emitError(loc)
             << "wants one " << keyword << ", got " << count;
  }
  return success();
}

/// All before the type.
static ParseResult
parseParts(OpAsmParser &parser, OperationState &result, const Syntax &syntax,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
           MutableArrayRef<int32_t> segments) {
  if (parseOperands(parser, syntax, operands, segments))
    return failure();
  SMLoc attributeLoc = parser.getCurrentLocation();
  auto attributeError = [&]() -> InFlightDiagnostic {
    return parser.emitError(attributeLoc)
           << "'" << result.name.getStringRef() << "' op ";
  };
  if (parser.parseOptionalAttrDict(result.attributes) ||
      failed(
          result.name.verifyInherentAttrs(result.attributes, attributeError)))
    return failure();
  for (StringRef body : syntax.bodies)
    if (parseBody(parser, body, *result.addRegion()))
      return failure();
  return success();
}

/// The types of operands and of so many results, which `wanted` names.
static ParseResult parseTypes(OpAsmParser &parser, OperationState &result,
                              ArrayRef<OpAsmParser::UnresolvedOperand> operands,
                              SMLoc operandLoc, unsigned numResults,
                              StringRef wanted) {
  FunctionType type;
  SMLoc typeLoc;
  if (parser.parseColon() || parser.getCurrentLocation(&typeLoc) ||
      parser.parseType(type))
    return failure();
  if (type.getNumResults() != numResults)
    return parser.emitError(typeLoc)
           << "wanted " << wanted << ", got " << type.getNumResults();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), operandLoc,
                                result.operands);
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc operandLoc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  std::array<int32_t, 6> segments;
  if (parseParts(parser, result, forwardSyntax, operands, segments))
    return failure();
  result.getOrAddProperties<Properties>().operandSegmentSizes = segments;
  return parseTypes(parser, result, operands, operandLoc, 2,
                    "two result types, output and lse");
}

ParseResult AttentionBackwardOp::parse(OpAsmParser &parser,
                                       OperationState &result) {
  SMLoc operandLoc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  std::array<int32_t, 10> segments;
  if (parseParts(parser, result, backwardSyntax, operands, segments))
    return failure();
  Properties &properties = result.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = segments;

  FunctionType type;
  SMLoc typeLoc;
  if (parser.parseColon() || parser.getCurrentLocation(&typeLoc) ||
      parser.parseType(type))
    return failure();
  // d_query, d_key, d_value; a sink has a gradient (C3); the rest is of
  // captures.
  int32_t numSinks = segments[7];
  int32_t numResults = type.getNumResults();
  if (numResults < 3 + numSinks)
    return parser.emitError(typeLoc)
           << "wanted result types of d_query, d_key, d_value"
           << (numSinks ? ", d_sink" : "") << " and d_captures, got "
           << numResults;
  properties.resultSegmentSizes = {1, 1, 1, numSinks,
                                   numResults - 3 - numSinks};
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), operandLoc,
                                result.operands);
}

ParseResult AttentionJvpOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc operandLoc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  std::array<int32_t, 9> segments;
  if (parseParts(parser, result, jvpSyntax, operands, segments))
    return failure();
  result.getOrAddProperties<Properties>().operandSegmentSizes = segments;
  return parseTypes(parser, result, operands, operandLoc, 4,
                    "four result types, output, lse, t_output and t_lse");
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

/// The operands that follow a keyword.
static void printBracket(OpAsmPrinter &p, StringRef keyword,
                         ValueRange operands) {
  if (!operands.empty())
    p << " " << keyword << "(" << operands << ")";
}

/// What comes after the operands.
static void printRest(OpAsmPrinter &p, ScoredOp op, const Syntax &syntax,
                      ArrayRef<StringRef> elidedAttributes) {
  p.printOptionalAttrDict(op->getAttrs(), elidedAttributes);
  bool hasRegion = false;
  for (auto [body, region] : llvm::zip_equal(syntax.bodies, op->getRegions())) {
    printBody(p, body, region);
    hasRegion |= !region.empty();
  }
  if (hasRegion) {
    p.increaseIndent();
    p.printNewline();
  }
  p << (hasRegion ? ": " : " : ");
  p.printFunctionalType(op);
  if (hasRegion)
    p.decreaseIndent();
}

void AttentionOp::print(OpAsmPrinter &p) {
  p << " " << getQuery() << ", " << getKey() << ", " << getValue();
  printBracket(p, "sink", getODSOperands(3));
  printBracket(p, "dropout", getDropoutKey());
  printBracket(p, "captures", getCaptures());
  printRest(p, *this, forwardSyntax, {getOperandSegmentSizeAttr()});
}

void AttentionBackwardOp::print(OpAsmPrinter &p) {
  p << " " << getQuery() << ", " << getKey() << ", " << getValue() << ", "
    << getOutput() << ", " << getLse() << ", " << getDOutput();
  printBracket(p, "d_lse", getODSOperands(6));
  printBracket(p, "sink", getODSOperands(7));
  printBracket(p, "dropout", getDropoutKey());
  printBracket(p, "captures", getCaptures());
  printRest(p, *this, backwardSyntax,
            {getOperandSegmentSizeAttr(), getResultSegmentSizeAttr()});
}

void AttentionJvpOp::print(OpAsmPrinter &p) {
  p << " " << getQuery() << ", " << getKey() << ", " << getValue() << ", "
    << getTQuery() << ", " << getTKey() << ", " << getTValue();
  printBracket(p, "sink", getODSOperands(6));
  printBracket(p, "dropout", getDropoutKey());
  printBracket(p, "captures", getCaptures());
  printRest(p, *this, jvpSyntax, {getOperandSegmentSizeAttr()});
}
