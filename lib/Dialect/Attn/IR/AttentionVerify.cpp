//===- AttentionVerify.cpp - constraints of attn.attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The numbers (C1), (C2), … are those of the operation's description.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
/// A tensor of the operation and what the messages call it.
struct NamedTensor {
  StringRef name;
  RankedTensorType type;
};
/// One dimension of one of them.
struct NamedDim {
  StringRef name;
  int64_t size;
};
} // namespace

/// (C4) All sizes that are known are equal.
static LogicalResult verifyAgree(AttentionOp op, StringRef what,
                                 ArrayRef<NamedDim> dims) {
  const NamedDim *known = nullptr;
  for (const NamedDim &dim : dims) {
    if (ShapedType::isDynamic(dim.size))
      continue;
    if (!known)
      known = &dim;
    if (dim.size != known->size)
      return op.emitOpError("wants one ")
             << what << ", got " << known->size << " in " << known->name
             << " and " << dim.size << " in " << dim.name;
  }
  return success();
}

/// (C3) A head dimension: static, a multiple of 8, at most 256.
static LogicalResult verifyHeadDim(AttentionOp op, NamedDim dim) {
  if (ShapedType::isDynamic(dim.size))
    return op.emitOpError("wants a static head dimension, got ? in ")
           << dim.name;
  if (dim.size < 8 || dim.size > 256 || dim.size % 8 != 0)
    return op.emitOpError("wants a head dimension that is a multiple of 8 in "
                          "[8, 256], got ")
           << dim.size << " in " << dim.name;
  return success();
}

/// (C6) Positions are i32, and so are their sums and differences.
static LogicalResult verifyCounted(AttentionOp op, StringRef what,
                                   int64_t size) {
  constexpr int64_t max = AttentionOp::kMaxPositions;
  if (ShapedType::isDynamic(size) || size <= max)
    return success();
  return op.emitOpError("wants a ")
         << what << " of at most " << max << ", got " << size;
}

static LogicalResult verifyShapes(AttentionOp op) {
  constexpr int64_t B = AttentionOp::kBatch, H = AttentionOp::kHead,
                    L = AttentionOp::kLength, D = AttentionOp::kDim;
  NamedTensor q = {"query", op.getQuery().getType()};
  NamedTensor k = {"key", op.getKey().getType()};
  NamedTensor v = {"value", op.getValue().getType()};
  NamedTensor o = {"output", op.getOutput().getType()};
  NamedTensor lse = {"lse", op.getLse().getType()};
  for (const NamedTensor &tensor : {q, k, v, o, lse}) {
    // (C1) Ranks; no encodings.
    int64_t rank = tensor.name == lse.name ? 3 : 4;
    if (tensor.type.getRank() != rank)
      return op.emitOpError("wants ")
             << tensor.name << " of rank " << rank << ", got " << tensor.type;
    if (tensor.type.getEncoding())
      return op.emitOpError("wants ")
             << tensor.name << " without an encoding, got " << tensor.type;
    // (C2) Element types.
    Type element = tensor.type.getElementType();
    if (tensor.name == lse.name) {
      if (!element.isF32())
        return op.emitOpError("wants an lse of f32, got ") << element;
      continue;
    }
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return op.emitOpError("wants ")
             << tensor.name << " of f16, bf16 or f32, got " << element;
    if (element != q.type.getElementType())
      return op.emitOpError("wants one element type, got ")
             << q.type.getElementType() << " in query and " << element << " in "
             << tensor.name;
  }

  auto dim = [](const NamedTensor &tensor, int64_t i) {
    return NamedDim{tensor.name, tensor.type.getDimSize(i)};
  };
  // (C3) Head dimensions; (C4) sizes that agree.
  if (failed(verifyHeadDim(op, dim(q, D))) ||
      failed(verifyHeadDim(op, dim(v, D))) ||
      failed(verifyAgree(op, "head dimension", {dim(q, D), dim(k, D)})) ||
      failed(verifyAgree(op, "head dimension", {dim(v, D), dim(o, D)})) ||
      failed(verifyHeadDim(op, dim(k, D))) ||
      failed(verifyHeadDim(op, dim(o, D))) ||
      failed(verifyAgree(
          op, "batch size",
          {dim(q, B), dim(k, B), dim(v, B), dim(o, B), dim(lse, B)})) ||
      failed(verifyAgree(op, "number of query heads",
                         {dim(q, H), dim(o, H), dim(lse, H)})) ||
      failed(verifyAgree(op, "number of key heads", {dim(k, H), dim(v, H)})) ||
      failed(verifyAgree(op, "query length",
                         {dim(q, L), dim(o, L), dim(lse, L)})) ||
      failed(verifyAgree(op, "key length", {dim(k, L), dim(v, L)})))
    return failure();

  // (C5) Query heads share key heads evenly.
  int64_t queryHeads = dim(q, H).size;
  int64_t keyHeads =
      ShapedType::isDynamic(dim(k, H).size) ? dim(v, H).size : dim(k, H).size;
  if (keyHeads == 0)
    return op.emitOpError("wants at least one key head, got 0");
  if (!ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(keyHeads) &&
      queryHeads % keyHeads != 0)
    return op.emitOpError("wants a number of query heads that is a multiple "
                          "of the number of key heads, got ")
           << queryHeads << " and " << keyHeads;

  for (const NamedTensor &tensor : {q, k, v, o, lse}) {
    bool isKey = tensor.name == k.name || tensor.name == v.name;
    if (failed(verifyCounted(op, "batch size", dim(tensor, B).size)) ||
        failed(verifyCounted(
            op, isKey ? "number of key heads" : "number of query heads",
            dim(tensor, H).size)) ||
        failed(verifyCounted(op, isKey ? "key length" : "query length",
                             dim(tensor, L).size)))
      return failure();
  }
  return success();
}

