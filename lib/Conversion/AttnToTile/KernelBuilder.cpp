//===- KernelBuilder.cpp - what the kernels share -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

#include "attn/Dialect/Attn/Transforms/Dropout.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// A memref that any tensor with contiguous innermost dimension can be passed
/// as.
static Type kernelType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// What printed IR calls an argument of the function, or a result: its name is
/// that of its location, where it has one.
static Location nameOf(ScoredOp attention, Value value) {
  Location loc = value.getLoc();
  auto named = [&](const Twine &name) -> Location {
    return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
  };
  SmallVector<std::pair<Value, StringRef>> operands = {
      {attention.getQuery(), "query"},
      {attention.getKey(), "key"},
      {attention.getValue(), "value"},
      {attention.getSink(), "sink"}};
  if (auto forward = dyn_cast<AttentionOp>(attention.getOperation()))
    operands.append(
        {{forward.getOutput(), "output"}, {forward.getLse(), "lse"}});
  if (auto backward = dyn_cast<AttentionBackwardOp>(attention.getOperation()))
    operands.append({{backward.getOutput(), "output"},
                     {backward.getLse(), "lse"},
                     {backward.getDOutput(), "d_output"},
                     {backward.getDLse(), "d_lse"},
                     {backward.getDQuery(), "d_query"},
                     {backward.getDKey(), "d_key"},
                     {backward.getDValue(), "d_value"},
                     {backward.getDSink(), "d_sink"}});
  if (auto jvp = dyn_cast<AttentionJvpOp>(attention.getOperation()))
    operands.append({{jvp.getTQuery(), "t_query"},
                     {jvp.getTKey(), "t_key"},
                     {jvp.getTValue(), "t_value"},
                     {jvp.getOutput(), "output"},
                     {jvp.getLse(), "lse"},
                     {jvp.getTOutput(), "t_output"},
                     {jvp.getTLse(), "t_lse"}});
  for (auto [operand, name] : operands)
    if (operand == value)
      return named(name);
  if (isa<NameLoc>(loc))
    return loc;
  for (auto [number, capture] : llvm::enumerate(attention.getCaptures()))
    if (capture == value)
      return named("c" + Twine(number));
  static constexpr StringLiteral keyNames[] = {"seed", "offset"};
  for (auto [key, name] : llvm::zip(attention.getDropoutKey(), keyNames))
    if (key == value)
      return named(name);
  return loc;
}

func::FuncOp attn::buildSignature(OpBuilder &b, KernelMatch match,
                                  IRMapping &mapping) {
  func::FuncOp source = match.func;
  SmallVector<Type> types =
      llvm::map_to_vector(source.getArgumentTypes(), kernelType);
  llvm::append_range(types,
                     llvm::map_range(source.getResultTypes(), kernelType));
  SmallVector<DictionaryAttr> argAttrs;
  source.getAllArgAttrs(argAttrs);
  SmallVector<DictionaryAttr> resultAttrs;
  source.getAllResultAttrs(resultAttrs);
  argAttrs.resize(source.getNumArguments(), b.getDictionaryAttr({}));
  resultAttrs.resize(source.getNumResults(), b.getDictionaryAttr({}));
  llvm::append_range(argAttrs, resultAttrs);

  b.setInsertionPoint(source);
  auto func = func::FuncOp::create(b, source.getLoc(), source.getSymName(),
                                   b.getFunctionType(types, {}));
  func.setVisibility(source.getVisibility());
  func->setDiscardableAttrs(source->getDiscardableAttrDictionary());
  if (NumericsAttr numerics = match.attention.getNumericsAttr())
    func->setDiscardableAttr(AttnDialect::kNumericsAttrName, numerics);
  func.setAllArgAttrs(argAttrs);
  Block *body = func.addEntryBlock();
  for (auto [from, to] :
       llvm::zip(source.getArguments(), body->getArguments())) {
    mapping.map(from, to);
    to.setLoc(nameOf(match.attention, from));
  }
  for (auto [from, to] :
       llvm::zip(source.getBody().front().getTerminator()->getOperands(),
                 body->getArguments().drop_front(source.getNumArguments())))
    to.setLoc(nameOf(match.attention, from));

  b.setInsertionPointToStart(body);
  for (Operation *op : match.scalarOps) {
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      mapping.map(dim.getResult(),
                  memref::DimOp::create(b, dim.getLoc(),
                                        mapping.lookup(dim.getSource()),
                                        mapping.lookup(dim.getIndex())));
    else
      b.clone(*op, mapping);
  }
  b.setInsertionPoint(func::ReturnOp::create(b, match.attention.getLoc()));
  return func;
}

