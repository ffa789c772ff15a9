//===- AttnOps.cpp - operations of the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnInterfaces.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"

/// The size of a dimension of either of two tensors.
static int64_t knownSize(RankedTensorType a, RankedTensorType b, int64_t dim) {
  return a.isDynamicDim(dim) ? b.getDimSize(dim) : a.getDimSize(dim);
}

/// A region over `fixed` and the captures that yields what `body` returns.
static void buildBody(OpBuilder &b, Location loc, Region &region,
                      ArrayRef<Type> fixed, ValueRange captures,
                      attn::BodyBuilder body) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> types(fixed);
  llvm::append_range(types, captures.getTypes());
  SmallVector<Location> locs(types.size(), loc);
  Block *block = b.createBlock(&region, region.end(), types, locs);
  YieldOp::create(b, loc, body(b, loc, block->getArguments()));
}

void AttentionOp::build(OpBuilder &b, OperationState &state, Value query,
                        Value key, Value value, ValueRange captures,
                        BodyBuilder score, BodyBuilder mask) {
  auto q = cast<RankedTensorType>(query.getType());
  auto k = cast<RankedTensorType>(key.getType());
  auto v = cast<RankedTensorType>(value.getType());
  int64_t batch =
      q.isDynamicDim(kBatch) ? knownSize(k, v, kBatch) : q.getDimSize(kBatch);
  SmallVector<int64_t> rows = {batch, q.getDimSize(kHead),
                               q.getDimSize(kLength)};
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  auto lse = RankedTensorType::get(rows, f32);
  rows.push_back(v.getDimSize(kDim));
  auto output = RankedTensorType::get(rows, q.getElementType());

  state.addOperands({query, key, value});
  state.addOperands(captures);
  state.addTypes({output, lse});
  state.getOrAddProperties<Properties>().operandSegmentSizes = {
      1, 1, 1, 0, 0, static_cast<int32_t>(captures.size())};
  Region *scoreRegion = state.addRegion(), *maskRegion = state.addRegion();
  if (score)
    buildBody(b, state.location, *scoreRegion, {f32, i32, i32, i32, i32},
              captures, score);
  if (mask)
    buildBody(b, state.location, *maskRegion, {i32, i32, i32, i32}, captures,
              mask);
}

bool AttentionOp::isScalar(Type type) {
  return type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(16) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64) || type.isF16() || type.isBF16() ||
         type.isF32();
}

LogicalResult CaptureSearchOp::verify() {
  RankedTensorType type = getBuffer().getType();
  if (type.getRank() == 0 || !type.getElementType().isInteger(32))
    return emitOpError("searches a tensor of i32 and rank 1 or more, got ")
           << type;
  if (static_cast<int64_t>(getIndices().size()) == type.getRank() - 1)
    return success();
  return emitOpError("searches a tensor of rank ")
         << type.getRank() << " and wants " << type.getRank() - 1
         << " leading indices, got " << getIndices().size();
}

LogicalResult CaptureLoadOp::verify() {
  RankedTensorType type = getBuffer().getType();
  if (static_cast<int64_t>(getIndices().size()) == type.getRank())
    return success();
  return emitOpError("reads a tensor of rank ")
         << type.getRank() << " and wants as many indices, got "
         << getIndices().size();
}
