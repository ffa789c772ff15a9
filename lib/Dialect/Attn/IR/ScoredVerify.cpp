//===- ScoredVerify.cpp - constraints on operations over scores -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The numbers (C1), (C2), … are those of the description of attn.attention.
//
//===----------------------------------------------------------------------===//

#include "ScoredVerify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace attn;

static NamedTensor name(StringRef name, Value tensor, ArrayRef<Size> sizes,
                        bool isF32 = false) {
  return {name, cast<RankedTensorType>(tensor.getType()), sizes, isF32};
}

NamedTensor NamedTensor::ofQuery(StringRef text, Value tensor) {
  static constexpr Size sizes[] = {Size::Batch, Size::Heads, Size::Queries,
                                   Size::HeadDim};
  return ::name(text, tensor, sizes);
}

NamedTensor NamedTensor::ofKey(StringRef text, Value tensor) {
  static constexpr Size sizes[] = {Size::Batch, Size::KeyHeads, Size::Keys,
                                   Size::HeadDim};
  return ::name(text, tensor, sizes);
}

NamedTensor NamedTensor::ofValue(StringRef text, Value tensor) {
  static constexpr Size sizes[] = {Size::Batch, Size::KeyHeads, Size::Keys,
                                   Size::ValueDim};
  return ::name(text, tensor, sizes);
}

NamedTensor NamedTensor::ofOutput(StringRef text, Value tensor) {
  static constexpr Size sizes[] = {Size::Batch, Size::Heads, Size::Queries,
                                   Size::ValueDim};
  return ::name(text, tensor, sizes);
}

NamedTensor NamedTensor::ofLse(StringRef text, Value tensor) {
  static constexpr Size sizes[] = {Size::Batch, Size::Heads, Size::Queries};
  return ::name(text, tensor, sizes, /*isF32=*/true);
}

namespace {
/// One dimension of a tensor.
struct NamedDim {
  StringRef name;
  int64_t size;
};
} // namespace

/// What a size is called.
static StringRef describe(Size size) {
  switch (size) {
  case Size::Batch:
    return "batch size";
  case Size::Heads:
    return "number of query heads";
  case Size::KeyHeads:
    return "number of key heads";
  case Size::Queries:
    return "query length";
  case Size::Keys:
    return "key length";
  case Size::HeadDim:
  case Size::ValueDim:
    return "head dimension";
  }
  llvm_unreachable("unknown size");
}

/// The dimensions of that name.
static SmallVector<NamedDim> collect(ArrayRef<NamedTensor> tensors, Size size) {
  SmallVector<NamedDim> dims;
  for (const NamedTensor &tensor : tensors)
    for (auto [number, own] : llvm::enumerate(tensor.sizes))
      if (own == size)
        dims.push_back({tensor.name, tensor.type.getDimSize(number)});
  return dims;
}

/// A size, from whichever tensor knows it.
static int64_t findSize(ArrayRef<NamedTensor> tensors, Size size) {
  for (const NamedDim &dim : collect(tensors, size))
    if (!ShapedType::isDynamic(dim.size))
      return dim.size;
  return ShapedType::kDynamic;
}

/// (C4) All sizes that are known are equal.
static LogicalResult verifyAgree(ScoredOp op, StringRef what,
                                 ArrayRef<NamedDim> dims) {
  const NamedDim *known = nullptr;
  for (const NamedDim &dim : dims) {
    if (ShapedType::isDynamic(dim.size))
      continue;
    if (!known)
      known = &dim;
    if (dim.size != known->size)
      return op->emitOpError("wants one ")
             << what << ", got " << known->size << " in " << known->name
             << " and " << dim.size << " in " << dim.name;
  }
  return success();
}

/// (C3) A head dimension: static, a multiple of 8, at most 256.
static LogicalResult verifyHeadDim(ScoredOp op, NamedDim dim) {
  if (ShapedType::isDynamic(dim.size))
    return op->emitOpError("wants a static head dimension, got ? in ")
           << dim.name;
  if (dim.size < 8 || dim.size > 256 || dim.size % 8 != 0)
    return op->emitOpError("wants a head dimension that is a multiple of 8 in "
                           "[8, 256], got ")
           << dim.size << " in " << dim.name;
  return success();
}

/// (C6) Positions are i32, and so are their sums and differences.
static LogicalResult verifyCounted(ScoredOp op, StringRef what, int64_t size) {
  constexpr int64_t max = AttentionOp::kMaxPositions;
  if (ShapedType::isDynamic(size) || size <= max)
    return success();
  return op->emitOpError("wants a ")
         << what << " of at most " << max << ", got " << size;
}

