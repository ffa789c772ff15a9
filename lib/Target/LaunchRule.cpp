//===- LaunchRule.cpp - how a kernel is launched, as plain data -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/LaunchRule.h"

#include "attn/Dialect/Warp/IR/Warp.h"
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

static LaunchExpr binary(Kind kind, LaunchExpr lhs, LaunchExpr rhs) {
  LaunchExpr expr;
  expr.kind = kind;
  expr.operands = {std::move(lhs), std::move(rhs)};
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

static FailureOr<LaunchExpr> expressionOf(Value value);

/// A dimension of an argument, or of an allocation of the host.
static FailureOr<LaunchExpr> sizeOf(memref::DimOp dim) {
  std::optional<int64_t> index = dim.getConstantIndex();
  auto type = dyn_cast<MemRefType>(dim.getSource().getType());
  if (index && type && *index < type.getRank()) {
    if (!type.isDynamicDim(*index))
      return constant(type.getDimSize(*index));
    if (auto alloc = dim.getSource().getDefiningOp<memref::AllocOp>())
      return expressionOf(
          alloc.getDynamicSizes()[type.getDynamicDimIndex(*index)]);
  }
  BlockArgument argument = argumentOf(dim.getSource());
  if (!argument || !index)
    return dim.emitOpError("in the grid of a launch: expected a known "
                           "dimension of an argument");
  LaunchExpr expr;
  expr.kind = Kind::Dim;
  expr.argument = argument.getArgNumber();
  expr.value = *index;
  return expr;
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
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return sizeOf(dim);
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

/// What the host allocates: memory for one launch.
static FailureOr<WorkspaceInfo> describeWorkspace(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  WorkspaceInfo workspace;
  Type element = type.getElementType();
  std::string name;
  llvm::raw_string_ostream(name) << element;
  std::optional<ElementKind> kind = findElement(name);
  if (!kind || !type.getLayout().isIdentity() ||
      !alloc.getSymbolOperands().empty())
    return alloc.emitOpError("is no workspace: expected a contiguous tensor of "
                             "f16, bf16, f32, f64, i1, i8, i16, i32 or i64");
  workspace.element = *kind;
  workspace.isZeroed = alloc->hasAttr(warp::WarpDialect::kZeroedAttrName);
  workspace.isRestored = alloc->hasAttr(warp::WarpDialect::kRestoredAttrName);
  auto dynamic = alloc.getDynamicSizes().begin();
  for (int64_t size : type.getShape()) {
    FailureOr<LaunchExpr> expr = ShapedType::isDynamic(size)
                                     ? expressionOf(*dynamic++)
                                     : FailureOr<LaunchExpr>(constant(size));
    if (failed(expr))
      return failure();
    workspace.sizes.push_back(std::move(*expr));
  }
  return workspace;
}

/// 1 where a resident kernel has more tiles than there are multiprocessors,
/// else 0: then no tile is drawn.
static LaunchExpr countDrawn(ArrayRef<KernelInfo> kernels) {
  LaunchExpr more = constant(0);
  for (const KernelInfo &kernel : kernels) {
    const LaunchExpr &blocks = kernel.grid[0];
    if (blocks.kind == Kind::Min &&
        blocks.operands[1].kind == Kind::Multiprocessors)
      more = binary(Kind::Max, std::move(more),
                    binary(Kind::Sub, blocks.operands[0], blocks.operands[1]));
  }
  return binary(Kind::Min, std::move(more), constant(1));
}

static void describeTensorMaps(gpu::LaunchFuncOp launch, KernelInfo &kernel) {
  auto maps =
      launch->getAttrOfType<ArrayAttr>(warp::WarpDialect::kTensorMapsAttrName);
  if (!maps)
    return;
  for (auto map : maps.getAsRange<warp::TensorMapAttr>())
    kernel.tensorMaps.push_back({map.getArgument(), map.getRows(),
                                 map.getColumns(), map.getSwizzle(),
                                 map.getPanels()});
}

/// Grid, threads and shared memory.
static LogicalResult describeSizes(gpu::LaunchFuncOp launch,
                                   KernelInfo &kernel) {
  gpu::KernelDim3 grid = launch.getGridSizeOperandValues();
  const std::array values = {grid.x, grid.y, grid.z};
  for (auto [expr, value] : llvm::zip_equal(kernel.grid, values)) {
    FailureOr<LaunchExpr> read = expressionOf(value);
    if (failed(read))
      return failure();
    expr = std::move(*read);
  }
  if (launch->hasAttr(warp::WarpDialect::kResidentAttrName)) {
    LaunchExpr multiprocessors;
    multiprocessors.kind = Kind::Multiprocessors;
    kernel.grid[0] = binary(Kind::Min, std::move(kernel.grid[0]),
                            std::move(multiprocessors));
  }
  std::optional<int64_t> threads = getConstantIntValue(launch.getBlockSizeX());
  Value shared = launch.getDynamicSharedMemorySize();
  std::optional<int64_t> sharedBytes =
      shared ? getConstantIntValue(shared) : std::optional<int64_t>(0);
  if (!threads || !sharedBytes)
    return launch.emitOpError("expected a known number of threads and of "
                              "bytes of shared memory");
  kernel.threads = *threads;
  kernel.sharedBytes = *sharedBytes;
  kernel.startsEarly = launch->hasAttr(warp::WarpDialect::kEarlyAttrName);
  return success();
}

/// A kernel has the arguments of the host, its allocations, then tensor maps.
static LogicalResult describeOperands(func::FuncOp host,
                                      gpu::LaunchFuncOp launch,
                                      ArrayRef<memref::AllocOp> allocs,
                                      size_t numMaps, Artifact &artifact) {
  OperandRange operands = launch.getKernelOperands();
  size_t numArguments = artifact.arguments.size();
  if (operands.size() != numArguments + allocs.size() + numMaps)
    return launch.emitOpError("has ")
           << operands.size() << " operands, expected " << numArguments
           << " arguments, " << allocs.size() << " workspaces and " << numMaps
           << " tensor maps";
  for (auto [number, operand] :
       llvm::enumerate(operands.take_front(numArguments))) {
    BlockArgument argument = argumentOf(operand);
    if (!argument || argument.getArgNumber() != number)
      return launch.emitOpError("operand #")
             << number << " is not argument #" << number << " of '"
             << host.getName() << "'";
    ArgumentInfo &info = artifact.arguments[number];
    if (auto aligned = operand.getDefiningOp<memref::AssumeAlignmentOp>())
      info.alignment =
          std::max<int64_t>(info.alignment, aligned.getAlignment());
  }
  for (auto [number, alloc] : llvm::enumerate(allocs))
    if (operands[numArguments + number].getDefiningOp() != alloc)
      return launch.emitOpError("operand #")
             << numArguments + number << " is not allocation #" << number
             << " of '" << host.getName() << "'";
  return success();
}

/// The kernels beside those of `launch` that copy tensors.
static void describeRelayouts(gpu::LaunchFuncOp launch, Artifact &artifact) {
  auto module = SymbolTable::lookupNearestSymbolFrom<gpu::GPUModuleOp>(
      launch, launch.getKernelModuleName());
  if (!module)
    return;
  for (auto function : module.getOps<gpu::GPUFuncOp>()) {
    auto sizes = function->getAttrOfType<DenseI64ArrayAttr>(
        warp::WarpDialect::kRelayoutAttrName);
    std::optional<ArrayRef<int32_t>> threads = function.getKnownBlockSize();
    if (sizes && threads)
      artifact.relayouts.push_back(
          {function.getName().str(), sizes[0], threads->front(), sizes[1]});
  }
}

LogicalResult attn::describeLaunch(func::FuncOp host, Artifact &artifact,
                                   VariantInfo &variant) {
  variant.workspaces.clear();
  artifact.relayouts.clear();
  SmallVector<memref::AllocOp> allocs(host.getOps<memref::AllocOp>());
  for (memref::AllocOp alloc : allocs) {
    FailureOr<WorkspaceInfo> workspace = describeWorkspace(alloc);
    if (failed(workspace))
      return failure();
    variant.workspaces.push_back(std::move(*workspace));
  }
  auto launches = llvm::to_vector(host.getOps<gpu::LaunchFuncOp>());
  // A kernel of which nobody reads what it writes is gone: states of blocks
  // where there is no key.
  llvm::erase_if(variant.kernels, [&](const KernelInfo &kernel) {
    return llvm::none_of(launches, [&](gpu::LaunchFuncOp launch) {
      return launch.getKernelName() == kernel.entry;
    });
  });
  if (launches.size() != variant.kernels.size() || launches.empty())
    return host.emitError("expected a gpu.launch_func for each of ")
           << variant.kernels.size() << " kernels of '" << host.getName()
           << "', got " << launches.size();
  for (auto [launch, kernel] : llvm::zip_equal(launches, variant.kernels)) {
    if (launch.getKernelName() != kernel.entry)
      return launch.emitOpError("expected a launch of '")
             << kernel.entry << "', got '" << launch.getKernelName() << "'";
    describeTensorMaps(launch, kernel);
    if (failed(describeSizes(launch, kernel)) ||
        failed(describeOperands(host, launch, allocs, kernel.tensorMaps.size(),
                                artifact)))
      return failure();
  }
  for (auto [alloc, workspace] : llvm::zip_equal(allocs, variant.workspaces))
    if (alloc->hasAttr(warp::WarpDialect::kDrawnAttrName))
      workspace.sizes = {countDrawn(variant.kernels)};
  describeRelayouts(launches.front(), artifact);
  return success();
}
