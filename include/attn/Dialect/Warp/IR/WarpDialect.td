//===- WarpDialect.td - the warp dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARPDIALECT_TD
#define ATTN_DIALECT_WARP_IR_WARPDIALECT_TD

include "attn/Support/OwnAttributes.td"
include "mlir/IR/OpBase.td"

def Warp_Dialect : Dialect {
  let name = "warp";
  let cppNamespace = "::attn::warp";
  let summary = "Who does it, where is it, when is it finished";
  let description = [{
    The concurrent room. A `warp.kernel` is one thread block of `warps` warps.
    A tile is a *fragment* (`!warp.frag`, spread over the lanes as its layout
    says), a *slot* (`!warp.slot`, a tile in shared memory) or lives in global
    memory. Elementwise arithmetic on fragments is upstream's `arith` and
    `math`; operands of different layouts are different types and refused.
    Wait counts, buffer numbers and byte offsets are derived when the program
    is lowered; nothing here writes them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    // What the host's side of a program says to the runtime: the only
    // attributes of the dialect that stand on other operations.

    /// On a `memref.alloc` of a host function: all bytes are zero when the
    /// first kernel starts.
    static constexpr ::llvm::StringLiteral kZeroedAttrName = "warp.zeroed";
    /// Beside it: all bytes are zero again when the last kernel has ended, so
    /// that the next launch may find them so.
    static constexpr ::llvm::StringLiteral kRestoredAttrName = "warp.restored";
    /// Beside it: tiles are drawn from it. Where no resident kernel has more
    /// tiles than there are multiprocessors none is, and it has no element.
    static constexpr ::llvm::StringLiteral kDrawnAttrName = "warp.drawn";
    /// On a `gpu.launch_func`: an array of `#warp.tensor_map`, one for each of
    /// its last operands.
    static constexpr ::llvm::StringLiteral kTensorMapsAttrName =
        "warp.tensor_maps";
    /// On a `gpu.launch_func`: its blocks stay and share the work out; the
    /// grid's x is at most the number of multiprocessors.
    static constexpr ::llvm::StringLiteral kResidentAttrName = "warp.resident";
    /// On a `gpu.launch_func`: its blocks wait for the launch before, and may
    /// start while that runs.
    static constexpr ::llvm::StringLiteral kEarlyAttrName = "warp.early";
    /// On a function of a GPU: it copies a tensor into another layout; bytes of
    /// an element, and elements of the last two dimensions for each block.
    static constexpr ::llvm::StringLiteral kRelayoutAttrName = "warp.relayout";

    /// Defined beside the types, where their storage is known.
    void registerTypes();
  }];
}

class Warp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Warp_Dialect, mnemonic, !listconcat(traits, [OwnAttributes])>;

#endif // ATTN_DIALECT_WARP_IR_WARPDIALECT_TD
