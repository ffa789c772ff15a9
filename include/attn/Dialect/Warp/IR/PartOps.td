//===- PartOps.td - warpgroups that see a part of the keys -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_PARTOPS_TD
#define ATTN_DIALECT_WARP_IR_PARTOPS_TD

include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_PartRowOp : Warp_Op<"part_row", [Pure]> {
  let summary = "the first row of the tile that this warpgroup computes";
  let description = [{
    Group g of a role has the rows from g * `rows` on. 0 in a kernel without
    roles, whose warps go through the same loops.

    (C1) `rows` is positive.
    ```mlir
    %r = warp.part_row of 64
    ```
  }];
  let arguments = (ins I64Attr:$rows);
  let results = (outs Index:$row);
  let assemblyFormat = "`of` $rows attr-dict";
  let hasVerifier = 1;
}

def Warp_NarrowOp : Warp_Op<"narrow", [Pure]> {
  let summary = "the key blocks that this warpgroup goes through";
  let description = [{
    [lo, hi) in a role that copies, which loads all of it, and in a kernel without
    roles. A group of a role that computes goes through
    ```
    first = min(max(ownLo, lo), max(hi - 1, lo))
    end   = min(max(ownHi, first + 1), hi)
    ```
    which is empty only if [lo, hi) is. What is loaded for others it must take
    from the rings and give back: in a loop from `lo` to `first` before its
    own blocks, and in one from `end` to `hi` after them.

    ```mlir
    %first, %end = warp.narrow [%lo, %hi) to [%ownLo, %ownHi)
    scf.for %n = %end to %hi step %c1 iter_args(%i = …) {   // passed over
      %k = warp.await %K[%i] ; warp.release %k
      …
    }
    ```
  }];
  let arguments = (ins Index:$lo, Index:$hi, Index:$ownLo, Index:$ownHi);
  let results = (outs Index:$first, Index:$end);
  let assemblyFormat = [{
    `[` $lo `,` $hi `)` `to` `[` $ownLo `,` $ownHi `)` attr-dict
  }];
  let extraClassDeclaration = [{
    /// What a result stands for where all rows are meant.
    ::mlir::Value getWhole(::mlir::Value result) {
      return result == getFirst() ? getLo() : getHi();
    }
  }];
}

#endif // ATTN_DIALECT_WARP_IR_PARTOPS_TD
