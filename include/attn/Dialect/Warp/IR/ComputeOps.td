//===- ComputeOps.td - products -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_COMPUTEOPS_TD
#define ATTN_DIALECT_WARP_IR_COMPUTEOPS_TD

include "attn/Dialect/Warp/IR/WarpInterfaces.td"
include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_LoadFragOp : Warp_Op<"load_frag"> {
  let summary = "reads a fragment from a slot into registers";
  let description = [{
    An A operand, or an `acc` fragment of floats. A slot of one row is read as the
    columns (1xN) or the rows (Nx1) of a tile. With `transpose` the rows of the
    slot are the columns of the fragment.
    ```mlir
    %q = warp.load_frag %slot : !warp.slot<128x64xbf16> -> !warp.frag<128x64xbf16, a, 4>
    %lse = warp.load_frag %row : !warp.slot<1x64xf32> -> !warp.frag<64x1xf32, acc, 4>
    %bias = warp.load_frag %tile transpose : !warp.slot<32x128xbf16, panels<128>> -> !warp.frag<128x32xbf16, acc, 8>
    ```

    (C1) Shapes and elements agree.
    (C2) The rows of an `acc` fragment do not spread over the warps.
    (C3) `transpose` is of 16-bit elements that are no operand, and of panels
         of 64 of them.
  }];
  let arguments = (ins Arg<Warp_SlotType, "", [MemRead]>:$slot, UnitAttr:$transpose);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$slot (`transpose` $transpose^)? attr-dict `:` type($slot) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether it is a tile of several rows that is no operand.
    bool readsTile() {
      return getResult().getType().getKind() == FragKind::Acc &&
             getSlot().getType().getShape().front() != 1;
    }
  }];
}

def Warp_MmaOp : Warp_Op<"mma", [Warp_ProductOpInterface, AllTypesMatch<["acc", "result"]>]> {
  let summary = "result = acc + a b, synchronous";
  let description = [{
    `a` is MxK: an `a` fragment, or a slot, of KxM with `transpose_a`. `b` is a
    slot: KxN, or NxK with `transpose_b` (the key tile as it lies in memory). f32
    accumulation.

    The atom is the instruction. `mma_sync` multiplies f16 or bf16, one warp at a
    time; `mma_tf32` f32, as three products of tf32; `fma_f32` f32, by
    multiply-adds that round to nearest, without the tensor cores; `wgmma` f16 or
    bf16, four warps at a time.

    (C1) The elements are those that the atom multiplies.
    (C2) Slots have panels for `wgmma`, and only for it.
    (C3) The warps are a multiple of those that execute the atom together: 4 for
         `wgmma`.
    (C4) K is a multiple of the atom's depth: 16, or 8 for f32. The accumulator
         has at most 256 columns for `wgmma`.
    (C5) `transpose_a` is for slots, of 16-bit elements.
    (C6) A descriptor of `wgmma` can say where its slots lie.
    (C7) Groups of warps that have different columns of the accumulator, as it
         has too few rows for all, read parts of operand b: by `wgmma`, 4 warps
         at a time, whole panels or parts of one; by `mma_sync` multiples of 16
         columns that the swizzle does not mix; by no other.
    ```mlir
    %s = warp.mma mma_sync %q, %k, %zero transpose_b : !warp.frag<128x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<128x64xf32, acc, 4>
    ```
  }];
  let arguments = (ins Warp_ProductAtomAttr:$atom, Arg<AnyTypeOf<[Warp_FragType, Warp_SlotType]>, "", [MemRead]>:$a, Arg<Warp_SlotType, "", [MemRead]>:$b,
                       Warp_FragType:$acc, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = [{
    custom<ProductAtom>($atom) $a `,` $b `,` $acc (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict
    `:` type($a) `,` type($b) `,` type($acc)
  }];
}

def Warp_MmaAsyncOp : Warp_Op<"mma_async", [
    Warp_ProductOpInterface, MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the result is the accumulator, in flight", "acc", "result",
                   "::attn::warp::PendingType::get($_self.getContext(), ::llvm::cast<FragType>($_self))">]> {
  let summary = "starts result = acc + a b";
  let description = [{
    As `warp.mma`. Products are executed in the order in which they are issued.
    The slots and the `a` fragment are read until `warp.wait` gives the result.

    (C1) The atom can be waited for later, as `wgmma` can.
    ```mlir
    %s = warp.mma_async wgmma %q, %k, %zero transpose_b : !warp.slot<128x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<128x64xf32, acc, 8>
    ```
  }];
  let arguments = (ins Warp_ProductAtomAttr:$atom, AnyTypeOf<[Warp_FragType, Warp_SlotType]>:$a, Warp_SlotType:$b, Warp_FragType:$acc,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Warp_PendingType:$result);
  let assemblyFormat = [{
    custom<ProductAtom>($atom) $a `,` $b `,` $acc (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict
    `:` type($a) `,` type($b) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def Warp_WaitOp : Warp_Op<"wait", [
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the result is the fragment of the pending value", "pending", "result",
                   "::llvm::cast<PendingType>($_self).getFragment()">]> {
  let summary = "the fragment of a pending value, once the tensor cores are done with it";
  let description = [{
    How many younger products may still be in flight is derived
    (attn/Dialect/Warp/Analysis/PendingMmas.h).
  }];
  let arguments = (ins Warp_PendingType:$pending);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$pending attr-dict `:` type($pending)";
}

#endif // ATTN_DIALECT_WARP_IR_COMPUTEOPS_TD