/// (C1), (C2) Of one tensor.
static LogicalResult verifyType(ScoredOp op, const NamedTensor &tensor) {
  int64_t rank = tensor.sizes.size();
  if (tensor.type.getRank() != rank)
    return op->emitOpError("wants ")
           << tensor.name << " of rank " << rank << ", got " << tensor.type;
  if (tensor.type.getEncoding())
    return op->emitOpError("wants ")
           << tensor.name << " without an encoding, got " << tensor.type;
  Type element = tensor.type.getElementType();
  if (tensor.isF32) {
    if (!element.isF32())
      return op->emitOpError("wants ")
             << tensor.name << " of f32, got " << element;
    return success();
  }
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return op->emitOpError("wants ")
           << tensor.name << " of f16, bf16 or f32, got " << element;
  Type wanted = op.getQuery().getType().getElementType();
  if (element != wanted)
    return op->emitOpError("wants one element type, got ")
           << wanted << " in query and " << element << " in " << tensor.name;
  return success();
}

LogicalResult attn::verifyTensors(ScoredOp op, ArrayRef<NamedTensor> tensors) {
  for (const NamedTensor &tensor : tensors)
    if (failed(verifyType(op, tensor)))
      return failure();
  // (C3) Head dimensions, before their equality: the first of each, and then
  // those that do not know theirs.
  for (bool isFirst : {true, false})
    for (Size size : {Size::HeadDim, Size::ValueDim}) {
      SmallVector<NamedDim> dims = collect(tensors, size);
      if (isFirst ? failed(verifyHeadDim(op, dims.front()))
                  : failed(verifyAgree(op, describe(size), dims)))
        return failure();
    }
  for (Size size : {Size::HeadDim, Size::ValueDim})
    for (const NamedDim &dim : collect(tensors, size))
      if (failed(verifyHeadDim(op, dim)))
        return failure();
  // (C4) Sizes that agree.
  for (Size size :
       {Size::Batch, Size::Heads, Size::KeyHeads, Size::Queries, Size::Keys})
    if (failed(verifyAgree(op, describe(size), collect(tensors, size))))
      return failure();

  // (C5) Query heads share key heads evenly.
  int64_t queryHeads = findSize(tensors, Size::Heads);
  int64_t keyHeads = findSize(tensors, Size::KeyHeads);
  if (keyHeads == 0)
    return op->emitOpError("wants at least one key head, got 0");
  if (!ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(keyHeads) &&
      queryHeads % keyHeads != 0)
    return op->emitOpError("wants a number of query heads that is a multiple "
                           "of the number of key heads, got ")
           << queryHeads << " and " << keyHeads;

  for (Size size :
       {Size::Batch, Size::Heads, Size::KeyHeads, Size::Queries, Size::Keys})
    if (failed(verifyCounted(op, describe(size), findSize(tensors, size))))
      return failure();
  return success();
}

/// (C8) What a region may capture.
static LogicalResult verifyCaptures(ScoredOp op) {
  for (auto [number, type] : llvm::enumerate(op.getCaptures().getTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (AttentionOp::isScalar(tensor ? tensor.getElementType() : type) &&
        !(tensor && tensor.getEncoding()))
      continue;
    return op->emitOpError("wants capture #")
           << number
           << " to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked "
              "tensor of these, got "
           << type;
  }
  return success();
}

static LogicalResult verifySink(ScoredOp op) {
  if (!op.getSink())
    return success();
  // (C26) One logit per query head.
  auto sink = cast<RankedTensorType>(op.getSink().getType());
  Type element = sink.getElementType();
  if (sink.getRank() != 1 || sink.getEncoding() ||
      !(element.isF16() || element.isBF16() || element.isF32()))
    return op->emitOpError("wants a sink of f16, bf16 or f32 and rank 1, got ")
           << sink;
  RankedTensorType query = op.getQuery().getType();
  return verifyAgree(op, "number of query heads",
                     {{"query", query.getDimSize(AttentionOp::kHead)},
                      {"sink", sink.getDimSize(0)}});
}

static LogicalResult verifyDropout(ScoredOp op) {
  // (C27) A key and a probability.
  size_t keys = op.getDropoutKey().size();
  if (keys != 0 && keys != 2)
    return op->emitOpError("wants two words of dropout key, seed and offset, "
                           "got ")
           << keys;
  std::optional<APFloat> p = op.getDropoutP();
  if (p.has_value() != op.hasDropout())
    return op->emitOpError("wants dropout_p and a dropout key together, got ")
           << (p ? "no key" : "no dropout_p");
  if (p && !(p->convertToDouble() >= 0 && p->convertToDouble() < 1))
    return op->emitOpError("wants dropout_p in [0, 1), got ")
           << FloatAttr::get(Float64Type::get(op.getContext()), *p);
  return success();
}

static LogicalResult verifySortedCaptures(ScoredOp op) {
  std::optional<ArrayRef<int64_t>> sorted = op.getSortedCaptures();
  if (!sorted)
    return success();
  // (C28) Tensors of integers, each once.
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t number : *sorted) {
    if (number < 0 || number >= static_cast<int64_t>(op.getCaptures().size()))
      return op->emitOpError("wants sorted_captures below the number of "
                             "captures, ")
             << op.getCaptures().size() << ", got " << number;
    if (!seen.insert(number).second)
      return op->emitOpError(
                 "wants sorted_captures to list a capture once, got "
                 "twice ")
             << number;
    Type type = op.getCaptures()[number].getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0 ||
        !tensor.getElementType().isInteger())
      return op->emitOpError("wants sorted capture #")
             << number << " to be a tensor of integers of rank 1 or more, got "
             << type;
  }
  return success();
}

