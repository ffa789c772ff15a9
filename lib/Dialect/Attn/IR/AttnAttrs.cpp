//===- AttnAttrs.cpp - attributes of the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;

#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"

/// A float literal; an integer one is a mistake that deserves its own words.
static ParseResult parseCap(AsmParser &parser, FloatAttr &cap) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute value;
  if (parser.parseAttribute(value))
    return failure();
  cap = dyn_cast<FloatAttr>(value);
  if (cap)
    return success();
  return parser.emitError(loc)
         << "softcap wants a float literal like 30.0, got " << value;
}

static void printCap(AsmPrinter &printer, FloatAttr cap) {
  printer.printAttribute(cap);
}

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

/// One integer field of an attribute against its closed range.
static LogicalResult verifyRange(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef field, int64_t value, int64_t low,
                                 int64_t high) {
  if (value >= low && value <= high)
    return success();
  return emitError() << "'" << field << "' must be in [" << low << ", " << high
                     << "], got " << value;
}

// The bounds only keep arithmetic on plans far from overflow; what fits a
// target is the plan room's question.
LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               TargetKind, int64_t blockQ, int64_t blockK,
                               int64_t warps, int64_t stages, bool,
                               SchedulerKind) {
  return success(
      succeeded(verifyRange(emitError, "block_q", blockQ, 1, 65536)) &&
      succeeded(verifyRange(emitError, "block_k", blockK, 1, 65536)) &&
      succeeded(verifyRange(emitError, "warps", warps, 1, 32)) &&
      succeeded(verifyRange(emitError, "stages", stages, 1, 64)));
}

PlanAttr PlanAttr::withWarps(int64_t warps) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), warps,
             getStages(), getQInRegisters(), getScheduler());
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t left, int64_t right, Alignment) {
  // Positions plus a bound stay inside i32, as lengths are at most 2^30 too.
  constexpr int64_t max = int64_t(1) << 30;
  return success(succeeded(verifyRange(emitError, "left", left, -1, max)) &&
                 succeeded(verifyRange(emitError, "right", right, -1, max)));
}

LogicalResult SoftcapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  FloatAttr cap) {
  if (!cap.getType().isF32() && !cap.getType().isF64())
    return emitError() << "softcap must be f32 or f64, got " << cap.getType();
  // The expansion computes in f32: what matters is the value there.
  float value = static_cast<float>(cap.getValueAsDouble());
  if (std::isfinite(value) && value > 0 && std::isfinite(1 / value))
    return success();
  return emitError() << "softcap must be positive and finite in f32, got "
                     << cap;
}
