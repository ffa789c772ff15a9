//===- Math.cpp - scalar math by the instructions of the GPU -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 only; 16-bit operands go through f32. The approximations have relative
// errors of a few 2^-22 (PTX ISA), which the error rule of the numerics
// contract leaves room for. tanh.approx (2^-11) is not good enough; `afn` on a
// tanh allows an error that is small beside 1, and not beside tanh x. Kernels
// with products of ieee have no such room: theirs are `precise`. Neither have
// quotients, roots and logarithms of which an integer or a truth value is made
// (buckets of times), and powers and roots that all elements share: the slope
// of a linear bias is multiplied by a distance of thousands, and so would be
// its error. They are computed once for a tile. For each element a root that is
// rounded right has a branch, for operands that are subnormal: of a hundred of
// them ptxas makes code that spills, in three times as many seconds.
//
//===----------------------------------------------------------------------===//

#include "Math.h"

#include "Floats.h"
#include "Logarithms.h"
#include "Sines.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/Support/MathExtras.h"
#include <array>
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// 1 / x of 1 <= x < 2^126 within 4e-9, without a special function. The bits of
/// `magic` less those of x have the opposite exponent, and are 1 / x within 5.1
/// %; a step of Newton's, of which `two` spreads the error to both sides,
/// leaves 0.15 %, one of the third order next to nothing.
static Value reciprocalBySteps(Floats &f, Value x) {
  OpBuilder &builder = f.builder;
  Location loc = f.loc;
  constexpr int32_t magic = 0x7ef2c000;
  constexpr float two = 2.0015f;
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  Value bits = arith::BitcastOp::create(builder, loc, i32, x);
  Value from = arith::ConstantIntOp::create(builder, loc, magic, 32);
  Value guess = arith::BitcastOp::create(
      builder, loc, f32, arith::SubIOp::create(builder, loc, from, bits));
  Value minusX = arith::NegFOp::create(builder, loc, x);
  Value near = f.mul(guess, f.fma(minusX, guess, f.constant(two)));
  Value rest = f.fma(minusX, near, f.constant(1));
  return f.fma(near, f.fma(rest, rest, rest), near);
}

static Value lowerExp2(Floats &f, ValueRange x) { return f.exp2(x[0]); }
static Value lowerExp(Floats &f, ValueRange x) { return f.exp(x[0]); }
static Value lowerLog2(Floats &f, ValueRange x) { return f.log2(x[0]); }
static Value lowerLog(Floats &f, ValueRange x) { return f.log(x[0]); }
static Value lowerSin(Floats &f, ValueRange x) { return computeSine(f, x[0]); }
static Value lowerCos(Floats &f, ValueRange x) {
  return computeCosine(f, x[0]);
}
/// log(a + sqrt(a^2 + 1)) of a = |x|, with the sign of x: -5000 + sqrt(5000^2 +
/// 1) is 0 in f32. Where the square is infinite the root is a.
static Value lowerAsinh(Floats &f, ValueRange x) {
  Value magnitude = f.abs(x[0]), one = f.constant(1);
  Value root =
      math::SqrtOp::create(f.builder, f.loc, f.fma(magnitude, magnitude, one));
  root =
      arith::MinNumFOp::create(f.builder, f.loc, root, f.add(magnitude, one));
  Value result = math::LogOp::create(f.builder, f.loc, f.add(magnitude, root));
  return f.copySign(result, x[0]);
}

static Value lowerDiv(Floats &f, ValueRange x) { return f.divide(x[0], x[1]); }
static Value lowerPreciseDiv(Floats &f, ValueRange x) {
  return f.call("llvm.nvvm.div.rn.f", {x[0], x[1]});
}

static Value lowerPreciseSqrt(Floats &f, ValueRange x) {
  return f.call("llvm.nvvm.sqrt.rn.f", x);
}

static Value lowerPreciseLog(Floats &f, ValueRange x) {
  return computeLog(f, x[0]);
}

static Value lowerPreciseLog2(Floats &f, ValueRange x) {
  return computeLog2(f, x[0]);
}

Value attn::warp::computeExactly(OpBuilder &builder, Operation *op,
                                 ValueRange operands) {
  auto formula = isa<arith::DivFOp>(op)  ? lowerPreciseDiv
                 : isa<math::SqrtOp>(op) ? lowerPreciseSqrt
                 : isa<math::LogOp>(op)  ? lowerPreciseLog
                 : isa<math::Log2Op>(op) ? lowerPreciseLog2
                                         : nullptr;
  if (!formula)
    return nullptr;
  Location loc = op->getLoc();
  Type type = operands.front().getType();
  SmallVector<Value> wide = llvm::to_vector(operands);
  if (!type.isF32())
    for (Value &operand : wide)
      operand =
          arith::ExtFOp::create(builder, loc, builder.getF32Type(), operand);
  Floats floats{builder, loc};
  Value result = formula(floats, wide);
  if (type.isF32())
    return result;
  return arith::TruncFOp::create(builder, loc, type, result);
}

