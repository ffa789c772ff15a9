//===- FlatForm.cpp - what convert-tile-to-warp accepts -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatForm.h"

#include "Patterns.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "attn/Plan/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

static bool isVector(Type type) { return isa<VectorType>(type); }

static bool hasVectors(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isVector) ||
         llvm::any_of(op->getResultTypes(), isVector);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The reduction is that of a cast of the tile times another, or itself, or of
/// the tile.
static bool isPartOfRowProduct(Operation *user) {
  auto hasOneUser = [](Operation *op) {
    return !op->use_empty() && llvm::all_equal(op->getUsers());
  };
  for (int i = 0; i < 2 && user->getNumResults() == 1 && hasOneUser(user);
       ++i) {
    user = *user->user_begin();
    if (matchRowProduct(user))
      return true;
  }
  return false;
}

/// A tile that is loaded lies in shared memory and is not a fragment; but a row
/// becomes one.
static LogicalResult checkLoad(tile::LoadOp load) {
  auto type = cast<VectorType>(load.getResult().getType());
  Type element = type.getElementType();
  if (type.getRank() != 2)
    return load.emitOpError("loads ") << type << ", expected rank 2";
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return load.emitOpError("loads elements of ")
           << element << ", expected f16, bf16 or f32";
  std::string message =
      layout::SharedTile{type.getDimSize(0), type.getDimSize(1),
                         element.getIntOrFloatBitWidth() / 8}
          .check();
  if (!message.empty())
    return load.emitOpError("does not fit shared memory: ") << message;
  if (isRow(load) && element.isF32())
    return success();
  for (OpOperand &use : load.getResult().getUses()) {
    auto contract = dyn_cast<vector::ContractionOp>(use.getOwner());
    if ((contract && use.getOperandNumber() < 2) ||
        isPartOfRowProduct(use.getOwner()))
      continue;
    InFlightDiagnostic diag = load.emitOpError(
        "is used by something else than vector.contract's lhs or rhs");
    diag.attachNote(use.getOwner()->getLoc()) << "used here";
    return failure();
  }
  return success();
}

layout::Fragment attn::spread(VectorType type, PlanAttr plan) {
  int64_t warps = plan.getWarps();
  layout::Fragment fragment = {
      layout::FragmentKind::Acc, type.getDimSize(0),
      type.getRank() == 2 ? type.getDimSize(1) : 1, warps,
      int64_t(type.getElementType().getIntOrFloatBitWidth())};
  int64_t columns = layout::chooseGridColumns(plan.getBlockQ(), warps);
  if (fragment.rows == 1 ||
      fragment.rows % (layout::groupRows * (warps / columns)) == 0)
    fragment.gridColumns = columns;
  return fragment;
}

