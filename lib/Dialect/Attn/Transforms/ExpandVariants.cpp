//===- ExpandVariants.cpp - attn-expand-variants -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/ExpandVariants.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_ATTNEXPANDVARIANTSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

/// An i32 that a region needs: known, or the capture of that number.
struct VariantFact {
  int64_t value = ShapedType::kDynamic;
  unsigned capture = 0;
};

/// What the listed variants need.
struct Needs {
  bool offset = false, heads = false, score = false, mask = false;
};

/// The new operation while its regions are built.
struct VariantExpansion {
  AttentionOp from, to;
  VariantFact offset, heads;
};

} // namespace

static Needs findNeeds(AttentionOp op) {
  Needs needs;
  auto needsOffset = [&](Alignment alignment) {
    needs.offset |= alignment == Alignment::BottomRight;
  };
  for (Attribute variant : op.getVariantsAttr()) {
    if (auto causal = dyn_cast<CausalAttr>(variant)) {
      needs.mask = true;
      needsOffset(causal.getAlignment());
    } else if (auto window = dyn_cast<WindowAttr>(variant)) {
      if (window.getLeft() < 0 && window.getRight() < 0)
        continue;
      needs.mask = true;
      needsOffset(window.getAlignment());
    } else if (auto alibi = dyn_cast<AlibiAttr>(variant)) {
      needs.score = needs.heads = true;
      needsOffset(alibi.getAlignment());
    } else {
      needs.score = true;
    }
  }
  return needs;
}

/// The size that either of two tensors knows.
static int64_t knownSize(Value a, Value b, int64_t dim) {
  int64_t size = cast<RankedTensorType>(a.getType()).getDimSize(dim);
  return ShapedType::isDynamic(size)
             ? cast<RankedTensorType>(b.getType()).getDimSize(dim)
             : size;
}

/// Sk - Sq, as a capture where the types do not tell.
static VariantFact makeOffset(OpBuilder &b, AttentionOp op,
                              SmallVectorImpl<Value> &captures) {
  constexpr int64_t L = AttentionOp::kLength;
  int64_t keys = knownSize(op.getKey(), op.getValue(), L);
  int64_t queries = knownSize(op.getQuery(), op.getOutput(), L);
  if (!ShapedType::isDynamic(keys) && !ShapedType::isDynamic(queries))
    return VariantFact{keys - queries, 0};
  Location loc = op.getLoc();
  Value key = tensor::DimOp::create(b, loc, op.getKey(), L);
  Value query = tensor::DimOp::create(b, loc, op.getQuery(), L);
  Value offset = arith::SubIOp::create(b, loc, key, query);
  captures.push_back(
      arith::IndexCastOp::create(b, loc, b.getI32Type(), offset));
  return VariantFact{ShapedType::kDynamic, unsigned(captures.size() - 1)};
}

/// The number of query heads, as a capture where the types do not tell.
static VariantFact makeHeads(OpBuilder &b, AttentionOp op,
                             SmallVectorImpl<Value> &captures) {
  constexpr int64_t H = AttentionOp::kHead;
  int64_t heads = knownSize(op.getQuery(), op.getOutput(), H);
  if (!ShapedType::isDynamic(heads))
    return VariantFact{heads, 0};
  Location loc = op.getLoc();
  Value dim = tensor::DimOp::create(b, loc, op.getQuery(), H);
  captures.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), dim));
  return VariantFact{ShapedType::kDynamic, unsigned(captures.size() - 1)};
}

static Value makeI32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