void attn::warp::lowerExactMath(RewriterBase &rewriter, gpu::GPUFuncOp function,
                                const DecisionPaths &exact) {
  function.walk([&](Operation *op) {
    bool isExact = isa<math::SqrtOp>(op) ||
                   (isa<arith::DivFOp, math::LogOp, math::Log2Op>(op) &&
                    exact.contains(op));
    if (!isExact || !isa<FloatType>(op->getResult(0).getType()))
      return;
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(op, computeExactly(rewriter, op, op->getOperands()));
  });
}

/// 2^t with t the rounded x log2(e), times e^r for what t lost: r is so small
/// that 1 + r will do. Not where the result may be infinite, or nearly 0.
static Value lowerPreciseExp(Floats &f, ValueRange operands) {
  Value x = operands[0];
  auto [t, rest] = f.timesLog2OfE(x);
  Value power = f.exp2(t);
  Value result = f.fma(power, f.mul(rest, f.constant(logOf2)), power);
  Value isSmall = arith::CmpFOp::create(
      f.builder, f.loc, arith::CmpFPredicate::OLT, f.abs(x), f.constant(88));
  return arith::SelectOp::create(f.builder, f.loc, isSmall, result, power);
}

/// 2^x within 0.8 units in the last place: 2^n of the nearest integer, which is
/// exact, times the Taylor polynomial of 2^r with |r| <= 1/2, whose rest is
/// below 2^-29. `rest` is what x lacks.
static Value raiseTwo(Floats &f, Value x, Value rest) {
  Value n = f.call("llvm.roundeven", x);
  Value r = f.sub(x, n);
  if (rest)
    r = f.add(r, rest);
  // Infinities and NaN are what 2^n makes of them.
  Value isSmall = arith::CmpFOp::create(
      f.builder, f.loc, arith::CmpFPredicate::OLT, f.abs(x), f.constant(1024));
  r = arith::SelectOp::create(f.builder, f.loc, isSmall, r, f.constant(0));
  constexpr int degree = 8;
  std::array<double, degree + 1> coefficients = {1};
  for (int i = 1; i <= degree; ++i)
    coefficients[i] = coefficients[i - 1] * llvm::numbers::ln2 / i;
  Value power = f.constant(coefficients[degree]);
  for (int i = degree - 1; i >= 0; --i)
    power = f.fma(power, r, f.constant(coefficients[i]));
  // In two steps: the power may be below 1 where 2^n is infinite.
  Value half = f.exp2(f.sub(n, f.constant(1)));
  return f.mul(f.mul(power, half), f.constant(2));
}

void attn::warp::lowerSharedPowers(RewriterBase &rewriter,
                                   gpu::GPUFuncOp function) {
  function.walk([&](Operation *op) {
    if (!isa<math::Exp2Op, math::ExpOp>(op) ||
        !op->getResult(0).getType().isF32())
      return;
    rewriter.setInsertionPoint(op);
    Floats floats{rewriter, op->getLoc()};
    Value x = op->getOperand(0);
    if (isa<math::Exp2Op>(op)) {
      rewriter.replaceOp(op, raiseTwo(floats, x, nullptr));
      return;
    }
    auto [scaled, rest] = floats.timesLog2OfE(x);
    rewriter.replaceOp(op, raiseTwo(floats, scaled, rest));
  });
}

static Value lowerSqrt(Floats &f, ValueRange x) {
  return f.call("llvm.nvvm.sqrt.approx.f", x);
}
static Value lowerRsqrt(Floats &f, ValueRange x) {
  return f.call("llvm.nvvm.rsqrt.approx.f", x);
}

