//===- Atoms.h - what instructions accept -----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The atoms of products take their left operand from registers, as an `a`
// fragment, or from a slot, their right one from a slot, either way round, and
// add to an `acc` fragment of f32. Here is what they differ in.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_ATOMS_H
#define ATTN_DIALECT_WARP_IR_ATOMS_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn {
struct TargetInfo;
} // namespace attn

namespace attn::warp {

struct ProductTraits {
  /// Of the elements that it multiplies.
  int64_t elementBits = 16;
  /// What k is a multiple of.
  int64_t depth = 16;
  /// Its slots have panels; or none.
  bool readsPanels = false;
  /// A slot of `a` may be KxM.
  bool transposesA = true;
  /// Warps that execute it together.
  int64_t warpsAtOnce = 1;
  /// The most columns of the accumulator; 0: as many as there are.
  int64_t maxColumns = 0;
  /// It can be issued, and waited for later (`warp.mma_async`).
  bool isAsync = false;
};

ProductTraits getTraits(ProductAtom atom);

/// The instruction that a target has for products of such elements. `ieee`:
/// without the tensor cores where they are f32.
ProductAtom chooseProductAtom(const TargetInfo &target, Type element,
                              bool ieee = false);

/// Why TMA cannot copy so many rows of a tile between a slot and a memref at
/// once, in words; empty if it can.
std::string findTMAObstacle(MemRefType view, SlotType slot, int64_t rows);

/// Whether the atom accepts the operands, whose shapes are right; emits what it
/// does not.
LogicalResult verifyAtom(ProductOp op);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_ATOMS_H
