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
  let extraClassDeclaration = [{
    /// Defined beside the types, where their storage is known.
    void registerTypes();
  }];
}

class Warp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Warp_Dialect, mnemonic, traits>;

#endif // ATTN_DIALECT_WARP_IR_WARPDIALECT_TD