KernelValues::KernelValues(OpBuilder &b, ScoredOp op, IRMapping &mapping)
    : attention(op), loc(op.getLoc()) {
  element = op.getQuery().getType().getElementType();
  PlanAttr plan = op.getPlanAttr();
  numRows = plan.getBlockQ();
  numColumns = plan.getBlockK();
  // The tensor cores' depth; elements past the head dimension are zero.
  paddedDim = llvm::alignTo(op.getHeadDim(), 16);
  paddedValueDim = llvm::alignTo(op.getValueHeadDim(), 16);
  query = mapping.lookup(op.getQuery());
  key = mapping.lookup(op.getKey());
  value = mapping.lookup(op.getValue());
  for (Value capture : op.getCaptures())
    captures.push_back(mapping.lookup(capture));
  for (Value word : op.getDropoutKey())
    dropoutKey.push_back(mapping.lookup(word));
  if (Value logits = op.getSink())
    sink = mapping.lookup(logits);

  c0 = arith::ConstantIndexOp::create(b, loc, 0);
  c1 = arith::ConstantIndexOp::create(b, loc, 1);
  blockRows = arith::ConstantIndexOp::create(b, loc, numRows);
  blockColumns = arith::ConstantIndexOp::create(b, loc, numColumns);
  auto sizeOf = [&](Value view, int64_t dim) {
    return b.createOrFold<memref::DimOp>(loc, view, dim);
  };
  batches = sizeOf(query, ScoredOp::kBatch);
  heads = sizeOf(query, ScoredOp::kHead);
  // Tensors without heads are legal; a division by zero is not.
  keyHeads = sizeOf(key, ScoredOp::kHead);
  Value divisor = b.createOrFold<arith::MaxSIOp>(loc, keyHeads, c1);
  headsPerKeyHead = b.createOrFold<arith::DivSIOp>(loc, heads, divisor);
  queryLength = sizeOf(query, ScoredOp::kLength);
  keyLength = sizeOf(key, ScoredOp::kLength);
  keyLength32 =
      b.createOrFold<arith::IndexCastOp>(loc, b.getI32Type(), keyLength);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value attn::ceilDiv(OpBuilder &b, Location loc, Value size, Value block) {
  return b.createOrFold<arith::CeilDivSIOp>(loc, size, block);
}

Value attn::allocate(OpBuilder &b, Location loc, Type type,
                     ArrayRef<Value> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  for (Value size : sizes) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      dynamic.push_back(size);
  }
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, type), dynamic);
}

Value attn::toCoordinate(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
}

Value attn::roundTo(OpBuilder &b, Location loc, Value value, Type element) {
  if (element.isF32())
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  return arith::TruncFOp::create(b, loc, type, value);
}

Value attn::splat(OpBuilder &b, Location loc, VectorType type, double value) {
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(type,
                             b.getFloatAttr(type.getElementType(), value)));
}

Value attn::contract(OpBuilder &b, Location loc, Value lhs, Value rhs,
                     Value accumulator, bool transposed, bool transposedLhs) {
  AffineExpr m, n, k;
  bindDims(b.getContext(), m, n, k);
  auto map = [&](AffineExpr row, AffineExpr column) {
    return AffineMap::get(3, 0, {row, column}, b.getContext());
  };
  AffineMap maps[] = {transposedLhs ? map(k, m) : map(m, k),
                      transposed ? map(n, k) : map(k, n), map(m, n)};
  auto parallel = vector::IteratorType::parallel;
  auto iterator = [&](vector::IteratorType type) -> Attribute {
    return vector::IteratorTypeAttr::get(b.getContext(), type);
  };
  return vector::ContractionOp::create(
      b, loc, lhs, rhs, accumulator, b.getAffineMapArrayAttr(maps),
      b.getArrayAttr({iterator(parallel), iterator(parallel),
                      iterator(vector::IteratorType::reduction)}));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The scores are scaled before their function, if there is one, sees them.
static void scaleScores(OpBuilder &b, tile::ScoresOp op, double scale) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = op.getLoc();
  if (!op.hasScore()) {
    SmallVector<Type> types(1, b.getF32Type());
    types.append(4, b.getI32Type());
    Block *block = b.createBlock(&op.getScore(), {}, types,
                                 SmallVector<Location>(types.size(), loc));
    tile::YieldOp::create(b, loc, block->getArgument(0));
  }
  Block &block = op.getScore().front();
  b.setInsertionPointToStart(&block);
  Value score = block.getArgument(0);
  Value factor =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(score.getType(), scale));
  auto scaled = arith::MulFOp::create(b, loc, score, factor);
  score.replaceAllUsesExcept(scaled, scaled);
}

tile::ScoresOp attn::buildScores(OpBuilder &outer, OpBuilder &b,
                                 const KernelValues &kernel, Value products,
                                 const ScoreCoordinates &at) {
  ScoredOp attention = kernel.attention;
  auto scored =
      tile::ScoresOp::create(b, kernel.loc, products, at.batch, at.head,
                             at.queries, at.keys, kernel.keyLength32);
  ValueRange operands = scored->getOperands();
  // What the regions read must be there before them.
  OpBuilder before = outer;
  if (outer.getInsertionBlock() == scored->getBlock())
    before.setInsertionPoint(scored);
  if (attention.hasScore())
    copyRegion(before, b, attention.getScore(), scored.getScore(),
               operands.take_front(ScoredOp::kScoreArguments), kernel.captures);
  scaleScores(b, scored, attention.getScaleValue());
  if (attention.hasMask())
    copyRegion(before, b, attention.getMask(), scored.getMask(),
               operands.slice(1, ScoredOp::kMaskArguments), kernel.captures);
  return scored;
}

double attn::getKeptShare(ScoredOp op) {
  return op.hasDropout() ? 1.0 - op.getDropoutP()->convertToDouble() : 1.0;
}

Value attn::dropWeights(OpBuilder &outer, OpBuilder &inner,
                        const KernelValues &kernel, const ScoreCoordinates &at,
                        Value weights) {
  ScoredOp attention = kernel.attention;
  Region region;
  buildKeepRegion(inner, kernel.loc, region,
                  attention.getDropoutP()->convertToDouble());
  SmallVector<Value> arguments = {at.batch, at.head, at.queries, at.keys};
  llvm::append_range(arguments, kernel.dropoutKey);
  auto type = cast<VectorType>(weights.getType());
  Value keep = tile::expandScalarCode(inner, &*outer.getInsertionPoint(),
                                      region, arguments, type.getShape());
  Value none = splat(outer, kernel.loc, type, 0.0);
  return arith::SelectOp::create(inner, kernel.loc, keep, weights, none);
}