/// |x|^y = 2^(y log2 |x|); a negative x wants an integer y, and an odd y keeps
/// its sign.
static Value lowerPow(Floats &f, ValueRange operands) {
  OpBuilder &b = f.builder;
  Value x = operands[0], y = operands[1];
  Value magnitude = f.exp2(f.mul(y, f.log2(f.abs(x))));
  auto equal = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpFOp::create(b, f.loc, arith::CmpFPredicate::OEQ, lhs, rhs);
  };
  auto select = [&](Value condition, Value lhs, Value rhs) -> Value {
    return arith::SelectOp::create(b, f.loc, condition, lhs, rhs);
  };
  Value half = f.mul(y, f.constant(0.5f));
  Value isInteger = equal(f.floor(y), y), isEven = equal(f.floor(half), half);
  Value isNegative = arith::CmpFOp::create(b, f.loc, arith::CmpFPredicate::OLT,
                                           x, f.constant(0));
  Value negative =
      select(isEven, magnitude, arith::NegFOp::create(b, f.loc, magnitude));
  negative = select(isInteger, negative,
                    f.constant(std::numeric_limits<float>::quiet_NaN()));
  Value result = select(isNegative, negative, magnitude);
  return select(equal(y, f.constant(0)), f.constant(1), result);
}

static Value lowerLog10(Floats &f, ValueRange x) {
  return f.mul(f.log2(x[0]), f.constant(0.30102999566398119521f));
}

/// exp(x) - 1 and log(1 + x) lose nothing that a score would notice.
static Value lowerExpM1(Floats &f, ValueRange x) {
  return f.sub(f.exp(x[0]), f.constant(1));
}
static Value lowerLog1P(Floats &f, ValueRange x) {
  return f.log(f.add(x[0], f.constant(1)));
}

/// The arc tangent of the smaller coordinate by the larger one, from which
/// octants follow: upstream's formula is NaN at the origin, where C's is 0, or
/// pi where x is -0. The quotient is rounded once, so diagonals are at pi / 4.
static Value lowerAtan2(Floats &f, ValueRange operands) {
  constexpr float pi = llvm::numbers::pif;
  OpBuilder &b = f.builder;
  Value y = operands[0], x = operands[1], zero = f.constant(0);
  Value up = f.abs(y), along = f.abs(x);
  auto compare = [&](arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, f.loc, predicate, lhs, rhs).getResult();
  };
  auto choose = [&](Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, f.loc, condition, yes, no).getResult();
  };
  Value isSteep = compare(arith::CmpFPredicate::OGT, up, along);
  Value low = choose(isSteep, along, up), high = choose(isSteep, up, along);
  // Of infinities 1, of zeros 0.
  Value isEqual = compare(arith::CmpFPredicate::OEQ, low, high);
  Value ofEqual = choose(compare(arith::CmpFPredicate::OEQ, high, zero), zero,
                         f.constant(1));
  Value quotient =
      choose(isEqual, ofEqual, f.call("llvm.nvvm.div.rn.f", {low, high}));
  Value angle = math::AtanOp::create(b, f.loc, quotient);
  angle = choose(isSteep, f.sub(f.constant(pi / 2), angle), angle);
  Value isLeft =
      compare(arith::CmpFPredicate::OLT, f.copySign(f.constant(1), x), zero);
  angle = choose(isLeft, f.sub(f.constant(pi), angle), angle);
  return f.copySign(angle, y);
}

