//===- RowProducts.cpp - sums of products of rows in memory ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

/// The tile in memory that `value` is in f32, of which one product takes one or
/// both factors. Others may read that tile, too.
static tile::LoadOp getLoad(Value value) {
  if (auto extended = value.getDefiningOp<arith::ExtFOp>())
    return llvm::all_equal(value.getUsers())
               ? extended.getIn().getDefiningOp<tile::LoadOp>()
               : tile::LoadOp();
  return value.getDefiningOp<tile::LoadOp>();
}

std::optional<RowProduct> attn::matchRowProduct(Operation *op) {
  auto sum = dyn_cast<vector::MultiDimReductionOp>(op);
  if (!sum || sum.getKind() != vector::CombiningKind::ADD ||
      sum.getReductionDims() != ArrayRef<int64_t>{1} ||
      !matchPattern(sum.getAcc(), m_AnyZeroFloat()) ||
      !sum.getSource().hasOneUse())
    return std::nullopt;
  auto product = sum.getSource().getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  RowProduct match{sum, getLoad(product.getLhs()), getLoad(product.getRhs())};
  for (tile::LoadOp load : {match.lhs, match.rhs}) {
    if (!load || !isConstantIntValue(load.getIndices().back(), 0))
      return std::nullopt;
    // Of whole rows.
    auto view = cast<MemRefType>(load.getView().getType());
    int64_t columns = view.getShape().back();
    if (ShapedType::isDynamic(columns) ||
        columns > load.getResult().getType().getDimSize(1))
      return std::nullopt;
  }
  auto leading = [](tile::LoadOp load) {
    return load.getIndices().drop_back();
  };
  if (leading(match.lhs) != leading(match.rhs) ||
      !warp::DotRowsOp::whyNot(match.lhs.getView().getType(),
                               match.rhs.getView().getType())
           .empty())
    return std::nullopt;
  return match;
}

void attn::convertRowProducts(RewriterBase &rewriter, warp::KernelOp kernel) {
  SmallVector<RowProduct> products;
  kernel.walk([&](Operation *op) {
    if (std::optional<RowProduct> product = matchRowProduct(op))
      products.push_back(*product);
  });
  for (RowProduct &product : products) {
    Operation *sum = product.sum;
    Location loc = sum->getLoc();
    rewriter.setInsertionPoint(sum);
    auto frag = [&](int64_t columns) {
      auto type = cast<VectorType>(sum->getResult(0).getType());
      return warp::FragType::get(
          kernel.getContext(), {type.getDimSize(0), columns},
          type.getElementType(), warp::FragKind::Acc, kernel.getWarps());
    };
    Value parts = warp::DotRowsOp::create(
        rewriter, loc, frag(layout::laneColumns), product.lhs.getView(),
        product.rhs.getView(), product.lhs.getIndices().drop_back());
    Value row = warp::ReduceOp::create(rewriter, loc, frag(1),
                                       warp::ReduceKind::Add, parts);
    Operation *factor = sum->getOperand(0).getDefiningOp();
    rewriter.replaceOpWithNewOp<UnrealizedConversionCastOp>(
        sum, sum->getResult(0).getType(), row);
    SetVector<Operation *> dead;
    dead.insert(factor);
    for (Value operand : factor->getOperands()) {
      Operation *op = operand.getDefiningOp();
      dead.insert(op);
      if (isa<arith::ExtFOp>(op))
        dead.insert(op->getOperand(0).getDefiningOp());
    }
    for (Operation *op : dead)
      if (op->use_empty())
        rewriter.eraseOp(op);
  }
}
