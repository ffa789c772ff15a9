//===- LowerContract.cpp - matrix products as loops -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

namespace {
/// The loop dimensions of acc[m, n] += lhs[m, k] * rhs[k, n], and where each
/// operand has them.
struct MatrixProduct {
  int64_t m, n, k;
  bool lhsIsTransposed, rhsIsTransposed, accIsTransposed;
};
} // namespace

/// The two dimensions a map projects to, or nothing.
static std::optional<std::pair<unsigned, unsigned>> twoDims(AffineMap map) {
  if (map.getNumDims() != 3 || map.getNumResults() != 2 ||
      !map.isProjectedPermutation())
    return std::nullopt;
  return std::make_pair(map.getDimPosition(0), map.getDimPosition(1));
}

static FailureOr<MatrixProduct> matchProduct(vector::ContractionOp op) {
  auto maps = op.getIndexingMapsArray();
  auto lhs = twoDims(maps[0]), rhs = twoDims(maps[1]), acc = twoDims(maps[2]);
  if (!lhs || !rhs || !acc || op.getKind() != vector::CombiningKind::ADD)
    return op.emitError("only a matrix product that adds, of rank-2 vectors, "
                        "can be lowered to loops");
  auto has = [](auto dims, unsigned d) {
    return dims->first == d || dims->second == d;
  };
  // Three dimensions, two per operand: each pair of operands shares one.
  unsigned m = has(lhs, acc->first) ? acc->first : acc->second;
  unsigned n = acc->first == m ? acc->second : acc->first;
  unsigned k = 3 - m - n;
  if (!has(lhs, m) || !has(lhs, k) || !has(rhs, n) || !has(rhs, k))
    return op.emitError("the three indexing maps are not those of a matrix "
                        "product");
  auto sizes = *op.getShapeForUnroll();
  return MatrixProduct{sizes[m],        sizes[n],        sizes[k],
                       lhs->first == k, rhs->first == n, acc->first == n};
}

static Value convert(OpBuilder &builder, Location loc, Value scalar,
                     Type type) {
  if (scalar.getType() == type)
    return scalar;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(builder, loc, type, scalar);
  return arith::ExtSIOp::create(builder, loc, type, scalar);
}

/// A copy of `value` (transposed if asked) in the accumulator's type: each
/// element is converted once, and the innermost loop reads along rows.
static Value pack(OpBuilder &builder, Location loc, TileBuffers &buffers,
                  Value value, int64_t rows, int64_t columns, Type element,
                  bool transposed) {
  Value buffer = buffers.lookup(value);
  if (buffer && !transposed &&
      cast<MemRefType>(buffer.getType()).getElementType() == element)
    return Value();
  Value packed = buffers.acquire(VectorType::get({rows, columns}, element));
  emitLoops(builder, loc, {rows, columns}, [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> from(at);
    if (transposed)
      std::swap(from[0], from[1]);
    Value scalar = buffers.element(b, loc, value, from);
    scalar = convert(b, loc, scalar, element);
    memref::StoreOp::create(b, loc, scalar, packed, at);
  });
  return packed;
}

/// acc + lhs * rhs, the same on every processor: a product that the
/// accumulator's type has exactly (of f16 and bf16 in f32) may be rounded or
/// not, any other is not. Where there is no instruction for that libm has it.
static Value multiplyAdd(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                         Value acc, bool isExact) {
  if (!isa<FloatType>(acc.getType())) {
    Value product = arith::MulIOp::create(builder, loc, lhs, rhs);
    return arith::AddIOp::create(builder, loc, product, acc);
  }
  if (!isExact)
    return math::FmaOp::create(builder, loc, lhs, rhs, acc);
  auto contract = arith::FastMathFlags::contract;
  Value product = arith::MulFOp::create(builder, loc, lhs, rhs, contract);
  return arith::AddFOp::create(builder, loc, product, acc, contract);
}

LogicalResult attn::lowerContract(OpBuilder &builder, TileBuffers &buffers,
                                  vector::ContractionOp op) {
  FailureOr<MatrixProduct> product = matchProduct(op);
  if (failed(product))
    return failure();
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getResultType());
  Type element = type.getElementType();
  bool isExact = 2 * op.getLhsType().getElementTypeBitWidth() <=
                 element.getIntOrFloatBitWidth();
  Value lhsCopy = pack(builder, loc, buffers, op.getLhs(), product->m,
                       product->k, element, product->lhsIsTransposed);
  Value rhsCopy = pack(builder, loc, buffers, op.getRhs(), product->k,
                       product->n, element, product->rhsIsTransposed);
  Value lhs = lhsCopy ? lhsCopy : buffers.lookup(op.getLhs());
  Value rhs = rhsCopy ? rhsCopy : buffers.lookup(op.getRhs());
  Value result = buffers.acquire(type);
  buffers.fill(builder, loc, op.getAcc(), result);
  emitLoops(builder, loc, {product->m, product->k, product->n},
            [&](OpBuilder &b, ValueRange at) {
              Value m = at[0], k = at[1], n = at[2];
              SmallVector<Value> where{m, n};
              if (product->accIsTransposed)
                std::swap(where[0], where[1]);
              Value x = memref::LoadOp::create(b, loc, lhs, ValueRange{m, k});
              Value y = memref::LoadOp::create(b, loc, rhs, ValueRange{k, n});
              Value sum = memref::LoadOp::create(b, loc, result, where);
              sum = multiplyAdd(b, loc, x, y, sum, isExact);
              memref::StoreOp::create(b, loc, sum, result, where);
            });
  for (Value copy : {lhsCopy, rhsCopy})
    if (copy)
      buffers.release(copy);
  buffers.bind(op.getResult(), result);
  return success();
}