/// tanh x = sign(x) (1 - 2 / (exp(2 |x|) + 1)); near 0 the odd Taylor
/// polynomial, as the difference cancels there.
static Value lowerTanh(Floats &f, ValueRange operands) {
  OpBuilder &b = f.builder;
  Value x = operands[0];
  Value magnitude = f.abs(x);
  Value exponential = f.exp2(f.mul(magnitude, f.constant(2 * log2OfE)));
  Value far = f.sub(
      f.constant(1),
      f.mul(f.constant(2), f.reciprocal(f.add(exponential, f.constant(1)))));
  far = f.copySign(far, x);
  // |x| < 1/4: error below 2^-23.
  Value square = f.mul(x, x);
  Value series = f.constant(62.0f / 2835);
  for (float c : {-17.0f / 315, 2.0f / 15, -1.0f / 3})
    series = LLVM::FMAOp::create(b, f.loc, series, square, f.constant(c));
  Value near = LLVM::FMAOp::create(b, f.loc, f.mul(series, square), x, x);
  Value isNear = arith::CmpFOp::create(b, f.loc, arith::CmpFPredicate::OLT,
                                       magnitude, f.constant(0.25f));
  return arith::SelectOp::create(b, f.loc, isNear, near, far);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// tanh x = 1 - 2 / (exp(2 x) + 1) for all x, where an error of 2^-21 is small
/// beside 1: a softcap's.
/// Special functions are what such scores wait for: two of them for each, and
/// that of the weight (16 in a clock of a multiprocessor; of the operations of
/// `reciprocalBySteps` SM90 does 128, SM80 64).
struct LowerApproximateTanh final : OpRewritePattern<math::TanhOp> {
  LowerApproximateTanh(MLIRContext *context, bool bySteps)
      : OpRewritePattern(context, /*benefit=*/3), bySteps(bySteps) {}

  LogicalResult matchAndRewrite(math::TanhOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "not approximate, or not f32");
    Floats f{rewriter, op.getLoc()};
    Value x = op.getOperand();
    float factor = 2 * log2OfE;
    // The factor of a product that nobody else uses: one rounding for two.
    APFloat inner(1.0f);
    auto product = x.getDefiningOp<arith::MulFOp>();
    if (product && product->hasOneUse() &&
        matchPattern(product.getRhs(), m_ConstantFloat(&inner))) {
      x = product.getLhs();
      factor *= inner.convertToFloat();
    }
    Value exponential = f.exp2(f.mul(x, f.constant(factor)));
    Value sum = f.add(exponential, f.constant(1));
    if (bySteps) {
      constexpr float most = 0x1p100f;
      sum = arith::MinimumFOp::create(rewriter, op.getLoc(), sum,
                                      f.constant(most));
    }
    Value share = bySteps ? reciprocalBySteps(f, sum) : f.reciprocal(sum);
    if (bySteps)
      foldIntoProducts(op, share, rewriter);
    rewriter.setInsertionPointAfterValue(share);
    rewriter.replaceOp(op, f.fma(share, f.constant(-2), f.constant(1)));
    return success();
  }

private:
  /// c tanh x + b = -2 c share + (c + b): what a weight is a power of. All of a
  /// row have one b.
  static void foldIntoProducts(math::TanhOp op, Value share,
                               PatternRewriter &rewriter) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      APFloat factor(1.0f);
      if (!isa<math::FmaOp, LLVM::FMAOp>(user) ||
          user->getOperand(0) != op.getResult() ||
          !matchPattern(user->getOperand(1), m_ConstantFloat(&factor)))
        continue;
      rewriter.setInsertionPoint(user);
      Floats f{rewriter, user->getLoc()};
      float c = factor.convertToFloat();
      Value rest = f.add(f.constant(c), user->getOperand(2));
      rewriter.replaceOp(user, f.fma(share, f.constant(-2 * c), rest));
    }
  }

  bool bySteps;
};

/// A scalar float op by a formula in f32.
template <typename Op, Value (*formula)(Floats &, ValueRange)>
struct LowerMath final : OpRewritePattern<Op> {
  LowerMath(MLIRContext *context)
      : OpRewritePattern<Op>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    auto floatType = dyn_cast<FloatType>(type);
    if (!floatType || floatType.getWidth() > 32)
      return rewriter.notifyMatchFailure(op, "not an f16, bf16 or f32 scalar");
    Location loc = op.getLoc();
    SmallVector<Value> operands = llvm::to_vector(op->getOperands());
    if (!type.isF32())
      for (Value &operand : operands)
        operand = arith::ExtFOp::create(rewriter, loc, rewriter.getF32Type(),
                                        operand);
    Floats floats{rewriter, loc};
    Value result = formula(floats, operands);
    if (!type.isF32())
      result = arith::TruncFOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// A scalar op that is one LLVM intrinsic with a native instruction.
template <typename Op, typename Target>
struct LowerToIntrinsic final : OpRewritePattern<Op> {
  LowerToIntrinsic(MLIRContext *context)
      : OpRewritePattern<Op>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<Target>(op, op.getType(), op->getOperands());
    return success();
  }
};

/// As before, by the name of the intrinsic: upstream's conversion of kernels to
/// nvvm refuses the op of these, in favour of libdevice.
template <typename Op>
struct LowerToNamedIntrinsic final : OpRewritePattern<Op> {
  LowerToNamedIntrinsic(MLIRContext *context, StringRef intrinsic)
      : OpRewritePattern<Op>(context, /*benefit=*/2), intrinsic(intrinsic) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(intrinsic), op->getOperands());
    return success();
  }

  StringRef intrinsic;
};

/// |x| of an integer.
struct LowerAbsI final : OpRewritePattern<math::AbsIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AbsIOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Value zero = arith::ConstantOp::create(rewriter, op.getLoc(),
                                           rewriter.getZeroAttr(x.getType()));
    Value negated = arith::SubIOp::create(rewriter, op.getLoc(), zero, x);
    rewriter.replaceOpWithNewOp<arith::MaxSIOp>(op, x, negated);
    return success();
  }
};

