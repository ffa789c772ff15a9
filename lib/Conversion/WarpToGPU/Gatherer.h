//===- Gatherer.h - the loads of one gather ---------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_GATHERER_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_GATHERER_H

#include "Clamps.h"
#include "Fragments.h"
#include "Integers.h"
#include "Offsets.h"
#include "Quotients.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace attn::warp {

/// A run, and a grid, is worth its test from so many elements on.
inline constexpr size_t leastRun = 4, leastGrid = 16;

/// Elements of one row of memory: one address plus constants.
struct Run {
  SmallVector<Value> indices; // of the first element; i64
  int64_t size = 1;           // from the first to the last element
  SmallVector<Limit> limits;  // of the last index
};

/// The loads of one gather.
class Gatherer {
public:
  Gatherer(OpBuilder &builder, GatherOp op,
           ArrayRef<SmallVector<Value>> indices, const View &view,
           const Positions &positions)
      : b(builder), op(op), loc(op.getLoc()), type(op.getResult().getType()),
        view(view), positions(positions), addresses(builder, op.getLoc()),
        zero(arith::ConstantOp::create(
            builder, loc, builder.getZeroAttr(type.getElementType()))),
        indices(indices), areInside(op.getInside()),
        areAligned(op.getAligned()), terms(view.sizes.size()) {
    for (int64_t reg = 0, e = layoutOf(type).numRegisters(); reg < e; ++reg) {
      SmallVector<Value> &at = elements.emplace_back();
      for (unsigned dim = 0; dim < indices.size(); ++dim)
        at.push_back(indices[dim][slice(dim, reg)]);
    }
  }

  SmallVector<Value> run();

private:
  /// What one index contributes: an offset, and whether it is inside.
  struct Term {
    Value bytes, inside;
  };

  SmallVector<Value> choose(Value condition, ArrayRef<Type> types,
                            function_ref<SmallVector<Value>()> then,
                            function_ref<SmallVector<Value>()> otherwise);
  /// Of all elements, or of one.
  SmallVector<Type> elementTypes(size_t count) const {
    return SmallVector<Type>(count, type.getElementType());
  }
  void require(Value &all, Value condition) {
    all = all ? arith::AndIOp::create(b, loc, all, condition).getResult()
              : condition;
  }
  bool findRuns(bool clamped);
  Value isInside(const Run &run, ArrayRef<int64_t> places);
  SmallVector<Value> loadRuns();
  bool startsPair(size_t number) const;
  bool arePairs() const;
  Value isAligned(Value pointer, int64_t bytes);
  SmallVector<SmallVector<size_t>> listRuns() const;
  bool areBitRows() const;
  SmallVector<Value> loadBitRows(ArrayRef<Value> pointers, Value all,
                                 function_ref<SmallVector<Value>()> loadThere);
  bool findBlocks();
  SmallVector<Value> loadBlocks();
  SmallVector<Value> loadEach(bool isSure);
  Value areAllThere();
  SmallVector<Value> loadAny();
  SmallVector<Value> loadUnlessEmpty(bool inBlocks);
  std::optional<SmallVector<Value>> loadGrid();
  std::optional<SmallVector<Value>> loadDigits();
  Value loadAt(ArrayRef<Value> at, bool isSure);
  Term getTerm(unsigned dim, Value index);
  /// Which value of an index is that of a register of the result.
  int64_t slice(unsigned dim, int64_t reg) {
    return sliceRegister(layoutOf(type), op.getIndices()[dim].getType(), reg);
  }
  Value load(Value pointer) {
    return LLVM::LoadOp::create(b, loc, type.getElementType(), pointer,
                                view.elementBytes);
  }

  SmallVector<Value> loadPair(Value pointer) {
    auto pair = VectorType::get(2, type.getElementType());
    Value both =
        LLVM::LoadOp::create(b, loc, pair, pointer, 2 * view.elementBytes);
    return {extract(b, loc, both, 0), extract(b, loc, both, 1)};
  }

  OpBuilder &b;
  GatherOp op;
  Location loc;
  FragType type;
  const View &view;
  const Positions &positions;
  Addresses addresses;
  Value zero;
  ArrayRef<SmallVector<Value>> indices;     // what each of them takes
  bool areInside;                           // all indices
  bool areAligned;                          // pairs
  SmallVector<SmallVector<Value>> elements; // their indices; i32
  /// Many elements share an index.
  SmallVector<llvm::DenseMap<Value, Term>> terms;
  SmallVector<Run> runs;
  /// The index that is a number of blocks, and those blocks.
  std::pair<unsigned, QuotientRow> blocks;
  /// Of each element its run, and its place in it.
  SmallVector<std::pair<size_t, int64_t>> places;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_GATHERER_H