/// (C8) What a region may capture.
static LogicalResult verifyCaptures(AttentionOp op) {
  for (auto [number, type] : llvm::enumerate(op.getCaptures().getTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (AttentionOp::isScalar(tensor ? tensor.getElementType() : type) &&
        !(tensor && tensor.getEncoding()))
      continue;
    return op.emitOpError("wants capture #")
           << number
           << " to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked "
              "tensor of these, got "
           << type;
  }
  return success();
}

/// (C12) The named variants that exist.
static LogicalResult verifySink(AttentionOp op) {
  if (!op.getSink())
    return success();
  // (C26) One logit per query head.
  auto sink = cast<RankedTensorType>(op.getSink().getType());
  Type element = sink.getElementType();
  if (sink.getRank() != 1 || sink.getEncoding() ||
      !(element.isF16() || element.isBF16() || element.isF32()))
    return op.emitOpError("wants a sink of f16, bf16 or f32 and rank 1, got ")
           << sink;
  RankedTensorType query = op.getQuery().getType();
  return verifyAgree(op, "number of query heads",
                     {{"query", query.getDimSize(AttentionOp::kHead)},
                      {"sink", sink.getDimSize(0)}});
}

static LogicalResult verifyDropout(AttentionOp op) {
  // (C27) A key and a probability.
  size_t keys = op.getDropoutKey().size();
  if (keys != 0 && keys != 2)
    return op.emitOpError("wants two words of dropout key, seed and offset, "
                          "got ")
           << keys;
  std::optional<APFloat> p = op.getDropoutP();
  if (p.has_value() != op.hasDropout())
    return op.emitOpError("wants dropout_p and a dropout key together, got ")
           << (p ? "no key" : "no dropout_p");
  if (p && !(p->convertToDouble() >= 0 && p->convertToDouble() < 1))
    return op.emitOpError("wants dropout_p in [0, 1), got ")
           << op.getDropoutPAttr();
  return success();
}

static LogicalResult verifySortedCaptures(AttentionOp op) {
  std::optional<ArrayRef<int64_t>> sorted = op.getSortedCaptures();
  if (!sorted)
    return success();
  // (C28) Tensors of integers, each once.
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t number : *sorted) {
    if (number < 0 || number >= static_cast<int64_t>(op.getCaptures().size()))
      return op.emitOpError("wants sorted_captures below the number of "
                            "captures, ")
             << op.getCaptures().size() << ", got " << number;
    if (!seen.insert(number).second)
      return op.emitOpError("wants sorted_captures to list a capture once, got "
                            "twice ")
             << number;
    Type type = op.getCaptures()[number].getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0 ||
        !tensor.getElementType().isInteger())
      return op.emitOpError("wants sorted capture #")
             << number << " to be a tensor of integers of rank 1 or more, got "
             << type;
  }
  return success();
}

/// What `#attn.numerics` says only of some programs.
static LogicalResult verifyNumerics(AttentionOp op) {
  bool isIeee = op.getNumericsOrDefault().getF32Products() == F32Products::IEEE;
  if (!isIeee || op.getElementType().isF32())
    return success();
  return op.emitOpError("wants f32_products = ieee with a query, key and value "
                        "of f32 only, got ")
         << op.getElementType();
}

static LogicalResult verifyVariants(AttentionOp op) {
  ArrayAttr variants = op.getVariantsAttr();
  if (!variants)
    return success();
  for (Attribute variant : variants)
    if (!isa<CausalAttr, WindowAttr, SoftcapAttr, AlibiAttr>(variant))
      return op.emitOpError("wants variants among #attn.causal, #attn.window, "
                            "#attn.softcap and #attn.alibi, got ")
             << variant;
  return success();
}

