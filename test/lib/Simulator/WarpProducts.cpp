//===- WarpProducts.cpp - matrix products of a warp -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"

#include "attn/Dialect/Warp/Analysis/PendingMmas.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

/// The rows of operand A that this warp multiplies, row by row.
FailureOr<std::vector<float>>
WarpRunner::readRows(Operation *op, Value a, bool isTransposed, FragType acc) {
  int64_t warps = acc.getLayout().rowWarps();
  int64_t rows = acc.getShape()[0] / warps;
  if (auto type = dyn_cast<FragType>(a.getType())) {
    int64_t depth = type.getShape()[1];
    std::vector<float> result(rows * depth);
    const Lanes &lanes = values.get(a);
    for (auto [number, coord] :
         llvm::enumerate(block.launch.spreads.get(type, warp)))
      result[localRow(coord.row, warps) * depth + coord.column] =
          toFloat(type.getElementType(),
                  lanes[number / layout::warpSize][number % layout::warpSize]);
    return result;
  }
  SlotUse use = useOf(a);
  if (std::string message = use.checkRead(blockWarp); !message.empty())
    return refuse(op, message);
  auto shape = llvm::cast<SlotType>(a.getType()).getShape();
  int64_t depth = shape[isTransposed ? 0 : 1];
  const std::vector<float> &elements = use.slot().elements;
  if (isTransposed && llvm::is_contained(use.slot().lost, true))
    return refuse(op, "reads a slot that a result went through");
  std::vector<float> result(rows * depth);
  for (int64_t row = 0; row < acc.getShape()[0]; ++row) {
    if (row / layout::groupRows % warps != warp % warps)
      continue;
    if (!isTransposed && use.slot().isLost(row))
      return refuse(op, "reads a row of a slot that a result went through");
    for (int64_t k = 0; k < depth; ++k)
      result[localRow(row, warps) * depth + k] =
          elements[isTransposed ? k * shape[1] + row : row * depth + k];
  }
  return result;
}

FailureOr<Lanes> WarpRunner::multiply(ProductOp op) {
  Value b = op.getB(), acc = op.getAcc();
  bool isTransposed = op.getTransposeB();
  FragType type = op.getAcc().getType();
  FailureOr<std::vector<float>> left =
      readRows(op, op.getA(), op.getTransposeA(), type);
  if (failed(left))
    return failure();
  SlotUse use = useOf(b);
  if (std::string message = use.checkRead(blockWarp); !message.empty())
    return refuse(op, message);
  if (llvm::is_contained(use.slot().lost, true))
    return refuse(op, "reads a slot that a result went through");
  ArrayRef<int64_t> shape = op.getB().getType().getShape();
  int64_t columns = type.getShape()[1], depth = shape[isTransposed ? 1 : 0];
  const std::vector<float> &right = use.slot().elements;
  int64_t warps = type.getLayout().rowWarps();
  int64_t rows = type.getShape()[0] / warps;
  std::vector<float> product(rows * columns, 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      const float *x = left->data() + row * depth;
      for (int64_t k = 0; k < depth; ++k)
        sum += x[k] * (isTransposed ? right[column * depth + k]
                                    : right[k * columns + column]);
      product[row * columns + column] = sum;
    }
  Lanes result = values.get(acc);
  for (auto [number, coord] :
       llvm::enumerate(block.launch.spreads.get(type, warp))) {
    uint64_t &bits =
        result[number / layout::warpSize][number % layout::warpSize];
    float sum = product[localRow(coord.row, warps) * columns + coord.column];
    bits = fromFloat(type.getElementType(),
                     toFloat(type.getElementType(), bits) + sum);
  }
  return result;
}

/// The number of a group wait, if the program says what is waited for.
static std::optional<int64_t> findYounger(WaitOp wait) {
  if (!getSourceThroughTurns(wait.getPending()).getDefiningOp<MmaAsyncOp>())
    return std::nullopt;
  return countYoungerMmas(wait);
}

WarpRunner::Step WarpRunner::wait(WaitOp op) {
  auto found = llvm::find_if(products, [&](const Product &product) {
    return product.number == pending.lookup(op.getPending());
  });
  if (found == products.end())
    return fail(op, "waits for a product that was waited for before");
  auto [entry, isNew] = block.launch.younger.insert({op, 0});
  if (isNew)
    entry->second = findYounger(op).value_or(0);
  // Products complete in the order of issue.
  if (std::distance(found, products.end()) <= entry->second)
    return fail(op, "leaves its product in flight: it waits until " +
                        Twine(entry->second) + " are");
  for (auto [use, isOfAll] : found->reads)
    use.endRead(blockWarp, isOfAll);
  values.set(op.getResult(), std::move(found->result));
  products.erase(found);
  ++frames.back().next;
  return Ran;
}

std::optional<LogicalResult> WarpRunner::executeProducts(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<LoadFragOp>([&](LoadFragOp load) -> LogicalResult {
        SlotUse use = useOf(load.getSlot());
        if (std::string message = use.checkRead(blockWarp); !message.empty())
          return refuse(op, message);
        FragType type = load.getResult().getType();
        auto shape = load.getSlot().getType().getShape();
        bool isRow = shape[0] == 1;
        const Spread &spread = block.launch.spreads.get(type, warp);
        Lanes result(spread.size() / layout::warpSize, Part(layout::warpSize));
        for (auto [number, coord] : llvm::enumerate(spread)) {
          int64_t row = isRow                 ? 0
                        : load.getTranspose() ? coord.column
                                              : coord.row;
          if (use.slot().isLost(row))
            return refuse(op, "reads a row of a slot that a result went "
                              "through");
          int64_t column = coord.row + coord.column - row;
          int64_t element = row * shape[1] + column;
          result[number / layout::warpSize][number % layout::warpSize] =
              fromFloat(type.getElementType(), use.slot().elements[element]);
        }
        values.set(load.getResult(), std::move(result));
        return success();
      })
      .Case<MmaOp>([&](MmaOp mma) -> LogicalResult {
        FailureOr<Lanes> result = multiply(mma);
        if (failed(result))
          return failure();
        if (getTraits(mma.getAtom()).isAsync)
          if (std::string message = block.issues.issue(blockWarp, op);
              !message.empty())
            return refuse(op, message);
        values.set(mma.getResult(), std::move(*result));
        return success();
      })
      .Case<MmaAsyncOp>([&](MmaAsyncOp mma) -> LogicalResult {
        FailureOr<Lanes> result = multiply(mma);
        if (failed(result))
          return failure();
        if (std::string message = block.issues.issue(blockWarp, op);
            !message.empty())
          return refuse(op, message);
        Product product = {
            numProducts++, op, std::move(*result), {}, frames.size()};
        if (isa<SlotType>(mma.getA().getType()))
          product.reads.push_back(
              {useOf(mma.getA()), /*isOfAll=*/mma.getTransposeA()});
        product.reads.push_back({useOf(mma.getB()), /*isOfAll=*/true});
        for (auto [use, isOfAll] : product.reads)
          use.beginRead(blockWarp, isOfAll);
        pending[mma.getResult()] = product.number;
        products.push_back(std::move(product));
        return success();
      })
      .Default([](Operation *) { return std::nullopt; });
}