static Value makeF32(OpBuilder &b, Location loc, float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

/// i + offset + distance: the key on the diagonal of query i, moved.
static Value makeDiagonal(OpBuilder &b, Location loc, const VariantExpansion &e,
                          Value i, ValueRange captures, Alignment alignment,
                          int64_t distance) {
  if (alignment == Alignment::BottomRight) {
    if (ShapedType::isDynamic(e.offset.value))
      i = arith::AddIOp::create(b, loc, i, captures[e.offset.capture]);
    else
      distance += e.offset.value;
  }
  if (distance == 0)
    return i;
  return arith::AddIOp::create(b, loc, i, makeI32(b, loc, distance));
}

/// cap * tanh(x * (1 / cap)).
static Value makeSoftcap(OpBuilder &b, Location loc, SoftcapAttr softcap,
                         Value x) {
  float cap = static_cast<float>(softcap.getCap().getValueAsDouble());
  Value ratio = arith::MulFOp::create(b, loc, x, makeF32(b, loc, 1 / cap));
  Value bent = math::TanhOp::create(b, loc, ratio);
  return arith::MulFOp::create(b, loc, bent, makeF32(b, loc, cap));
}

/// Whether a variant hides all keys after the diagonal.
static bool hidesBehind(ArrayAttr variants, Alignment alignment) {
  return llvm::any_of(variants, [&](Attribute variant) {
    if (auto causal = dyn_cast<CausalAttr>(variant))
      return causal.getAlignment() == alignment;
    auto window = dyn_cast<WindowAttr>(variant);
    return window && window.getAlignment() == alignment &&
           window.getRight() == 0;
  });
}

/// x - 2^(-8 (h + 1) / H) * |i + offset - j|; without the bars where the keys
/// for which they matter are hidden.
static Value makeAlibi(OpBuilder &b, Location loc, const VariantExpansion &e,
                       AlibiAttr alibi, Value x, Block &block) {
  Type f32 = b.getF32Type();
  ValueRange arguments = block.getArguments();
  Value h = arguments[2], i = arguments[3], j = arguments[4];
  ValueRange captures = arguments.drop_front(AttentionOp::kScoreArguments);
  Value rate;
  if (ShapedType::isDynamic(e.heads.value)) {
    Value heads =
        arith::SIToFPOp::create(b, loc, f32, captures[e.heads.capture]);
    rate = arith::DivFOp::create(b, loc, makeF32(b, loc, -8), heads);
  } else {
    rate = makeF32(b, loc, -8.0f / static_cast<float>(e.heads.value));
  }
  Value one = makeI32(b, loc, 1);
  Value rank = arith::SIToFPOp::create(
      b, loc, f32, arith::AddIOp::create(b, loc, h, one).getResult());
  Value slope = math::Exp2Op::create(
      b, loc, arith::MulFOp::create(b, loc, rate, rank).getResult());
  Value diagonal =
      makeDiagonal(b, loc, e, i, captures, alibi.getAlignment(), 0);
  Value distance = arith::SIToFPOp::create(
      b, loc, f32, arith::SubIOp::create(b, loc, diagonal, j).getResult());
  if (!hidesBehind(AttentionOp(e.from).getVariantsAttr(), alibi.getAlignment()))
    distance = math::AbsFOp::create(b, loc, distance);
  Value bias = arith::MulFOp::create(b, loc, slope, distance);
  return arith::SubFOp::create(b, loc, x, bias);
}

static void addCondition(OpBuilder &b, Location loc, Value &mask,
                         Value condition) {
  mask = mask ? arith::AndIOp::create(b, loc, mask, condition).getResult()
              : condition;
}

/// j <= i + offset + right and j >= i + offset - left; -1 is no bound.
static void addBand(OpBuilder &b, Location loc, const VariantExpansion &e,
                    Block &block, Alignment alignment, int64_t left,
                    int64_t right, Value &mask) {
  ValueRange arguments = block.getArguments();
  Value i = arguments[2], j = arguments[3];
  ValueRange captures = arguments.drop_front(AttentionOp::kMaskArguments);
  if (right >= 0) {
    Value last = makeDiagonal(b, loc, e, i, captures, alignment, right);
    addCondition(
        b, loc, mask,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, j, last));
  }
  if (left >= 0) {
    Value first = makeDiagonal(b, loc, e, i, captures, alignment, -left);
    addCondition(
        b, loc, mask,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, j, first));
  }
}

/// A block over `fixed` and the captures of the new operation.
static Block &addBody(RewriterBase &rewriter, const VariantExpansion &e,
                      Region &region, ArrayRef<Type> fixed) {
  SmallVector<Type> types(fixed);
  llvm::append_range(types, AttentionOp(e.to).getCaptures().getTypes());
  SmallVector<Location> locs(types.size(), AttentionOp(e.to).getLoc());
  return *rewriter.createBlock(&region, region.end(), types, locs);
}

