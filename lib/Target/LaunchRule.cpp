//===- LaunchRule.cpp - how a kernel is launched, as plain data -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/LaunchRule.h"

#include "attn/Conversion/TensorMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

using Kind = LaunchExpr::Kind;

static LaunchExpr constant(int64_t value) {
  LaunchExpr expr;
  expr.value = value;
  return expr;
}

/// The argument of the host function that a value is, seen through what only
/// restates it.
static BlockArgument argumentOf(Value value) {
  while (true) {
    if (auto aligned = value.getDefiningOp<memref::AssumeAlignmentOp>())
      value = aligned.getMemref();
    else if (auto cast = value.getDefiningOp<memref::CastOp>())
      value = cast.getSource();
    else
      break;
  }
  return dyn_cast<BlockArgument>(value);
}

static std::optional<Kind> binaryKind(Operation *op) {
  if (isa<arith::AddIOp>(op))
    return Kind::Add;
  if (isa<arith::SubIOp>(op))
    return Kind::Sub;
  if (isa<arith::MulIOp>(op))
    return Kind::Mul;
  if (isa<arith::FloorDivSIOp>(op))
    return Kind::FloorDiv;
  if (isa<arith::CeilDivSIOp>(op))
    return Kind::CeilDiv;
  if (isa<arith::MinSIOp>(op))
    return Kind::Min;
  if (isa<arith::MaxSIOp>(op))
    return Kind::Max;
  return std::nullopt;
}

static FailureOr<LaunchExpr> expressionOf(Value value) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return constant(*known);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    LaunchExpr expr;
    expr.kind = Kind::Scalar;
    expr.argument = argument.getArgNumber();
    return expr;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return expressionOf(op->getOperand(0));
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    BlockArgument argument = argumentOf(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!argument || !index)
      return dim.emitOpError("in the grid of a launch: expected a known "
                             "dimension of an argument");
    auto type = cast<MemRefType>(argument.getType());
    if (*index < type.getRank() && !type.isDynamicDim(*index))
      return constant(type.getDimSize(*index));
    LaunchExpr expr;
    expr.kind = Kind::Dim;
    expr.argument = argument.getArgNumber();
    expr.value = *index;
    return expr;
  }
  std::optional<Kind> kind = binaryKind(op);
  if (!kind)
    return op->emitOpError("cannot stand in the grid of a launch: expected "
                           "sizes of arguments, scalars, constants and "
                           "addi, subi, muli, floordivsi, ceildivsi, minsi, "
                           "maxsi of them");
  LaunchExpr expr;
  expr.kind = *kind;
  for (Value operand : op->getOperands()) {
    FailureOr<LaunchExpr> part = expressionOf(operand);
    if (failed(part))
      return failure();
    expr.operands.push_back(std::move(*part));
  }
  return expr;
}

/// A tensor map cannot be empty: it would show another argument's memory.
static LaunchCheck hasKeys(int64_t argument) {
  LaunchExpr one, length, least;
  one.value = 1;
  length.kind = LaunchExpr::Kind::Dim;
  length.argument = argument;
  length.value = 2; // of batch, heads, length, dim
  least.kind = LaunchExpr::Kind::Min;
  least.operands = {length, one};
  return {least, one, "sm_90a kernels need at least one key"};
}

LogicalResult attn::describeLaunch(func::FuncOp host, Artifact &artifact) {
  SmallVector<gpu::LaunchFuncOp> launches(host.getOps<gpu::LaunchFuncOp>());
  if (launches.size() != 1)
    return host.emitError("expected one gpu.launch_func in '")
           << host.getName() << "', got " << launches.size();
  gpu::LaunchFuncOp launch = launches.front();
  artifact.entry = launch.getKernelName().str();

  gpu::KernelDim3 grid = launch.getGridSizeOperandValues();
  const std::array values = {grid.x, grid.y, grid.z};
  for (auto [expr, value] : llvm::zip_equal(artifact.grid, values)) {
    FailureOr<LaunchExpr> read = expressionOf(value);
    if (failed(read))
      return failure();
    expr = std::move(*read);
  }
  std::optional<int64_t> threads = getConstantIntValue(launch.getBlockSizeX());
  Value shared = launch.getDynamicSharedMemorySize();
  std::optional<int64_t> sharedBytes =
      shared ? getConstantIntValue(shared) : std::optional<int64_t>(0);
  if (!threads || !sharedBytes)
    return launch.emitOpError("expected a known number of threads and of "
                              "bytes of shared memory");
  artifact.threads = *threads;
  artifact.sharedBytes = *sharedBytes;

  // The kernel has the arguments of the host, in order, then tensor maps.
  auto maps = launch->getAttrOfType<ArrayAttr>(kTensorMapsAttrName);
  size_t numMaps = maps ? maps.size() : 0;
  for (size_t i = 0; i < numMaps; ++i) {
    auto map = dyn_cast<DenseI64ArrayAttr>(maps[i]);
    if (!map || map.size() != 4)
      return launch.emitOpError("has a tensor map that is no list of argument, "
                                "rows, columns and swizzle");
    artifact.tensorMaps.push_back({map[0], map[1], map[2], map[3]});
    if (map[0] != 0)
      artifact.checks.push_back(hasKeys(map[0]));
  }
  for (auto [number, operand] :
       llvm::enumerate(launch.getKernelOperands().drop_back(numMaps))) {
    BlockArgument argument = argumentOf(operand);
    if (!argument || argument.getArgNumber() != number ||
        number >= artifact.arguments.size())
      return launch.emitOpError("operand #")
             << number << " is not argument #" << number << " of '"
             << host.getName() << "'";
    if (auto aligned = operand.getDefiningOp<memref::AssumeAlignmentOp>())
      artifact.arguments[number].alignment = aligned.getAlignment();
  }
  return success();
}
