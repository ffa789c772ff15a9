//===- Floats.h - expressions of f32 by instructions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_FLOATS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_FLOATS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <utility>

namespace attn::warp {

inline constexpr float log2OfE = 1.44269504088896340736f;
inline constexpr float restOfLog2OfE = 1.92596299e-8f; // log2(e) - log2OfE
inline constexpr float logOf2 = 0.69314718055994530942f;

/// f32 expressions.
struct Floats {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value constant(float value) {
    return mlir::arith::ConstantOp::create(builder, loc,
                                           builder.getF32FloatAttr(value));
  }
  mlir::Value call(llvm::StringRef intrinsic, mlir::ValueRange operands) {
    return mlir::LLVM::CallIntrinsicOp::create(
               builder, loc, builder.getF32Type(),
               builder.getStringAttr(intrinsic), operands)
        .getResult(0);
  }
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddFOp::create(builder, loc, lhs, rhs);
  }
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::SubFOp::create(builder, loc, lhs, rhs);
  }
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::MulFOp::create(builder, loc, lhs, rhs);
  }
  mlir::Value exp2(mlir::Value x) {
    return call("llvm.nvvm.ex2.approx.ftz", x);
  }
  mlir::Value exp(mlir::Value x) { return exp2(mul(x, constant(log2OfE))); }
  /// x log2(e), rounded, and what the rounding lost.
  std::pair<mlir::Value, mlir::Value> timesLog2OfE(mlir::Value x) {
    mlir::Value factor = constant(log2OfE), product = mul(x, factor);
    mlir::Value rest =
        fma(x, factor, mlir::arith::NegFOp::create(builder, loc, product));
    return {product, fma(x, constant(restOfLog2OfE), rest)};
  }
  mlir::Value log2(mlir::Value x) { return call("llvm.nvvm.lg2.approx.f", x); }
  mlir::Value log(mlir::Value x) { return mul(log2(x), constant(logOf2)); }
  mlir::Value reciprocal(mlir::Value x) {
    return call("llvm.nvvm.rcp.approx.ftz.f", x);
  }
  mlir::Value abs(mlir::Value x) { return call("llvm.fabs", x); }
  mlir::Value floor(mlir::Value x) { return call("llvm.floor", x); }
  mlir::Value copySign(mlir::Value x, mlir::Value y) {
    return call("llvm.copysign", {x, y});
  }
  mlir::Value divide(mlir::Value x, mlir::Value y) {
    return call("llvm.nvvm.div.full", {x, y});
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::LLVM::FMAOp::create(builder, loc, x, y, z);
  }
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_FLOATS_H
