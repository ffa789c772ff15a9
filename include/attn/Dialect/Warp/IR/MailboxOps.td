//===- MailboxOps.td - tiles that are handed out -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_MAILBOXOPS_TD
#define ATTN_DIALECT_WARP_IR_MAILBOXOPS_TD

include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Warp_DrawOp : Warp_Op<"draw"> {
  let summary = "the number of the next tile that nobody has taken";
  let description = [{
    In a `resident` kernel block n starts with tile n; then each draw gives the
    next number, counted over all blocks, from the number of blocks on. The
    counter is an element of memory that is zero when the kernel starts, and zero
    again when every tile below `tiles` has been followed by one draw. Where there
    are as many blocks as tiles nobody touches it: no tile is left.

    (C1) Stands in a `resident` kernel; if that has roles, in one that copies.
    (C2) The counter is one i32.
    ```mlir
    %next = warp.draw %counter below %tiles : memref<1xi32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead, MemWrite]>:$counter, Index:$tiles);
  let results = (outs Index:$number);
  let assemblyFormat = "$counter `below` $tiles attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Warp_MailboxOp : Warp_Op<"mailbox"> {
  let summary = "a ring of numbers in shared memory, from one role to others";
  let description = [{
    As `warp.ring`; its place is after the barriers of the rings.

    (C1) Stands directly in the kernel.
    ```mlir
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !warp.mailbox<2, 4>
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$filler, OptionalAttr<Warp_RoleNamesAttr>:$drainers);
  let results = (outs Res<Warp_MailboxType, "", [MemAlloc]>:$ring);
  let assemblyFormat = [{
    (`fills` `(` $filler^ `)` `drains` `(` custom<RoleNames>($drainers) `)`)? attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The byte of shared memory where item 0 lies. Needs a placed kernel with
    /// roles.
    int64_t getOffset();
  }];
}

def Warp_SendOp : Warp_Op<"send"> {
  let summary = "a role that copies sends numbers to all warps that drain the mailbox";
  let description = [{
    Waits until the item before in the same place has been received by all.

    (C1) As many numbers as an item of the ring has, each from -2^31 to 2^31 - 1.
    ```mlir
    warp.send %x, %head to %ring[%item] : !warp.mailbox<2, 2>
    ```
  }];
  let arguments = (ins Variadic<Index>:$values, Arg<Warp_MailboxType, "", [MemWrite]>:$ring,
                       Index:$item);
  let assemblyFormat = "$values `to` $ring `[` $item `]` attr-dict `:` type($ring)";
  let hasVerifier = 1;
}

def Warp_ReceiveOp : Warp_Op<"receive", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "waits for numbers that were sent, and reads them";
  let description = [{
    Waits for this warp alone. Releases the item, too.

    (C1) As many numbers as an item of the ring has.
    ```mlir
    %x, %head = warp.receive %ring[%item] : !warp.mailbox<2, 2>
    ```
  }];
  let arguments = (ins Arg<Warp_MailboxType, "", [MemRead, MemWrite]>:$ring, Index:$item);
  let results = (outs Variadic<Index>:$values);
  let assemblyFormat = "$ring `[` $item `]` attr-dict `:` type($ring)";
}

#endif // ATTN_DIALECT_WARP_IR_MAILBOXOPS_TD