/// (C13) A misspelt attribute must not be ignored.
static LogicalResult verifyNoStrayAttributes(AttentionOp op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (!attribute.getName().strref().contains('.'))
      return op.emitOpError("wants attributes among scale, dropout_p, "
                            "sorted_captures, variants, numerics and plan, "
                            "got '")
             << attribute.getName().strref() << "'";
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyShapes(*this)))
    return failure();
  // (C7) The scale is used in f32.
  if (std::optional<APFloat> scale = getScale())
    if (!std::isfinite(static_cast<float>(scale->convertToDouble())))
      return emitOpError("wants a scale that is finite in f32, got ")
             << getScaleAttr();
  return success(
      succeeded(verifyCaptures(*this)) && succeeded(verifySink(*this)) &&
      succeeded(verifyDropout(*this)) &&
      succeeded(verifySortedCaptures(*this)) &&
      succeeded(verifyVariants(*this)) && succeeded(verifyNumerics(*this)) &&
      succeeded(verifyNoStrayAttributes(*this)));
}

/// (C9), (C10) The arguments of a region: `fixed`, then the captures.
static LogicalResult verifyArguments(AttentionOp op, StringRef name,
                                     Block &block, ArrayRef<Type> fixed) {
  SmallVector<Type> wanted(fixed);
  llvm::append_range(wanted, op.getCaptures().getTypes());
  if (llvm::equal(block.getArgumentTypes(), wanted))
    return success();
  auto diag = op.emitOpError("wants a ") << name << " region over (";
  llvm::interleaveComma(wanted, diag);
  diag << "), got (";
  llvm::interleaveComma(block.getArgumentTypes(), diag);
  return diag << ")";
}

/// (C11) Integer division is evaluated also at positions outside of the
/// lengths: its divisor must be a constant that cannot trap.
static LogicalResult verifyDivisor(Operation &op, StringRef name) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp,
           arith::CeilDivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
           arith::RemUIOp>(op))
    return success();
  APInt divisor;
  if (matchPattern(op.getOperand(1), m_ConstantInt(&divisor)) &&
      !divisor.isZero() && !divisor.isAllOnes())
    return success();
  return op.emitOpError("in a ")
         << name << " region wants a constant divisor other than 0 and -1";
}

/// (C11) What no target but the CPU has code for.
static LogicalResult verifyComputable(Operation &op, StringRef name) {
  StringRef instead;
  if (isa<arith::RemFOp>(op))
    instead = "x - y * trunc(x / y), whose error is the program's to judge";
  else if (isa<arith::MulSIExtendedOp, arith::MulUIExtendedOp>(op) &&
           op.getResult(0).getType().isInteger(64))
    instead = "products of at most 32 bits";
  else if (isa<math::IPowIOp>(op) && op.getResult(0).getType().isInteger(1))
    instead = "a power of 8 bits or more";
  else
    return success();
  return op.emitOpError("in a ")
         << name << " region has no code on a GPU: wanted " << instead;
}

/// (C11) Regions hold straight-line scalar code that may run anywhere; neither
/// arith nor math have side effects or terminators.
static LogicalResult verifyBody(Operation &op, StringRef name) {
  if (isa<CaptureLoadOp, CaptureSearchOp, YieldOp>(op))
    return success();
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect()))
    return op.emitOpError("may not stand in a ")
           << name
           << " region: wanted arith, math, attn.capture_load, "
              "attn.capture_search or attn.yield";
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op.getOperandTypes()),
                                      SmallVector<Type>(op.getResultTypes())))
    if (!AttentionOp::isScalar(type))
      return op.emitOpError("in a ")
             << name
             << " region wants i1, i8, i16, i32, i64, f16, bf16 or f32, got "
             << type;
  return success(succeeded(verifyComputable(op, name)) &&
                 succeeded(verifyDivisor(op, name)));
}

static LogicalResult verifyRegion(AttentionOp op, StringRef name,
                                  Region &region, ArrayRef<Type> fixed,
                                  Type result) {
  if (region.empty())
    return success();
  Block &block = region.front();
  if (failed(verifyArguments(op, name, block, fixed)))
    return failure();
  for (Operation &nested : block)
    if (failed(verifyBody(nested, name)))
      return failure();
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getValue().getType() == result)
    return success();
  return yield.emitOpError("of a ") << name << " region wants " << result
                                    << ", got " << yield.getValue().getType();
}

LogicalResult AttentionOp::verifyRegions() {
  Builder b(getContext());
  Type f32 = b.getF32Type(), i32 = b.getI32Type(), i1 = b.getI1Type();
  return success(succeeded(verifyRegion(*this, "score", getScore(),
                                        {f32, i32, i32, i32, i32}, f32)) &&
                 succeeded(verifyRegion(*this, "mask", getMask(),
                                        {i32, i32, i32, i32}, i1)));
}