static LogicalResult checkFragment(Operation *op, VectorType type,
                                   PlanAttr plan) {
  Type element = type.getElementType();
  if (type.isScalable() || type.getRank() < 1 || type.getRank() > 2 ||
      !element.isIntOrFloat())
    return op->emitOpError("has ")
           << type << ", expected rank 2 (or 1) of integers or floats";
  layout::Fragment fragment = spread(type, plan);
  std::string message = fragment.check();
  if (!message.empty() || fragment.columns == layout::laneColumns)
    return op->emitOpError("has ")
           << type << ", which does not spread over " << plan.getWarps()
           << " warps" << (message.empty() ? "" : ": ") << message;
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool attn::isTransposed(vector::ContractionOp op, unsigned operand) {
  AffineExpr k = getAffineDimExpr(2, op.getContext());
  bool isDepthFirst = op.getIndexingMapsArray()[operand].getResult(0) == k;
  return isDepthFirst == (operand == 0);
}

/// (m,k) or (k,m) x (k,n) or (n,k), to (m,n).
static LogicalResult checkContract(vector::ContractionOp op, PlanAttr plan) {
  AffineExpr m, n, k;
  bindDims(op.getContext(), m, n, k);
  auto map = [&](AffineExpr row, AffineExpr column) {
    return AffineMap::get(3, 0, {row, column}, op.getContext());
  };
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if ((maps[0] != map(m, k) && maps[0] != map(k, m)) ||
      (maps[1] != map(k, n) && maps[1] != map(n, k)) || maps[2] != map(m, n))
    return op.emitOpError(
        "expects maps (m,n,k) -> (m,k) or (k,m), (k,n) or (n,k), (m,n)");
  auto lhs = op.getLhsType(), rhs = op.getRhsType();
  if (op.getKind() != vector::CombiningKind::ADD ||
      lhs.getElementType() != rhs.getElementType() ||
      !isVector(op.getAccType()) ||
      !cast<VectorType>(op.getAccType()).getElementType().isF32())
    return op.emitOpError("expects a sum in f32 of operands of one type");
  int64_t warps = plan.getWarps();
  bool isInGrid = layout::chooseGridColumns(plan.getBlockQ(), warps) > 1;
  if (isTransposed(op, 0) || isInGrid)
    return success(); // it lies in shared memory
  layout::Fragment operand = {layout::FragmentKind::A, lhs.getDimSize(0),
                              lhs.getDimSize(1), warps,
                              lhs.getElementType().getIntOrFloatBitWidth()};
  std::string message = operand.check();
  if (!message.empty())
    return op.emitOpError("lhs ")
           << lhs << " does not spread over " << warps << " warps: " << message;
  return success();
}

/// Whether any element of a mask is set: all dimensions of i1, to a scalar.
static bool isVote(vector::MultiDimReductionOp op) {
  return op.getKind() == vector::CombiningKind::OR &&
         op.getDestType().isInteger(1);
}

/// The least or the greatest of all elements, of i32.
static bool isExtreme(vector::MultiDimReductionOp op) {
  using vector::CombiningKind;
  return (op.getKind() == CombiningKind::MINSI ||
          op.getKind() == CombiningKind::MAXSI) &&
         op.getDestType().isInteger(32);
}

static LogicalResult checkReduction(vector::MultiDimReductionOp op) {
  if (isVote(op))
    return success();
  if (isExtreme(op)) {
    int64_t warps = op->getParentOfType<tile::KernelOp>().getPlan().getWarps();
    if (warps == 1)
      return success();
    return op.emitOpError("is of elements of ")
           << warps << " warps, expected a kernel of one";
  }
  bool kindKnown = op.getKind() == vector::CombiningKind::ADD ||
                   op.getKind() == vector::CombiningKind::MAXNUMF;
  if (!kindKnown || op.getSourceVectorType().getRank() != 2 ||
      !op.getSourceVectorType().getElementType().isF32() ||
      op.getReductionDims() != ArrayRef<int64_t>{1})
    return op.emitOpError("expects <add> or <maxnumf> of f32 over dimension 1, "
                          "<or> of i1 or <minsi> or <maxsi> of i32 over all");
  return success();
}

static LogicalResult checkShapeCast(vector::ShapeCastOp op) {
  VectorType from = op.getSourceVectorType(), to = op.getResultVectorType();
  auto isColumnOf = [](VectorType column, VectorType flat) {
    return column.getRank() == 2 && column.getDimSize(1) == 1 &&
           flat.getRank() == 1;
  };
  if (!isColumnOf(from, to) && !isColumnOf(to, from))
    return op.emitOpError("casts ")
           << from << " to " << to << ", expected Mx1 to M or M to Mx1";
  return success();
}

/// A vector of rank 1 is a column Mx1; what could read it as a row is refused.
static LogicalResult checkBroadcast(vector::BroadcastOp op) {
  auto source = dyn_cast<VectorType>(op.getSourceType());
  if (source && source.getRank() != 2)
    return op.emitOpError("stretches ") << source << ", expected rank 2";
  return success();
}

static LogicalResult checkConstant(arith::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements || !elements.isSplat())
    return op.emitOpError("has different elements, expected a splat");
  return success();
}

static LogicalResult checkElementwise(Operation *op) {
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      !OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return op->emitOpError("is not part of the flat tile form");
  return success();
}

