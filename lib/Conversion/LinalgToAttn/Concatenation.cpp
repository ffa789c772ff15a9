//===- Concatenation.cpp - tensors that others make together -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// An element of two tensors one after the other is a choice by its position,
//
//   C[j] = j < n ? A[j] : B[j - n],
//
// and a reduction over all of C is one over A, and the last element:
//
//   sum_{j < n + 1} f(C[j]) = sum_{j < n} f(A[j]) + f(B[0]).
//
// A sink that a graph joins to its scores is such an element.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

static constexpr auto isBelow = static_cast<int64_t>(arith::CmpIPredicate::slt);

ExprRef Reader::readConcatenation(tensor::ConcatOp op,
                                  ArrayRef<ExprRef> indices) {
  int64_t dim = op.getDim();
  auto inputs = op.getInputs();
  // Two at most: where a third starts, no size says.
  if (inputs.size() != 2)
    return nullptr;
  Extent first = extents.of(inputs[0], dim), last = extents.of(inputs[1], dim);
  Extent whole = extents.of(op.getResult(), dim);
  if (last == 1 && !isKnown(whole))
    e.setSuccessor(whole, first);
  ExprRef size = e.size(first), position = indices[dim];
  SmallVector<ExprRef> behind(indices);
  behind[dim] = e.make<arith::SubIOp>(e.indexType, {position, size});
  return e.make<arith::SelectOp>(
      getElementTypeOrSelf(op.getResult().getType()),
      {e.make<arith::CmpIOp>(e.i1, {position, size}, isBelow),
       e.element(inputs[0], indices), e.element(inputs[1], behind)});
}

/// One number behind the last element of a dimension.
ExprRef Reader::readPadding(tensor::PadOp op, ArrayRef<ExprRef> indices) {
  auto isZero = [](OpFoldResult size) { return isConstantIntValue(size, 0); };
  SmallVector<OpFoldResult> ends = op.getMixedHighPad();
  auto padded = llvm::find_if_not(ends, isZero);
  Value number = op.getConstantPaddingValue();
  if (!llvm::all_of(op.getMixedLowPad(), isZero) || padded == ends.end() ||
      llvm::count_if(ends, isZero) + 1 != int64_t(ends.size()) ||
      !isConstantIntValue(*padded, 1) || !number)
    return nullptr;
  int64_t dim = padded - ends.begin();
  Extent first = extents.of(op.getSource(), dim);
  Extent whole = extents.of(op.getResult(), dim);
  if (!isKnown(whole))
    e.setSuccessor(whole, first);
  return e.make<arith::SelectOp>(
      op.getResultType().getElementType(),
      {e.make<arith::CmpIOp>(e.i1, {indices[dim], e.size(first)}, isBelow),
       e.element(op.getSource(), indices), readScalar(number)});
}

/// A slice that covers all of the destination, or one end of one dimension.
ExprRef Reader::readInsertion(tensor::InsertSliceOp op,
                              ArrayRef<ExprRef> indices) {
  if (op.getSourceType().getRank() != op.getDestType().getRank() ||
      !op.hasUnitStride())
    return nullptr;
  ExprRef element = e.element(op.getSource(), indices);
  for (int64_t dim = 0; dim < op.getSourceType().getRank(); ++dim) {
    ExprRef offset = readIndex(op.getMixedOffsets()[dim]);
    Extent size = extents.of(op.getMixedSizes()[dim]);
    Extent whole = extents.of(op.getDest(), dim);
    if (!offset)
      return nullptr;
    if (offset->isInteger(0) && size == whole)
      continue;
    bool isEnd = offset->isConstant() && isKnown(size) && isKnown(whole) &&
                 offset->integer + size == whole;
    if (element->kind != Kind::Element || (!offset->isInteger(0) && !isEnd))
      return nullptr;
    ExprRef position = indices[dim];
    ExprRef other = e.element(op.getDest(), indices);
    ExprRef end = isEnd ? offset : e.size(size);
    ExprRef condition = e.make<arith::CmpIOp>(e.i1, {position, end}, isBelow);
    if (isEnd) {
      SmallVector<ExprRef> behind(indices);
      behind[dim] = e.make<arith::SubIOp>(e.indexType, {position, offset});
      element = e.element(op.getSource(), behind);
      std::swap(element, other);
    }
    element =
        e.make<arith::SelectOp>(getElementTypeOrSelf(op.getResult().getType()),
                                {condition, element, other});
  }
  return element;
}

ExprRef Expressions::splitLast(Combiner combiner, ExprRef body, ExprRef init,
                               ArrayRef<ExprRef> variables) {
  bool isSum = combiner == Combiner::Add, isMax = combiner == Combiner::Max;
  if (variables.size() != 1 || !variables[0]->isVariable() ||
      !body->type.isF32() || !(isSum || isMax))
    return nullptr;
  ExprRef variable = variables[0], end = nullptr;
  walk(body, [&](ExprRef node) {
    if (node->is<arith::CmpIOp>() && node->predicate == isBelow &&
        node->operands[0] == variable && isLast(variable, node->operands[1]))
      end = node->operands[1];
    return !end;
  });
  if (!end)
    return nullptr;
  ExprRef others =
      this->variable(end->kind == Kind::Size ? end->extents[0] : end->integer);
  ExprRef rest = reduction(combiner, substitute(body, {variable}, {others}),
                           init, {others});
  ExprRef last = substitute(body, {variable}, {end});
  return isSum ? add(rest, last) : make<arith::MaximumFOp>(f32, {rest, last});
}

bool Expressions::isLast(ExprRef variable, ExprRef position) {
  Extent size = variable->extents[0];
  if (isKnown(size))
    return size > 2 && position->isInteger(size - 1);
  auto found = successors.find(size);
  return found != successors.end() &&
         (position->kind == Kind::Size
              ? position->extents[0] == found->second
              : position->isInteger(found->second) && found->second > 1);
}
