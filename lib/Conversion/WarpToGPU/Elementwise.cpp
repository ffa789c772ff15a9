//===- Elementwise.cpp - upstream arithmetic, register by register -*- C++
//-*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// Values that are one value plus constants: the columns of a lane.
struct Offsets {
  Value base;
  SmallVector<int64_t> constants;
};

} // namespace

static std::optional<Offsets> matchOffsets(ArrayRef<Value> values) {
  Offsets offsets;
  auto split = [](Value value) -> std::pair<Value, int64_t> {
    if (auto add = value.getDefiningOp<arith::AddIOp>())
      if (std::optional<int64_t> constant = getConstantIntValue(add.getRhs()))
        return {add.getLhs(), *constant};
    return {value, 0};
  };
  for (Value value : values) {
    auto [base, constant] = split(value);
    if (offsets.base && offsets.base != base)
      return std::nullopt;
    offsets.base = base;
    offsets.constants.push_back(constant);
  }
  return offsets;
}

/// base + c < limit as c < limit - base: the columns of a lane are then
/// immediate operands, and only the limits, one per row, take registers. The
/// difference saturates, so that it is right for every limit.
static std::optional<SmallVector<Value>>
compareWithOffsets(arith::CmpIOp op, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                   OpBuilder &builder) {
  if (!lhs.front().getType().isInteger(32) ||
      arith::CmpIPredicate::ult <= op.getPredicate())
    return std::nullopt;
  bool offsetsAreLeft = true;
  std::optional<Offsets> offsets = matchOffsets(lhs);
  ArrayRef<Value> limits = rhs;
  if (!offsets || llvm::all_equal(offsets->constants)) {
    offsetsAreLeft = false;
    offsets = matchOffsets(rhs);
    limits = lhs;
  }
  if (!offsets || llvm::all_equal(offsets->constants))
    return std::nullopt;

  Location loc = op.getLoc();
  Type i32 = builder.getI32Type();
  llvm::SmallDenseMap<Value, Value> differences;
  SmallVector<Value> result;
  for (auto [constant, limit] : llvm::zip_equal(offsets->constants, limits)) {
    Value &difference = differences[limit];
    if (!difference)
      difference =
          LLVM::SSubSat::create(builder, loc, i32, limit, offsets->base);
    Value number = arith::ConstantIntOp::create(builder, loc, constant, 32);
    result.push_back(arith::CmpIOp::create(
        builder, loc, op.getPredicate(), offsetsAreLeft ? number : difference,
        offsetsAreLeft ? difference : number));
  }
  return result;
}

namespace {

/// Any op that upstream defines element by element: one copy per element.
struct LowerElementwise final : ConversionPattern {
  LowerElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || op->getNumRegions() != 0)
      return rewriter.notifyMatchFailure(op, "not an elementwise op");
    auto type = dyn_cast<FragType>(op->getResult(0).getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not on fragments");

    Location loc = op->getLoc();
    SmallVector<SmallVector<Value>> elements;
    for (auto [operand, values] : llvm::zip_equal(op->getOperands(), operands))
      if (auto fragment = dyn_cast<FragType>(operand.getType()))
        elements.push_back(unpack(rewriter, loc, fragment, values));
      else
        elements.push_back(llvm::to_vector(values));

    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      if (std::optional<SmallVector<Value>> result =
              compareWithOffsets(compare, elements[0], elements[1], rewriter)) {
        rewriter.replaceOpWithMultiple(op, {*result});
        return success();
      }

    SmallVector<Type> registers;
    if (failed(getTypeConverter()->convertType(type, registers)))
      return failure();
    int64_t count = registers.size() * (isPacked(type) ? 2 : 1);
    SmallVector<Value> result;
    for (int64_t i = 0; i < count; ++i) {
      IRMapping map;
      for (auto [operand, values] :
           llvm::zip_equal(op->getOperands(), elements))
        // A scalar operand (the condition of a select) serves them all.
        map.map(operand, values[isa<FragType>(operand.getType()) ? i : 0]);
      Operation *copy = op->cloneWithoutRegions(map);
      copy->getResult(0).setType(type.getElementType());
      result.push_back(rewriter.insert(copy)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, result)});
    return success();
  }
};

} // namespace

void attn::warp::populateElementwisePatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<LowerElementwise>(converter, patterns.getContext());
}
