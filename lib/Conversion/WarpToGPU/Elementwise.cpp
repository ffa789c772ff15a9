//===- Elementwise.cpp - upstream arithmetic, register by register -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

#include "Fragments.h"
#include "MaskWords.h"
#include "Math.h"
#include "Offsets.h"
#include "Remainders.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Where the elements of a lane are, less where its first one is.
static SmallVector<layout::Coord> listPlaces(FragType type) {
  layout::Fragment fragment = layoutOf(type);
  SmallVector<layout::Coord> places;
  for (int64_t reg = 0, e = fragment.numRegisters(); reg < e; ++reg)
    for (int64_t element = 0, n = fragment.elementsPerRegister(); element < n;
         ++element)
      places.push_back(fragment.coordOf({0, 0, reg, element}));
  return places;
}

namespace {

/// Any op that upstream defines element by element: one copy per element.
struct LowerElementwise final : ConversionPattern {
  LowerElementwise(const TypeConverter &converter, MLIRContext *context,
                   const Positions &positions, const DecisionPaths &exact)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        positions(positions), exact(exact) {}

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

    std::optional<SmallVector<Value>> fromOffsets;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      SmallVector<layout::Coord> coords = listPlaces(type);
      fromOffsets = compareRemainders(compare, elements[0], elements[1], coords,
                                      positions, rewriter);
      if (!fromOffsets)
        fromOffsets = compareOffsets(compare, elements[0], elements[1], coords,
                                     positions, rewriter);
    } else if (isa<arith::AddIOp, arith::SubIOp>(op))
      fromOffsets =
          addOffsets(op, elements[0], elements[1], positions, rewriter);
    else if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
      fromOffsets = joinTests(op, elements[0], elements[1], rewriter);
    else if (auto fma = dyn_cast<math::FmaOp>(op))
      fromOffsets =
          scaleOffsets(fma, elements[0], elements[1], elements[2], rewriter);
    if (fromOffsets) {
      rewriter.replaceOpWithMultiple(op, {*fromOffsets});
      return success();
    }

    SmallVector<Type> registers;
    if (failed(getTypeConverter()->convertType(type, registers)))
      return failure();
    int64_t count = registers.size() * (isPacked(type) ? 2 : 1);
    bool isExact = exact.contains(op);
    SmallVector<Value> result;
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<Value> element;
      for (auto [operand, values] :
           llvm::zip_equal(op->getOperands(), elements))
        // A scalar operand (the condition of a select) serves them all.
        element.push_back(values[isa<FragType>(operand.getType()) ? i : 0]);
      if (isExact)
        if (Value rounded = computeExactly(rewriter, op, element)) {
          result.push_back(rounded);
          continue;
        }
      IRMapping map;
      map.map(op->getOperands(), element);
      Operation *copy = op->cloneWithoutRegions(map);
      copy->getResult(0).setType(type.getElementType());
      result.push_back(rewriter.insert(copy)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, result)});
    return success();
  }

private:
  const Positions &positions;
  const DecisionPaths &exact;
};

} // namespace

void attn::warp::populateElementwisePatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns,
                                             const Positions &positions,
                                             const DecisionPaths &exact) {
  patterns.add<LowerElementwise>(converter, patterns.getContext(), positions,
                                 exact);
}