/// x / 2^n rounded down: a shift, which LLVM sees through where elements that
/// are constants apart have the same quotient. Of positions, not of indices.
struct LowerFloorDivByPower final : OpRewritePattern<arith::FloorDivSIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::FloorDivSIOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<int64_t> divisor = getConstantIntValue(op.getRhs());
    if (!op.getType().isInteger(32) || !divisor || *divisor <= 0 ||
        !llvm::isPowerOf2_64(*divisor))
      return rewriter.notifyMatchFailure(op, "not by a power of two");
    Value places = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        rewriter.getIntegerAttr(op.getType(), llvm::Log2_64(*divisor)));
    rewriter.replaceOpWithNewOp<arith::ShRSIOp>(op, op.getLhs(), places);
    return success();
  }
};

} // namespace

static void populateMathPatterns(RewritePatternSet &patterns, bool precise,
                                 bool bySteps) {
  if (precise)
    patterns.add<LowerMath<math::ExpOp, lowerPreciseExp>,
                 LowerMath<arith::DivFOp, lowerPreciseDiv>,
                 LowerMath<math::SqrtOp, lowerPreciseSqrt>>(
        patterns.getContext());
  else
    patterns.add<LowerMath<math::ExpOp, lowerExp>,
                 LowerMath<arith::DivFOp, lowerDiv>,
                 LowerMath<math::SqrtOp, lowerSqrt>>(patterns.getContext());
  patterns.add<
      LowerMath<math::Exp2Op, lowerExp2>, LowerMath<math::ExpM1Op, lowerExpM1>,
      LowerMath<math::Log2Op, lowerLog2>, LowerMath<math::LogOp, lowerLog>,
      LowerMath<math::Log10Op, lowerLog10>,
      LowerMath<math::Log1pOp, lowerLog1P>,
      LowerMath<math::RsqrtOp, lowerRsqrt>, LowerMath<math::PowFOp, lowerPow>,
      LowerMath<math::TanhOp, lowerTanh>, LowerMath<math::Atan2Op, lowerAtan2>,
      LowerMath<math::SinOp, lowerSin>, LowerMath<math::CosOp, lowerCos>,
      LowerMath<math::AsinhOp, lowerAsinh>>(patterns.getContext());
  patterns.add<LowerApproximateTanh>(patterns.getContext(), bySteps);
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerToNamedIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
  patterns.add<LowerToNamedIntrinsic<math::CopySignOp>>(context,
                                                        "llvm.copysign");
  patterns.add<LowerToNamedIntrinsic<math::FloorOp>>(context, "llvm.floor");
  patterns.add<LowerToNamedIntrinsic<math::CeilOp>>(context, "llvm.ceil");
  patterns.add<LowerToNamedIntrinsic<math::TruncOp>>(context, "llvm.trunc");
  patterns.add<LowerToNamedIntrinsic<math::RoundEvenOp>>(context,
                                                         "llvm.roundeven");
  patterns.add<LowerToIntrinsic<math::FmaOp, LLVM::FMAOp>,
               LowerToIntrinsic<math::CtPopOp, LLVM::CtPopOp>,
               LowerToIntrinsic<arith::MaxNumFOp, LLVM::MaxNumOp>,
               LowerToIntrinsic<arith::MinNumFOp, LLVM::MinNumOp>, LowerAbsI>(
      patterns.getContext());
  // Upstream's, where there is no instruction: polynomials, and formulae with
  // the ops above. In f32, too.
  auto anyOther = [](StringRef name) {
    return llvm::is_contained({"math.atan", "math.erf", "math.erfc",
                               "math.asin", "math.acos", "math.cbrt"},
                              name);
  };
  populateMathF32ExpansionPatterns(patterns, anyOther);
  populateMathPolynomialApproximationPatterns(patterns, anyOther);
  math::populateExpansionPatterns(patterns,
                                  {"sinh", "cosh", "tan", "acosh", "atanh",
                                   "ctlz", "fpowi", "ipowi", "round"});
  patterns.add<LowerFloorDivByPower>(context, /*benefit=*/2);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
}

/// What upstream's conversion would not lower, or by calls of libdevice.
static bool needsLowering(Operation *op) {
  if (isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp, math::IsNormalOp>(op))
    return false;
  return isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
         isa<arith::DivFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
}

LogicalResult attn::warp::lowerMath(gpu::GPUFuncOp function, bool precise,
                                    bool bySteps) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op->getDialect() && needsLowering(op))
      ops.push_back(op);
  });
  RewritePatternSet patterns(function.getContext());
  populateMathPatterns(patterns, precise, bySteps);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(ops, std::move(patterns), config);
  WalkResult left = function.walk([](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
        !needsLowering(op))
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' on "
                    << op->getResultTypes().front()
                    << " cannot be computed on the GPU";
    return WalkResult::interrupt();
  });
  return failure(left.wasInterrupted());
}
