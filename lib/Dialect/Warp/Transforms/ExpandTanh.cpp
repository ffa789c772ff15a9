//===- ExpandTanh.cpp - tanh of small numbers is a polynomial -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tanh of a softcap takes a special function for each score, as the weight
// does, and ten or more other operations: what the whole kernel waits for. Most
// scores are small beside their cap, and then an odd polynomial of degree 9
// does, of 7 operations in all. A warp asks about all scores that it holds:
//
//   w   = x (2 / R)
//   far = any |w| >= 2                  one bit of each w: its exponent's first
//   y   = far ? tanh (w R / 2) : w q(w^2)
//
// The bits of all w are joined by bitwise `or`, three operands an instruction.
// Infinities and NaN have this bit too. Where x is a product with one factor
// for all scores, that factor takes 2 / R: w is as cheap as x.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <array>

namespace attn::warp {
#define GEN_PASS_DEF_WARPEXPANDTANH
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// R. A wider range takes a higher degree for the same error: 11 for 1.0.
static constexpr double range = 0.8;

/// q of w q(w^2), the minimax polynomial of tanh(w R / 2) for |w| <= 2: within
/// 3.5e-7, and with its roundings within 2^-21, which `afn` allows.
static constexpr std::array<float, 5> coefficients = {
    0.39999805f, -0.021323153f, 0.0013502689f, -7.9071341e-5f, 3.0053908e-6f};

namespace {
/// tanh (base factor), or tanh base where there is no factor.
struct ScaledTanh {
  math::TanhOp op;
  Value base;
  SplatOp factor;
};

/// Fragments of one type.
class Fragments {
public:
  Fragments(OpBuilder &builder, Location loc, FragType type)
      : builder(builder), loc(loc), type(type) {}

  Value splat(Value scalar, FragType type) {
    return SplatOp::create(builder, loc, type, scalar);
  }
  Value constant(float value) {
    return splat(
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value)),
        type);
  }
  Value mul(Value lhs, Value rhs) {
    return arith::MulFOp::create(builder, loc, lhs, rhs);
  }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(builder, loc, x, y, z);
  }
  /// Whether this warp holds a magnitude of 2 or more, or no number.
  Value isAnyFar(Value w);
  /// w q(w^2).
  Value polynomial(Value w);

private:
  FragType withElement(Type element) {
    return cast<FragType>(type.cloneWith(std::nullopt, element));
  }

  OpBuilder &builder;
  Location loc;
  FragType type;
};
} // namespace

Value Fragments::isAnyFar(Value w) {
  FragType words = withElement(builder.getI32Type());
  constexpr int64_t leadingExponentBit = 1 << 30;
  auto splatWord = [&](int64_t word) {
    return splat(arith::ConstantIntOp::create(builder, loc, word, 32), words);
  };
  Value bits = CastOp::create(builder, loc, words, CastKind::Bitcast, w);
  Value bit =
      arith::AndIOp::create(builder, loc, bits, splatWord(leadingExponentBit));
  Value isFar = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                      bit, splatWord(0));
  return AnyOp::create(builder, loc, builder.getI1Type(), isFar);
}

Value Fragments::polynomial(Value w) {
  Value square = mul(w, w);
  Value sum = constant(coefficients.back());
  for (float coefficient : llvm::reverse(ArrayRef(coefficients).drop_back()))
    sum = fma(sum, square, constant(coefficient));
  return mul(w, sum);
}

/// A tile of approximate f32 numbers.
static bool isWanted(math::TanhOp op) {
  auto type = dyn_cast<FragType>(op.getType());
  return type && type.getKind() == FragKind::Acc &&
         type.getElementType().isF32() &&
         llvm::all_of(type.getShape(), [](int64_t size) { return size > 1; }) &&
         arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
}

static ScaledTanh matchScaled(math::TanhOp op) {
  if (auto product = op.getOperand().getDefiningOp<arith::MulFOp>()) {
    if (auto factor = product.getRhs().getDefiningOp<SplatOp>())
      return {op, product.getLhs(), factor};
    if (auto factor = product.getLhs().getDefiningOp<SplatOp>())
      return {op, product.getRhs(), factor};
  }
  return {op, op.getOperand(), nullptr};
}

/// 2 / R, times the factor where there is one.
static Value scaleFactor(RewriterBase &b, Fragments &f, ScaledTanh tanh) {
  constexpr double toWord = 2 / range;
  if (!tanh.factor)
    return f.constant(toWord);
  Value scalar = tanh.factor.getScalar();
  APFloat known(1.0f);
  if (matchPattern(scalar, m_ConstantFloat(&known)))
    return f.constant(known.convertToDouble() * toWord);
  // Computed where the factor is spread: outside of the loop.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(tanh.factor);
  Location loc = tanh.op.getLoc();
  Value number = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(toWord));
  return f.splat(arith::MulFOp::create(b, loc, scalar, number),
                 tanh.factor.getType());
}

static void expand(RewriterBase &b, ScaledTanh tanh) {
  math::TanhOp op = tanh.op;
  Operation *operand = op.getOperand().getDefiningOp();
  b.setInsertionPoint(op);
  Fragments f(b, op.getLoc(), cast<FragType>(op.getType()));
  Value w = f.mul(tanh.base, scaleFactor(b, f, tanh)); // x 2 / R
  Value isAnyFar = f.isAnyFar(w);
  auto createFar = [&](OpBuilder &, Location loc) {
    Value x = f.mul(w, f.constant(range / 2));
    Value y = math::TanhOp::create(b, loc, x, op.getFastmath());
    scf::YieldOp::create(b, loc, y);
  };
  auto createNear = [&](OpBuilder &, Location loc) {
    scf::YieldOp::create(b, loc, f.polynomial(w));
  };
  b.replaceOp(op,
              scf::IfOp::create(b, op.getLoc(), isAnyFar, createFar, createNear)
                  .getResults());
  if (operand && isOpTriviallyDead(operand))
    b.eraseOp(operand);
}

int64_t attn::warp::expandTanh(RewriterBase &rewriter, KernelOp kernel,
                               std::string &reason) {
  SmallVector<math::TanhOp> ops;
  kernel.walk([&](math::TanhOp op) {
    if (isWanted(op))
      ops.push_back(op);
  });
  for (math::TanhOp op : ops)
    expand(rewriter, matchScaled(op));
  if (ops.empty())
    reason = "no tanh of a tile may be approximate";
  return ops.size();
}

namespace {
struct WarpExpandTanh final
    : attn::SchedulePass<attn::warp::impl::WarpExpandTanhBase<WarpExpandTanh>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("tanh", expandTanh(rewriter, kernel, reason), reason);
  }
};
} // namespace
