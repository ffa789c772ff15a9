//===- View.cpp - a strided memref taken apart ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "View.h"

#include "Integers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::warp;

FailureOr<View> View::get(OpBuilder &builder, Location loc, Value memref) {
  View view;
  view.type = cast<MemRefType>(memref.getType());
  Type element = view.type.getElementType();
  int64_t offset;
  SmallVector<int64_t> strides;
  if (failed(view.type.getStridesAndOffset(strides, offset)))
    return emitError(loc) << "expected a strided memref, got " << view.type;
  if (!element.isIntOrFloat())
    return emitError(loc) << "expected elements of an integer or float type, "
                             "got "
                          << view.type;
  view.elementBytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);

  Addresses addresses(builder, loc);
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  auto value = [&](int64_t fixed, Value dynamic) {
    return ShapedType::isDynamic(fixed) ? addresses.fromIndex(dynamic)
                                        : addresses.constant(fixed);
  };
  for (auto [size, dynamic] :
       llvm::zip_equal(view.type.getShape(), metadata.getSizes()))
    view.sizes.push_back(value(size, dynamic));
  for (auto [stride, dynamic] : llvm::zip_equal(strides, metadata.getStrides()))
    view.strides.push_back(value(stride, dynamic));
  view.address = addresses.fromIndex(
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref));
  if (offset != 0)
    view.address = addresses.add(
        view.address,
        addresses.mul(value(offset, metadata.getOffset()), view.elementBytes));
  return view;
}

Value View::addressOf(OpBuilder &builder, Location loc,
                      ArrayRef<Value> indices) const {
  Addresses addresses(builder, loc);
  Value elements;
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    Value term = addresses.mul(index, stride);
    elements = elements ? addresses.add(elements, term) : term;
  }
  if (!elements)
    return address;
  return addresses.add(address, addresses.mul(elements, elementBytes));
}

bool View::isContiguous() const {
  int64_t offset;
  SmallVector<int64_t> strides;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !strides.empty() && strides.back() == 1;
}

Value View::left(OpBuilder &builder, Location loc, unsigned dim,
                 Value at) const {
  auto narrow = [&](Value value) -> Value {
    return arith::TruncIOp::create(builder, loc, builder.getI32Type(), value);
  };
  return arith::SubIOp::create(builder, loc, narrow(sizes[dim]), narrow(at));
}

std::optional<int64_t> View::knownLeft(unsigned dim, Value at) const {
  std::optional<int64_t> index = getConstantIntValue(at);
  if (type.isDynamicDim(dim) || !index)
    return std::nullopt;
  return type.getDimSize(dim) - *index;
}
