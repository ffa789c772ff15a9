//===- WarpTypes.cpp - fragments, slots and rings -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Warp/IR/WarpTypes.cpp.inc"

void WarpDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Warp/IR/WarpTypes.cpp.inc"
      >();
}

/// No kernel has more tiles in flight; offsets stay small.
static constexpr int64_t maxDepth = 64;

/// Bits of an element; index never gets here.
static int64_t bitsOf(Type element) { return element.getIntOrFloatBitWidth(); }

//===----------------------------------------------------------------------===//
// Fragment
//===----------------------------------------------------------------------===//

// <128x64xf32, acc, 4>  <64x64xf32, acc, 2x2>
Type FragType::parse(AsmParser &p) {
  SmallVector<int64_t> shape;
  Type element;
  StringRef kind;
  SmallVector<int64_t> grid;
  SMLoc loc = p.getCurrentLocation();
  SMLoc kindLoc, gridLoc;
  if (p.parseLess() || p.parseDimensionList(shape, /*allowDynamic=*/false) ||
      p.parseType(element) || p.parseComma() ||
      p.getCurrentLocation(&kindLoc) || p.parseKeyword(&kind))
    return {};
  std::optional<FragKind> fragKind = symbolizeFragKind(kind);
  if (!fragKind) {
    p.emitError(kindLoc, "unknown fragment layout '")
        << kind << "', expected acc or a";
    return {};
  }
  if (p.parseComma() || p.getCurrentLocation(&gridLoc) ||
      p.parseDimensionList(grid, /*allowDynamic=*/false,
                           /*withTrailingX=*/false) ||
      p.parseGreater())
    return {};
  if (grid.empty() || grid.size() > 2) {
    p.emitError(gridLoc, "got ")
        << grid.size() << " numbers of warps, expected one, or those along "
        << "the rows and along the columns";
    return {};
  }
  grid.resize(2, 1);
  constexpr int64_t most = layout::maxWarps;
  // Their product stays a number.
  int64_t rows = std::min(grid[0], most + 1);
  int64_t columns = std::min(grid[1], most + 1);
  return p.getChecked<FragType>(loc, p.getContext(), shape, element, *fragKind,
                                columns > 1 ? rows * columns : grid[0],
                                columns);
}

void FragType::print(AsmPrinter &p) const {
  p << "<";
  p.printDimensionList(getShape());
  p << "x" << getElementType() << ", " << stringifyFragKind(getKind()) << ", "
    << getWarps() / getGridColumns();
  if (getGridColumns() > 1)
    p << "x" << getGridColumns();
  p << ">";
}

FragType FragType::inGrid(int64_t gridColumns) const {
  return FragType::get(getContext(), getShape(), getElementType(), getKind(),
                       getWarps(), gridColumns);
}

ShapedType FragType::cloneWith(std::optional<ArrayRef<int64_t>> shape,
                               Type elementType) const {
  return FragType::get(getContext(), shape.value_or(getShape()), elementType,
                       getKind(), getWarps(), getGridColumns());
}

bool FragType::hasRank() const { return true; }

layout::Fragment FragType::getLayout() const {
  auto kind = getKind() == FragKind::Acc ? layout::FragmentKind::Acc
                                         : layout::FragmentKind::A;
  return {kind,
          getShape()[0],
          getShape()[1],
          getWarps(),
          bitsOf(getElementType()),
          getGridColumns()};
}

LogicalResult FragType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type element,
                               FragKind kind, int64_t warps,
                               int64_t gridColumns) {
  if (shape.size() != 2)
    return emitError() << "fragment of rank " << shape.size()
                       << ", expected rank 2";
  if (!element.isIntOrFloat())
    return emitError() << "fragment of " << element
                       << ", expected an integer or float element type";
  // i1: the type of comparisons.
  if (kind == FragKind::A && !isa<FloatType>(element) && !element.isInteger(1))
    return emitError() << "operand fragment of " << element
                       << ", expected a float element type";
  auto layoutKind = kind == FragKind::Acc ? layout::FragmentKind::Acc
                                          : layout::FragmentKind::A;
  bool isCondition = kind == FragKind::A && element.isInteger(1);
  layout::Fragment fragment = {
      layoutKind, shape[0], shape[1], warps, isCondition ? 16 : bitsOf(element),
      gridColumns};
  std::string message = fragment.check();
  if (!message.empty())
    return emitError() << "'" << stringifyFragKind(kind)
                       << "' fragment: " << message;
  return success();
}

//===----------------------------------------------------------------------===//
// Slot and ring
//===----------------------------------------------------------------------===//