/// What `#attn.numerics` says only of some programs.
static LogicalResult verifyNumerics(ScoredOp op) {
  bool isIeee = op.getNumericsOrDefault().getF32Products() == F32Products::IEEE;
  if (!isIeee || op.getElementType().isF32())
    return success();
  return op->emitOpError(
             "wants f32_products = ieee with a query, key and value "
             "of f32 only, got ")
         << op.getElementType();
}

/// (C7) The scale is used in f32.
static LogicalResult verifyScale(ScoredOp op) {
  std::optional<APFloat> scale = op.getScale();
  if (!scale || std::isfinite(static_cast<float>(scale->convertToDouble())))
    return success();
  return op->emitOpError("wants a scale that is finite in f32, got ")
         << FloatAttr::get(Float64Type::get(op.getContext()), *scale);
}

LogicalResult attn::verifyOptions(ScoredOp op) {
  return success(succeeded(verifyScale(op)) && succeeded(verifyCaptures(op)) &&
                 succeeded(verifySink(op)) && succeeded(verifyDropout(op)) &&
                 succeeded(verifySortedCaptures(op)) &&
                 succeeded(verifyNumerics(op)));
}

/// (C9), (C10) The arguments of a region: `fixed`, then the captures.
static LogicalResult verifyArguments(ScoredOp op, StringRef name, Block &block,
                                     ArrayRef<Type> fixed) {
  SmallVector<Type> wanted(fixed);
  llvm::append_range(wanted, op.getCaptures().getTypes());
  if (llvm::equal(block.getArgumentTypes(), wanted))
    return success();
  auto diag = op->emitOpError("wants a ") << name << " region over (";
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

/// (C6) of attn.attention_backward.
static LogicalResult verifyAdd(CaptureAddOp op, StringRef name) {
  auto parent = cast<AttentionBackwardOp>(op->getParentOp());
  if (name != "pullback")
    return op.emitOpError("stands in a ") << name << " region, wanted a "
                                          << "pullback";
  auto argument = dyn_cast<BlockArgument>(op.getCapture());
  unsigned first = AttentionBackwardOp::kPullbackArguments;
  if (!argument || argument.getArgNumber() < first)
    return op.emitOpError("adds to what is no capture, wanted one that "
                          "grad_captures lists");
  unsigned number = argument.getArgNumber() - first;
  if (parent.getGradientNumber(number))
    return success();
  return op.emitOpError("adds to capture #")
         << number << ", wanted one that grad_captures lists";
}

/// (C11) Regions hold straight-line scalar code that may run anywhere; neither
/// arith nor math have side effects or terminators.
static LogicalResult verifyBody(Operation &op, StringRef name) {
  if (isa<CaptureLoadOp, CaptureSearchOp, YieldOp>(op))
    return success();
  if (auto add = dyn_cast<CaptureAddOp>(op))
    return verifyAdd(add, name);
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

LogicalResult attn::verifyRegion(ScoredOp op, StringRef name, Region &region,
                                 ArrayRef<Type> fixed, Type result) {
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

LogicalResult attn::verifyScoreAndMask(ScoredOp op) {
  Builder b(op.getContext());
  Type f32 = b.getF32Type(), i32 = b.getI32Type(), i1 = b.getI1Type();
  return success(succeeded(verifyRegion(op, "score", op.getScore(),
                                        {f32, i32, i32, i32, i32}, f32)) &&
                 succeeded(verifyRegion(op, "mask", op.getMask(),
                                        {i32, i32, i32, i32}, i1)));
}
