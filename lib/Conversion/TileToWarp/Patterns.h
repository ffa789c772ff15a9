//===- Patterns.h - parts of convert-tile-to-warp -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETOWARP_PATTERNS_H
#define ATTN_LIB_CONVERSION_TILETOWARP_PATTERNS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn {

/// The accumulator fragment that holds a value of a kernel (`spread`).
warp::FragType getAccType(VectorType type, PlanAttr plan);

/// Vectors become such fragments; a vector of rank 1 is a column.
class FragmentConverter : public TypeConverter {
public:
  explicit FragmentConverter(PlanAttr plan);
};

/// arith, math, constants, casts, selections and broadcasts.
void populateElementwisePatterns(const FragmentConverter &converter,
                                 RewritePatternSet &patterns);

/// Row reductions and the shape casts after them.
void populateReductionPatterns(const FragmentConverter &converter,
                               RewritePatternSet &patterns);

/// What decides on the instructions of a kernel's products, besides their
/// elements.
struct AtomChoice {
  const TargetInfo &target;
  bool ieee = false;

  warp::ProductAtom of(Type element) const {
    return warp::chooseProductAtom(target, element, ieee);
  }
};

/// vector.contract.
/// Whether an operand of a product is (k,m) or (n,k), in place of (m,k), (k,n).
bool isTransposed(vector::ContractionOp op, unsigned operand);

void populateContractPatterns(const FragmentConverter &converter,
                              RewritePatternSet &patterns, AtomChoice choice);

/// tile.store, tile.gather, tile.search and tile.coords.
void populateMemoryPatterns(const FragmentConverter &converter,
                            RewritePatternSet &patterns);

/// tile.scatter_add and tile.store_bins, after `placeBins`.
void populateBinPatterns(const FragmentConverter &converter,
                         RewritePatternSet &patterns);

/// Gives all tile.bins slots at the start of the kernel, which are cleared
/// where those stood.
void placeBins(RewriterBase &rewriter, warp::KernelOp kernel);

/// True for a row of numbers, one for each column of scores.
inline bool isRow(tile::LoadOp load) {
  return cast<VectorType>(load.getResult().getType()).getDimSize(0) == 1;
}

/// sum[i] = sum over j of lhs[i, j] * rhs[i, j], in f32, of tiles in memory
/// that hold whole rows.
struct RowProduct {
  Operation *sum;
  tile::LoadOp lhs, rhs;
};

/// Matches a vector.multi_reduction.
std::optional<RowProduct> matchRowProduct(Operation *op);

/// Gathers of captured tensors that TMA can copy become loads of tiles, if
/// these have place in so many bytes of shared memory beside the others.
void stageGathers(RewriterBase &rewriter, warp::KernelOp kernel,
                  AtomChoice choice, int64_t sharedBytes);

/// Each becomes a warp.dot_rows and a cast of what it gives.
void convertRowProducts(RewriterBase &rewriter, warp::KernelOp kernel);

/// The slot of a tile; an operand has panels where its product reads such, as
/// wide as equal parts of the columns allow, which products read one each.
warp::SlotType getSlotType(ArrayRef<int64_t> shape, Type element,
                           AtomChoice choice, bool isOperand = true,
                           int64_t parts = 1);

/// Gives every tile that is loaded a slot at the start of the kernel and copies
/// it where it was loaded. Where the plan has queries in registers, left
/// operands that are loaded go on to an `a` fragment at once. Tiles have panels
/// where their product reads such. The uses of the loads get an unrealized cast
/// of the slot or fragment, which the contract pattern looks through. Rows, and
/// tiles that are no operands of products, are read as fragments.
void placeSlots(RewriterBase &rewriter, warp::KernelOp kernel, PlanAttr plan,
                AtomChoice choice);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_TILETOWARP_PATTERNS_H