/// The rules of a tile in shared memory, for slots and rings.
static LogicalResult verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type element,
                                int64_t panelBytes) {
  if (shape.size() != 2)
    return emitError() << "slot of rank " << shape.size()
                       << ", expected rank 2";
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return emitError() << "slot of " << element
                       << ", expected f16, bf16 or f32";
  layout::SharedTile tile = {shape[0], shape[1], bitsOf(element) / 8,
                             panelBytes};
  std::string message = tile.check();
  if (!message.empty())
    return emitError() << "slot: " << message;
  return success();
}

/// `, panels<128>`, or nothing.
static ParseResult parsePanels(AsmParser &p, int64_t &panelBytes) {
  panelBytes = 0;
  if (failed(p.parseOptionalComma()))
    return success();
  SMLoc loc;
  if (p.parseKeyword("panels") || p.parseLess() || p.getCurrentLocation(&loc) ||
      p.parseInteger(panelBytes) || p.parseGreater())
    return failure();
  if (panelBytes == 0)
    return p.emitError(loc,
                       "got panels of 0 bytes, expected 128, 64, 32 or 16");
  return success();
}

static void printTile(AsmPrinter &p, ArrayRef<int64_t> shape, Type element,
                      int64_t panelBytes) {
  p.printDimensionList(shape);
  p << "x" << element;
  if (panelBytes != 0)
    p << ", panels<" << panelBytes << ">";
}

// <64x128xbf16>  <64x128xbf16, panels<128>>
Type SlotType::parse(AsmParser &p) {
  SmallVector<int64_t> shape;
  Type element;
  int64_t panelBytes;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseDimensionList(shape, /*allowDynamic=*/false) ||
      p.parseType(element) || parsePanels(p, panelBytes) || p.parseGreater())
    return {};
  return p.getChecked<SlotType>(loc, p.getContext(), ArrayRef<int64_t>(shape),
                                element, panelBytes);
}

void SlotType::print(AsmPrinter &p) const {
  p << "<";
  printTile(p, getShape(), getElementType(), getPanelBytes());
  p << ">";
}

LogicalResult SlotType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type element,
                               int64_t panelBytes) {
  return verifyTile(emitError, shape, element, panelBytes);
}

layout::SharedTile SlotType::getLayout() const {
  return {getShape()[0], getShape()[1], bitsOf(getElementType()) / 8,
          getPanelBytes()};
}

// <2, 64x128xbf16>  <2, 64x128xbf16, panels<128>>
Type RingType::parse(AsmParser &p) {
  int64_t depth, panelBytes;
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseInteger(depth) || p.parseComma() ||
      p.parseDimensionList(shape, /*allowDynamic=*/false) ||
      p.parseType(element) || parsePanels(p, panelBytes) || p.parseGreater())
    return {};
  return p.getChecked<RingType>(loc, p.getContext(), depth,
                                ArrayRef<int64_t>(shape), element, panelBytes);
}

void RingType::print(AsmPrinter &p) const {
  p << "<" << getDepth() << ", ";
  printTile(p, getShape(), getElementType(), getPanelBytes());
  p << ">";
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t depth, ArrayRef<int64_t> shape,
                               Type element, int64_t panelBytes) {
  if (depth < 1 || depth > maxDepth)
    return emitError() << "ring of depth " << depth << ", expected 1 to "
                       << maxDepth;
  return verifyTile(emitError, shape, element, panelBytes);
}

SlotType RingType::getSlotType() const {
  return SlotType::get(getContext(), getShape(), getElementType(),
                       getPanelBytes());
}

//===----------------------------------------------------------------------===//
// Mailbox
//===----------------------------------------------------------------------===//

LogicalResult MailboxType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t depth, int64_t count) {
  if (depth < 1 || depth > maxDepth)
    return emitError() << "mailbox of depth " << depth << ", expected 1 to "
                       << maxDepth;
  if (count < 1 || count > maxCount)
    return emitError() << count << " numbers, expected 1 to " << maxCount;
  return success();
}

int64_t MailboxType::getItemBytes() const {
  constexpr int64_t numberBytes = 4, alignment = 16;
  return RingOp::barrierBytesPerSlot +
         llvm::alignTo(getCount() * numberBytes, alignment);
}

//===----------------------------------------------------------------------===//
// Pending
//===----------------------------------------------------------------------===//

// <128x64xf32, acc, 8>
Type PendingType::parse(AsmParser &p) {
  Type fragment = FragType::parse(p);
  if (!fragment)
    return {};
  return PendingType::get(p.getContext(), cast<FragType>(fragment));
}

void PendingType::print(AsmPrinter &p) const { getFragment().print(p); }