/// Moves the body of `region` to the end of `block`; returns what it yields.
static Value inlineBody(RewriterBase &rewriter, Region &region, Block &block,
                        ValueRange arguments) {
  Block &body = region.front();
  rewriter.inlineBlockBefore(&body, &block, block.end(),
                             arguments.take_front(body.getNumArguments()));
  auto yield = cast<YieldOp>(block.getTerminator());
  Value value = yield.getValue();
  rewriter.eraseOp(yield);
  rewriter.setInsertionPointToEnd(&block);
  return value;
}

static void buildScore(RewriterBase &rewriter, VariantExpansion &e) {
  Type f32 = rewriter.getF32Type(), i32 = rewriter.getI32Type();
  Location loc = e.from.getLoc();
  Block &block =
      addBody(rewriter, e, e.to.getScore(), {f32, i32, i32, i32, i32});
  Value x = block.getArgument(0);
  for (Attribute variant : e.from.getVariantsAttr()) {
    if (auto softcap = dyn_cast<SoftcapAttr>(variant))
      x = makeSoftcap(rewriter, loc, softcap, x);
    else if (auto alibi = dyn_cast<AlibiAttr>(variant))
      x = makeAlibi(rewriter, loc, e, alibi, x, block);
  }
  if (e.from.hasScore()) {
    SmallVector<Value> arguments(block.getArguments());
    arguments[0] = x;
    x = inlineBody(rewriter, e.from.getScore(), block, arguments);
  }
  YieldOp::create(rewriter, loc, x);
}

static void buildMask(RewriterBase &rewriter, VariantExpansion &e) {
  Type i32 = rewriter.getI32Type();
  Location loc = e.from.getLoc();
  Block &block = addBody(rewriter, e, e.to.getMask(), {i32, i32, i32, i32});
  Value mask;
  for (Attribute variant : e.from.getVariantsAttr()) {
    if (auto causal = dyn_cast<CausalAttr>(variant))
      addBand(rewriter, loc, e, block, causal.getAlignment(), /*left=*/-1,
              /*right=*/0, mask);
    else if (auto window = dyn_cast<WindowAttr>(variant))
      addBand(rewriter, loc, e, block, window.getAlignment(), window.getLeft(),
              window.getRight(), mask);
  }
  if (e.from.hasMask())
    addCondition(
        rewriter, loc, mask,
        inlineBody(rewriter, e.from.getMask(), block, block.getArguments()));
  YieldOp::create(rewriter, loc, mask);
}

AttentionOp attn::expandVariants(RewriterBase &rewriter, AttentionOp op) {
  if (!op.getVariantsAttr())
    return op;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Needs needs = findNeeds(op);
  SmallVector<Value> captures(op.getCaptures());
  VariantExpansion e;
  e.from = op;
  if (needs.offset)
    e.offset = makeOffset(rewriter, op, captures);
  if (needs.heads)
    e.heads = makeHeads(rewriter, op, captures);
  e.to = AttentionOp::create(
      rewriter, op.getLoc(), op.getOutput().getType(), op.getLse().getType(),
      op.getQuery(), op.getKey(), op.getValue(), op.getSink(),
      op.getDropoutKey(), captures, op.getScaleAttr(), op.getDropoutPAttr(),
      op.getSortedCapturesAttr(), /*variants=*/ArrayAttr(),
      op.getNumericsAttr(), op.getPlanAttr());
  e.to->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (needs.score || op.hasScore())
    buildScore(rewriter, e);
  if (needs.mask || op.hasMask())
    buildMask(rewriter, e);
  rewriter.replaceOp(op, e.to);
  return e.to;
}

namespace {
struct ExpandVariants : attn::impl::AttnExpandVariantsPassBase<ExpandVariants> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (op.getVariantsAttr())
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : ops)
      expandVariants(rewriter, op);
  }
};
} // namespace
