//===- AttnToLinalg.cpp - convert-attn-to-linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToLinalg.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOLINALG
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The tensor with its elements rounded to `element`, through f32 where that is
/// 16 bits wide.
static Value roundTensor(OpBuilder &b, Location loc, Value tensor,
                         Type element) {
  if (cast<RankedTensorType>(tensor.getType()).getElementType() == element)
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), tensor, empty, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange v) {
               Value value = v[0];
               for (Type type : {Type(b.getF32Type()), element})
                 if (value.getType().getIntOrFloatBitWidth() >
                     type.getIntOrFloatBitWidth())
                   value = arith::TruncFOp::create(b, loc, type, value);
               linalg::YieldOp::create(b, loc, value);
             })
      .getResult(0);
}

/// Lets uses of `from` that `keepsWide` see `wide`, and all others what `wide`
/// is when rounded to the type of `from`.
static void replaceRounding(OpBuilder &b, Value from, Value wide,
                            function_ref<bool(OpOperand &)> keepsWide) {
  Value rounded;
  for (OpOperand &use : llvm::make_early_inc_range(from.getUses())) {
    if (keepsWide(use)) {
      use.set(wide);
      continue;
    }
    if (!rounded) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(wide);
      auto type = cast<RankedTensorType>(from.getType());
      rounded = roundTensor(b, from.getLoc(), wide, type.getElementType());
      if (rounded.getType() != type)
        rounded = tensor::CastOp::create(b, from.getLoc(), type, rounded);
    }
    use.set(rounded);
  }
}

static SmallVector<Value> buildDefinition(OpBuilder &b, ScoredOp op,
                                          OraclePrecision precision) {
  if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
    return buildDefinition(b, backward, precision);
  if (auto jvp = dyn_cast<AttentionJvpOp>(op.getOperation()))
    return buildDefinition(b, jvp, precision);
  return buildDefinition(b, cast<AttentionOp>(op.getOperation()), precision);
}

/// Puts the definition in the place of the operation.
static void convert(ScoredOp op, OraclePrecision precision,
                    function_ref<bool(OpOperand &)> keepsWide) {
  OpBuilder b(op);
  SmallVector<Value> results = ::buildDefinition(b, op, precision);
  for (auto [from, wide] : llvm::zip_equal(op->getResults(), results))
    replaceRounding(b, from, wide, keepsWide);
  op->erase();
}

/// The type with elements of f64.
static RankedTensorType widened(Type type) {
  return cast<RankedTensorType>(type).clone(
      Float64Type::get(type.getContext()));
}

namespace {
struct AttnToLinalg : attn::impl::ConvertAttnToLinalgBase<AttnToLinalg> {
  using Base::Base;

  void runOnOperation() override {
    SetVector<func::FuncOp> funcs;
    WalkResult checked = getOperation()->walk([&](ScoredOp op) {
      auto func = op->getParentOfType<func::FuncOp>();
      if (!func) {
        op->emitOpError("wants to be in a func.func to become linalg");
        return WalkResult::interrupt();
      }
      if (op.getVariantsAttr() && !op.getVariantsAttr().empty()) {
        op->emitOpError("has variants: run attn-expand-variants first");
        return WalkResult::interrupt();
      }
      funcs.insert(func);
      return WalkResult::advance();
    });
    if (checked.wasInterrupted())
      return signalPassFailure();
    for (func::FuncOp func : funcs)
      if (precision == OraclePrecision::Input)
        func.walk([&](ScoredOp op) {
          convert(op, precision, [](OpOperand &) { return false; });
        });
      else if (failed(convertWide(func)))
        return signalPassFailure();
  }

  LogicalResult convertWide(func::FuncOp func);
  LogicalResult checkCalls(func::FuncOp func);
  void widenCalls(func::FuncOp func, ArrayRef<bool> wideResults);
};
} // namespace

/// The results of `func` that every return takes from an attention.
static SmallVector<bool> findWideResults(func::FuncOp func,
                                         ArrayRef<func::ReturnOp> returns) {
  SmallVector<bool> wide(func.getNumResults(), !returns.empty());
  for (func::ReturnOp op : returns)
    for (auto [number, value] : llvm::enumerate(op.getOperands()))
      wide[number] =
          wide[number] && isa_and_nonnull<ScoredOp>(value.getDefiningOp());
  return wide;
}

/// Only calls can follow a change of the function's type.
LogicalResult AttnToLinalg::checkCalls(func::FuncOp func) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(func, getOperation());
  if (!uses)
    return func.emitError("uses of '@") << func.getName() << "' are unknown";
  for (SymbolTable::SymbolUse use : *uses)
    if (!isa<func::CallOp>(use.getUser()))
      return use.getUser()->emitError("refers to '@")
             << func.getName() << "', whose results become f64; wanted a "
             << "func.call, got '" << use.getUser()->getName() << "'";
  return success();
}

void AttnToLinalg::widenCalls(func::FuncOp func, ArrayRef<bool> wideResults) {
  SmallVector<func::CallOp> calls;
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(func, getOperation());
  for (SymbolTable::SymbolUse use : *uses)
    calls.push_back(cast<func::CallOp>(use.getUser()));
  for (func::CallOp call : calls) {
    OpBuilder b(call);
    auto wide =
        func::CallOp::create(b, call.getLoc(), func, call.getOperands());
    for (auto [number, result] : llvm::enumerate(call.getResults()))
      if (wideResults[number])
        replaceRounding(b, result, wide.getResult(number),
                        [](OpOperand &) { return false; });
      else
        result.replaceAllUsesWith(wide.getResult(number));
    call.erase();
  }
}

LogicalResult AttnToLinalg::convertWide(func::FuncOp func) {
  SmallVector<func::ReturnOp> returns(func.getOps<func::ReturnOp>());
  SmallVector<bool> wideResults = findWideResults(func, returns);
  bool changesType = llvm::is_contained(wideResults, true);
  if (changesType && failed(checkCalls(func)))
    return failure();

  func.walk([&](ScoredOp op) {
    convert(op, precision, [&](OpOperand &use) {
      return isa<func::ReturnOp>(use.getOwner()) &&
             wideResults[use.getOperandNumber()];
    });
  });
  if (!changesType)
    return success();

  SmallVector<Type> results(func.getResultTypes());
  for (auto [wide, type] : llvm::zip_equal(wideResults, results))
    if (wide)
      type = widened(type);
  func.setFunctionType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), results));
  widenCalls(func, wideResults);
  return success();
}
