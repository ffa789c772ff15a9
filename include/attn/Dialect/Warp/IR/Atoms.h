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
// add to an `acc` fragment of f32. What they differ in is in
// attn/Layout/Products.h.
//
// The assembler (ptxas 13.0) leaves products of wgmma in flight only where it
// sees that nobody else has their registers; else it runs all of them one after
// the other, and says why (`isSerialized` of Target/Ptxas.h then has the kernel
// refused):
//
// - C7512: there are not enough registers for what is in flight
//   (`warp-double-buffer` counts them);
// - C7513: registers of an operand may be written while a product reads them:
//   a fragment that is loaded, or cast to the operand's type for what a loop
//   hands on in its place, may get the same ones (`warp-make-async` waits
//   before it);
// - C7518: a branch that may be divergent is near (barriers are predicated,
//   Atoms/Mbarrier.cpp);
// - others of C7510 to C7519: something comes between a product and its wait
//   (both are blocks of assembly with tied registers, Atoms/Wgmma.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_ATOMS_H
#define ATTN_DIALECT_WARP_IR_ATOMS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Products.h"

namespace attn {
struct TargetInfo;
} // namespace attn

namespace attn::warp {

using layout::ProductTraits;

const ProductTraits &getTraits(ProductAtom atom);

/// Whether it is wgmma that reads operands in such a slot: the warps of a group
/// together, and, as TMA does, by another way than loads and stores, which what
/// these wrote has to be fenced for. Its targets have stmatrix, too.
inline bool isReadByWgmma(SlotType slot) { return slot.hasPanels(); }

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
