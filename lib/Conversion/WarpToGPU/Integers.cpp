//===- Integers.cpp - integer arithmetic of addresses and lanes -*- C++ -*-===//
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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// i32
//===----------------------------------------------------------------------===//

Value Integers::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value Integers::add(Value lhs, Value rhs) {
  return arith::AddIOp::create(builder, loc, lhs, rhs);
}

Value Integers::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, constant(rhs));
}

Value Integers::mul(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::MulIOp::create(builder, loc, lhs, constant(rhs));
}

Value Integers::div(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::DivUIOp::create(builder, loc, lhs, constant(rhs));
}

Value Integers::rem(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return constant(0);
  return arith::RemUIOp::create(builder, loc, lhs, constant(rhs));
}

Value Integers::bitXor(Value lhs, Value rhs) {
  return arith::XOrIOp::create(builder, loc, lhs, rhs);
}

Value Integers::bitXor(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : bitXor(lhs, constant(rhs));
}

Value Integers::bitAnd(Value lhs, int64_t rhs) {
  return arith::AndIOp::create(builder, loc, lhs, constant(rhs));
}

Value Integers::lessThan(Value lhs, int64_t rhs) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lhs,
                               constant(rhs));
}

Value Integers::fromIndex(Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
}

Value Integers::toIndex(Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    value);
}

Value Integers::thread() {
  return fromIndex(
      gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x).getResult());
}

Value Integers::lane() { return rem(thread(), layout::warpSize); }

Value Integers::warp() { return div(thread(), layout::warpSize); }

Value Integers::uniformWarp() {
  return NVVM::ShflOp::create(builder, loc, builder.getI32Type(), constant(-1),
                              warp(), constant(0), constant(31),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value Integers::warpgroup() { return div(uniformWarp(), 4); }

//===----------------------------------------------------------------------===//
// i64
//===----------------------------------------------------------------------===//

Value Addresses::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

Value Addresses::add(Value lhs, Value rhs) {
  return arith::AddIOp::create(builder, loc, lhs, rhs);
}

Value Addresses::mul(Value lhs, Value rhs) {
  return arith::MulIOp::create(builder, loc, lhs, rhs);
}

Value Addresses::mul(Value lhs, int64_t rhs) {
  return rhs == 1 ? lhs : mul(lhs, constant(rhs));
}

Value Addresses::fromIndex(Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

Value Addresses::fromInt(Value i32) {
  return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), i32);
}

Value Addresses::toPointer(Value address) {
  auto global = LLVM::LLVMPointerType::get(
      builder.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  return LLVM::IntToPtrOp::create(builder, loc, global, address);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

Value attn::warp::hideOrigin(OpBuilder &builder, Location loc, Value address) {
  bool wide = address.getType().isInteger(64);
  return LLVM::InlineAsmOp::create(
             builder, loc, address.getType(), address,
             wide ? "mov.b64 $0, $1;" : "mov.b32 $0, $1;",
             wide ? "=l,l" : "=r,r", /*has_side_effects=*/true,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(builder.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             ArrayAttr())
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

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
