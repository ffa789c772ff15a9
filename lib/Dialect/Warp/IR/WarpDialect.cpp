//===- WarpDialect.cpp - the warp dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::warp;

#include "attn/Dialect/Warp/IR/WarpDialect.cpp.inc"
#include "attn/Dialect/Warp/IR/WarpEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpTypes.cpp.inc"

void WarpDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Warp/IR/WarpTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Warp/IR/WarpAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Warp/IR/WarpOps.cpp.inc"
      >();
}

// <128x64xf32, acc, 4>
Type FragType::parse(AsmParser &p) {
  SmallVector<int64_t> shape;
  Type element;
  StringRef kind;
  int64_t warps;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseDimensionList(shape, /*allowDynamic=*/false) ||
      p.parseType(element) || p.parseComma() || p.parseKeyword(&kind))
    return {};
  std::optional<FragKind> fragKind = symbolizeFragKind(kind);
  if (!fragKind) {
    p.emitError(loc, "unknown fragment layout '") << kind << "', expected acc or a";
    return {};
  }
  if (p.parseComma() || p.parseInteger(warps) || p.parseGreater())
    return {};
  return p.getChecked<FragType>(loc, p.getContext(), shape, element, *fragKind, warps);
}

void FragType::print(AsmPrinter &p) const {
  p << "<";
  p.printDimensionList(getShape());
  p << "x" << getElementType() << ", " << stringifyFragKind(getKind()) << ", "
    << getWarps() << ">";
}

ShapedType FragType::cloneWith(std::optional<ArrayRef<int64_t>> shape, Type elementType) const {
  return FragType::get(getContext(), shape.value_or(getShape()), elementType, getKind(), getWarps());
}

bool FragType::hasRank() const { return true; }

// <64x128xbf16>
Type SlotType::parse(AsmParser &p) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseDimensionList(shape, /*allowDynamic=*/false) ||
      p.parseType(element) || p.parseGreater())
    return {};
  return p.getChecked<SlotType>(loc, p.getContext(), shape, element);
}

void SlotType::print(AsmPrinter &p) const {
  p << "<";
  p.printDimensionList(getShape());
  p << "x" << getElementType() << ">";
}

// <2, 64x128xbf16>
Type RingType::parse(AsmParser &p) {
  int64_t depth;
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseInteger(depth) || p.parseComma() ||
      p.parseDimensionList(shape, /*allowDynamic=*/false) || p.parseType(element) ||
      p.parseGreater())
    return {};
  return p.getChecked<RingType>(loc, p.getContext(), depth, shape, element);
}

void RingType::print(AsmPrinter &p) const {
  p << "<" << getDepth() << ", ";
  p.printDimensionList(getShape());
  p << "x" << getElementType() << ">";
}

LogicalResult FragType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type, FragKind, int64_t) { return success(); }
LogicalResult SlotType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type) { return success(); }
LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t, ArrayRef<int64_t> shape, Type) { return success(); }
