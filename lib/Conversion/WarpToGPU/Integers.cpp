//===- Integers.cpp - integer arithmetic of addresses and lanes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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

int64_t Integers::getFirstWarp() {
  Operation *op = builder.getInsertionBlock()->getParentOp();
  for (; op; op = op->getParentOp()) {
    if (auto role = dyn_cast<RoleOp>(op))
      return role.getFirstWarp();
    if (auto first = op->getAttrOfType<IntegerAttr>(kFirstWarpAttrName))
      return first.getInt();
  }
  return 0;
}

/// Whether it is code of one warp, which counts as the only one.
static bool isAlone(OpBuilder &builder) {
  Operation *op = builder.getInsertionBlock()->getParentOp();
  for (; op; op = op->getParentOp())
    if (isa<BesideOp>(op) || op->hasAttr(kAloneAttrName))
      return true;
  return false;
}

Value Integers::warp() {
  if (isAlone(builder))
    return constant(0);
  return add(div(thread(), layout::warpSize), -getFirstWarp());
}

Value Integers::blockWarp() {
  return NVVM::ShflOp::create(builder, loc, builder.getI32Type(), constant(-1),
                              div(thread(), layout::warpSize), constant(0),
                              constant(31), NVVM::ShflKind::idx, UnitAttr());
}

Value Integers::warpgroup() {
  return add(blockWarpgroup(), -getFirstWarp() / layout::warpsPerGroup);
}

Value Integers::blockWarpgroup() {
  return div(blockWarp(), layout::warpsPerGroup);
}

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

static Value pointerTo(OpBuilder &builder, Location loc,
                       NVVM::NVVMMemorySpace space, Value address) {
  auto type = LLVM::LLVMPointerType::get(builder.getContext(),
                                         static_cast<unsigned>(space));
  return LLVM::IntToPtrOp::create(builder, loc, type, address);
}

Value Integers::toPointer(Value address) {
  return pointerTo(builder, loc, NVVM::NVVMMemorySpace::Shared, address);
}

Value Addresses::toPointer(Value address) {
  return pointerTo(builder, loc, NVVM::NVVMMemorySpace::Global, address);
}

Value attn::warp::offsetBy(OpBuilder &builder, Location loc, Value pointer,
                           int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(
      builder, loc, pointer.getType(), builder.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
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