/// Vectors are born in the kernel; constants before it are copied in.
static LogicalResult checkOperands(Operation *op, tile::KernelOp kernel) {
  for (Value operand : op->getOperands()) {
    if (!isVector(operand.getType()) ||
        kernel->isAncestor(operand.getParentRegion()->getParentOp()))
      continue;
    auto constant = operand.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return op->emitOpError("uses a vector that is computed before the "
                             "kernel, expected a constant");
    if (failed(checkConstant(constant)))
      return failure();
  }
  return success();
}

static LogicalResult checkOp(Operation *op, tile::KernelOp kernel,
                             PlanAttr plan) {
  if (failed(checkOperands(op, kernel)))
    return failure();
  if (op->getNumRegions() != 0 &&
      !isa<tile::KernelOp, tile::GroupBoundsOp, scf::ForOp, scf::IfOp>(op))
    return op->emitOpError("is not part of the flat tile form");
  if (auto load = dyn_cast<tile::LoadOp>(op); load && !load.getPacked())
    return checkLoad(load);
  for (Type type : op->getResultTypes())
    if (auto vector = dyn_cast<VectorType>(type))
      if (failed(checkFragment(op, vector, plan)))
        return failure();
  if (!hasVectors(op) ||
      isa<scf::ForOp, scf::IfOp, scf::YieldOp, tile::LoadOp, tile::StoreOp,
          tile::GatherOp, tile::SearchOp, tile::CoordsOp, tile::ScatterAddOp>(
          op))
    return success();
  if (auto contract = dyn_cast<vector::ContractionOp>(op))
    return checkContract(contract, plan);
  if (auto reduction = dyn_cast<vector::MultiDimReductionOp>(op))
    return checkReduction(reduction);
  if (auto cast = dyn_cast<vector::ShapeCastOp>(op))
    return checkShapeCast(cast);
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return checkBroadcast(broadcast);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return checkConstant(constant);
  return checkElementwise(op);
}

/// A plan for a GPU, whose products have the warps that they need.
static LogicalResult checkPlan(tile::KernelOp kernel,
                               const TargetInfo &target) {
  PlanAttr plan = kernel.getPlan();
  if (plan.getTarget() == TargetKind::CPU)
    return kernel.emitOpError("has a plan for cpu, expected one for a GPU");
  // Those of f32 are of single warps.
  auto isOfGroups = [](vector::ContractionOp product) {
    return product.getLhsType().getElementType().isF32()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  };
  bool hasProducts = kernel.walk(isOfGroups).wasInterrupted();
  if (hasProducts && target.hasWarpgroups && plan.getWarps() % 4 != 0)
    return kernel.emitOpError("has a plan of ")
           << plan.getWarps() << " warps for products on " << target.name
           << ", expected groups of 4";
  return success();
}

/// Those without tensor cores read rows of the lhs.
static LogicalResult checkIeeeProducts(tile::KernelOp kernel, bool ieee) {
  WalkResult walk = kernel.walk([&](vector::ContractionOp op) {
    if (!isTransposed(op, 0) || !op.getLhsType().getElementType().isF32() ||
        !(ieee || op->hasAttr(tile::TileDialect::kIeeeAttrName)))
      return WalkResult::advance();
    op.emitOpError("has a transposed lhs of f32, expected one by tensor cores, "
                   "not an ieee product");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<FlatKernel> attn::matchFlatKernel(tile::KernelOp kernel) {
  const TargetInfo &target = plan::getTarget(kernel.getPlan().getTarget());
  if (failed(checkPlan(kernel, target)))
    return failure();
  PlanAttr plan = kernel.getPlan();
  WalkResult walk = kernel.walk([&](Operation *op) {
    return failed(checkOp(op, kernel, plan)) ? WalkResult::interrupt()
                                             : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  auto numerics = kernel->getParentOp()->getAttrOfType<NumericsAttr>(
      AttnDialect::kNumericsAttrName);
  bool ieee = numerics && numerics.getF32Products() == F32Products::IEEE;
  if (failed(checkIeeeProducts(kernel, ieee)))
    return failure();
  return FlatKernel{kernel, target, ieee};
}
