//===- HostAttributes.cpp - attributes on operations of the host ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The warp dialect's attributes on operations of other dialects. Each has one
// kind of value and one kind of operation that it stands on; another name is an
// error, so that a misspelled one is not a silent nothing.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn::warp;

namespace {
struct HostAttribute {
  StringLiteral name;
  StringLiteral place;
  bool (*standsOn)(Operation *op);
  StringLiteral value;
  bool (*isValue)(Attribute value);
};
} // namespace

static bool isAlloc(Operation *op) { return isa<memref::AllocOp>(op); }
static bool isLaunch(Operation *op) { return isa<gpu::LaunchFuncOp>(op); }
static bool isFunction(Operation *op) { return isa<FunctionOpInterface>(op); }
static bool isUnit(Attribute value) { return isa<UnitAttr>(value); }

static bool areTensorMaps(Attribute value) {
  auto maps = dyn_cast<ArrayAttr>(value);
  return maps && llvm::all_of(maps, llvm::IsaPred<TensorMapAttr>);
}

static bool arePositivePair(Attribute value) {
  auto sizes = dyn_cast<DenseI64ArrayAttr>(value);
  return sizes && sizes.size() == 2 && sizes[0] > 0 && sizes[1] > 0;
}

static constexpr HostAttribute hostAttributes[] = {
    {WarpDialect::kZeroedAttrName, "a memref.alloc", isAlloc, "a unit", isUnit},
    {WarpDialect::kRestoredAttrName, "a memref.alloc", isAlloc, "a unit",
     isUnit},
    {WarpDialect::kDrawnAttrName, "a memref.alloc", isAlloc, "a unit", isUnit},
    {WarpDialect::kTensorMapsAttrName, "a gpu.launch_func", isLaunch,
     "an array of #warp.tensor_map", areTensorMaps},
    {WarpDialect::kResidentAttrName, "a gpu.launch_func", isLaunch, "a unit",
     isUnit},
    {WarpDialect::kEarlyAttrName, "a gpu.launch_func", isLaunch, "a unit",
     isUnit},
    {WarpDialect::kRelayoutAttrName, "a function", isFunction,
     "an array of two i64 above 0", arePositivePair}};

LogicalResult WarpDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().strref();
  const HostAttribute *known =
      llvm::find_if(hostAttributes,
                    [&](const HostAttribute &row) { return row.name == name; });
  if (known == std::end(hostAttributes))
    return op->emitError("unknown attribute '")
           << name << "' of the warp dialect";
  if (!known->standsOn(op))
    return op->emitError("'") << name << "' stands on " << known->place
                              << ", got '" << op->getName() << "'";
  if (!known->isValue(attribute.getValue()))
    return op->emitError("'") << name << "' must be " << known->value
                              << ", got " << attribute.getValue();
  if (name == kRestoredAttrName && !op->hasAttr(kZeroedAttrName))
    return op->emitError("'")
           << name << "' stands beside '" << kZeroedAttrName << "', got none";
  if (name == kDrawnAttrName && !op->hasAttr(kRestoredAttrName))
    return op->emitError("'")
           << name << "' stands beside '" << kRestoredAttrName << "', got none";
  return success();
}

LogicalResult WarpDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned number,
                                                    NamedAttribute attribute) {
  return op->emitError("unknown attribute '")
         << attribute.getName().getValue()
         << "' of the warp dialect on argument " << number;
}

LogicalResult WarpDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned number, NamedAttribute attribute) {
  return op->emitError("unknown attribute '")
         << attribute.getName().getValue() << "' of the warp dialect on result "
         << number;
}

LogicalResult
TensorMapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t argument, int64_t rows, int64_t columns,
                      int64_t swizzle, int64_t panels) {
  if (argument < 0)
    return emitError() << "a tensor map of argument " << argument
                       << ", expected at least 0";
  if (rows < 1 || columns < 1 || panels < 1)
    return emitError() << "a tensor map with a box of " << panels
                       << " panels of " << rows << " x " << columns
                       << " elements, expected at least 1 of each";
  if (swizzle != 16 && swizzle != 32 && swizzle != 64 && swizzle != 128 &&
      (swizzle != 0 || rows != 1))
    return emitError() << "a tensor map with a swizzle of " << swizzle
                       << " bytes, expected 16, 32, 64 or 128, or 0 for one "
                          "row";
  return success();
}
