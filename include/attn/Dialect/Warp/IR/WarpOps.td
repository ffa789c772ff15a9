//===- WarpOps.td - operations of the warp dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARPOPS_TD
#define ATTN_DIALECT_WARP_IR_WARPOPS_TD

include "attn/Dialect/Warp/IR/PartOps.td"
include "attn/Dialect/Warp/IR/WarpInterfaces.td"
include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Warp_KernelOp : Warp_Op<"kernel", [
    SingleBlock, RecursiveMemoryEffects, AutomaticAllocationScope, SymbolTable,
    SingleBlockImplicitTerminator<"YieldOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "the program of one thread block, run for every block of a grid";
  let description = [{
    ```mlir
    warp.kernel @causal blocks(%x, %y, %z) in (%nx, %ny, %nz) warps(4) stages(2) shared(98304) {
      …
    }
    ```
    It is launched by its name. The kernels of a function run one after the
    other; no two have one name.
    `stages` is the number of tiles that the plan wants in flight, what
    `warp-buffer` builds by default; `scheduler` how `warp-persist` has blocks
    come by their tiles (`grid`, `static` or `dynamic`), if the plan says.
    `shared` is the size in bytes of the block's shared memory once
    `warp-assign-resources` has placed it.
    With `resident` no more blocks run than stay on the device at once, at most
    those of the grid: `gpu.grid_dim x` of them, which share the work out by
    loops of their own.

    The protocol of slots and rings (lib/Dialect/Warp/IR/WarpProtocol.cpp):
    (W1) A pending value is waited for exactly once, in the block that issued it
         (a turn may yield it). So nothing is in flight on a back edge.
    (W2) An awaited slot is released exactly once, in the block that awaited it,
         and not read afterwards; after the wait of every pending value that
         reads it. A slot that a pending value reads is not copied or stored to,
         and nothing is stored via it.
    (W3) A ring that is awaited is filled, an item is copied before it is
         awaited, and a copy into the slot of an earlier item stands after a
         block-wide barrier (`warp.await` or `warp.copy`) that follows the
         release of that item. With roles: only the role that fills a ring
         fills it, only those that drain it await its items; two roles use the
         items of the rings between them one for one, in the same loops and the
         same order, and no roles wait in a cycle; the items of a ring are
         numbered 0, 1, 2, … as they are used; no more items are held than the
         ring has slots; what a role fills for itself it fills before it awaits
         it; a turn is taken by every group alike, and nothing is filled in it.
         Under the answer of `warp.any`, which warps get differently, stands
         nothing that warps do together. What is said of a ring and its copies
         and awaits holds for `warp.mailbox`, `warp.send` and `warp.receive`. A
         loop whose end is not known in advance is an `scf.while`, in both roles,
         that passes on what it carries and ends by a condition of numbers that
         are the same in both. Groups that go through fewer blocks
         (`warp.narrow`) pass over the items of the others, and take as many
         turns.
    (W4) Placed slots and rings lie inside `shared` bytes, below the barriers of
         the rings, and do not overlap. The registers of all warps exist.
    (W5) Every fragment is spread over the warps of its role, or of the kernel if
         it has none. Roles read scalars and rings of the kernel and what they
         compute themselves, and store via its slots.

    With roles the kernel holds rings, slots to store via, scalar operations,
    `warp.exit_if` and two or more `warp.role`, and `warps` is their sum: first
    those of the roles that compute, then those of the roles that copy. Every
    slot of a ring then has two barriers of 8 bytes (full, empty); they lie at
    the end of `shared`, with what `warp.mailbox` hold.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Index:$gridX, Index:$gridY, Index:$gridZ,
                       I64Attr:$warps, OptionalAttr<I64Attr>:$stages, OptionalAttr<I64Attr>:$sharedBytes,
                       UnitAttr:$resident, OptionalAttr<Warp_SchedulerAttr>:$scheduler);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    ::std::vector<RoleOp> getRoles();
    bool hasRoles();
    /// The role of a name, or null.
    RoleOp getRole(::llvm::StringRef name);
    /// Bytes of the rings' barriers and of numbers at the end of shared memory;
    /// 0 without roles.
    int64_t getBarrierBytes();
  }];
}

def Warp_RoleOp : Warp_Op<"role", [
    Symbol, SingleBlock, RecursiveMemoryEffects, HasParent<"KernelOp">,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the program of some warps of a block, beside that of the others";
  let description = [{
    A role that copies has one warp fill rings from global memory, hand out tiles
    and compute scalars; one that computes has all of its warps do everything
    else. Rings say by name which role fills them and which drain them. Warps are
    counted inside the role and come in groups of 4. `registers` is what each
    thread of the role may use.
    ```mlir
    %ring = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x128xbf16>
    warp.role @load copy warps(4) registers(24) {
      scf.for … { warp.copy_async %k[…] to %ring[%i] by tma : … }
    }
    warp.role @softmax compute warps(8) registers(240) { … }
    ```
    Filling an item waits until every warp that drains the ring has released the
    slot's previous item. `warp.await` waits, for this warp alone, until the item
    has arrived.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Warp_RoleKindAttr:$kind, I64Attr:$warps,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $kind `warps` `(` $warps `)` (`registers` `(` $registers^ `)`)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    /// Warpgroups: 4 warps each.
    int64_t getNumGroups() { return getWarps() / 4; }
    /// Whether one warp runs it.
    bool isCopy() { return getKind() == RoleKind::Copy; }
    /// Warps that run it, and arrive at barriers.
    int64_t getActiveWarps() { return isCopy() ? 1 : getWarps(); }
    /// Its first warp among those of the block.
    int64_t getFirstWarp();
  }];
}

def Warp_YieldOp : Warp_Op<"yield", [
    Pure, Terminator, ParentOneOf<["KernelOp", "RoleOp", "TurnOp"]>]> {
  let summary = "end of a kernel, a role or a turn";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let hasVerifier = 1;
}

def Warp_ExitIfOp : Warp_Op<"exit_if", [MemoryEffects<[MemWrite]>]> {
  let summary = "this block may end here";
  let description = [{
    The meaning of `tile.exit_if`: where the condition, which is the same for all
    warps, holds, nothing is lost if what follows in the kernel does not run. A
    block ends here; in a loop over tiles (`warp-persist`) such tiles are never
    begun.

    (C1) Stands directly in the kernel, before its roles.
    ```mlir
    warp.exit_if %nothing
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shared memory and copies
//===----------------------------------------------------------------------===//

def Warp_AllocOp : Warp_Op<"alloc"> {
  let summary = "one slot of shared memory";
  let description = [{
    Stands directly in the kernel: shared memory lives as long as the block.
    `at` is its byte offset, once `warp-assign-resources` has placed it.
    ```mlir
    %q = warp.alloc at 0 : !warp.slot<128x64xbf16>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Warp_SlotType, "", [MemAlloc]>:$slot);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def Warp_RingOp : Warp_Op<"ring"> {
  let summary = "a ring of slots in shared memory";
  let description = [{
    Item number i of the ring lies in slot i mod depth, so item i + depth takes
    the place of item i. Items are filled by `warp.copy_async` or, in roles that
    compute, by `warp.store_frag`, read between
    `warp.await` and `warp.release`. In a kernel with roles the ring names the
    role that fills it and those that drain it; each of these sees every item.
    ```mlir
    %k = warp.ring : !warp.ring<2, 64x128xbf16>
    %v = warp.ring fills(@load) drains(@first, @second) : !warp.ring<2, 64x128xbf16>
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$filler, OptionalAttr<Warp_RoleNamesAttr>:$drainers,
                       OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Warp_RingType, "", [MemAlloc]>:$ring);
  let builders = [
    OpBuilder<(ins "RingType":$type), [{ build($_builder, $_state, type, {}, {}, {}); }]>
  ];
  let assemblyFormat = [{
    (`fills` `(` $filler^ `)` `drains` `(` custom<RoleNames>($drainers) `)`)? (`at` $offset^)? attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of the two barriers of a slot, in a kernel with roles: first full,
    /// then empty.
    static constexpr int64_t barrierBytesPerSlot = 16;
    /// The byte of shared memory where the barriers of slot 0 lie; those of slot
    /// s follow at `+ s * barrierBytesPerSlot`. Needs a placed kernel with roles.
    int64_t getBarrierOffset();
  }];
}

def Warp_CopyOp : Warp_Op<"copy"> {
  let summary = "copies a box of global memory to a slot; all warps, synchronous";
  let description = [{
    On return every warp of the block sees the slot's new content, and no warp
    overwrote what another was still reading. Out of range reads 0, as in
    `tile.load`.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<Index>:$indices,
                       Arg<Warp_SlotType, "", [MemWrite]>:$slot);
  let assemblyFormat = "$view `[` $indices `]` `to` $slot attr-dict `:` type($view) `,` type($slot)";
  let hasVerifier = 1;
}

def Warp_CopyAsyncOp : Warp_Op<"copy_async", [AttrSizedOperandSegments]> {
  let summary = "starts copying a box of global memory to slot `item mod depth` of a ring";
  let description = [{
    Item number `item` of the ring, out of range reads 0. All warps of the block
    take part; the condition is the same for all. With `when`, nothing is read or
    written if the condition is false (the item then must not be awaited for its
    content).

    The atom is `cp_async`, 16 bytes at a time by all threads, or `tma`, boxes by
    one thread, which arrive at the barrier of their item. By `cp_async` each
    copy_async is one group of the counting in
    attn/Dialect/Warp/Analysis/PendingCopies.h, also when its condition is
    false: a wait counts groups, not bytes.

    (C1) `tma` in a role, `cp_async` elsewhere.
    (C2) By `tma`: tiles in panels, of at most 256 rows, or one row of at most
         256 columns; a memref of at most 4 dimensions.
    ```mlir
    warp.copy_async %k[%b, %h, %row, %c0] to %ring[%next] when %more : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, !warp.ring<2, 64x128xbf16>
    ```
    An item of one row takes elements of the innermost dimension. With several
    boxes the item's rows come in equal parts, a multiple of 8 each, one from
    each box, the first rows first: the pages of a cache of keys, say.
    ```mlir
    warp.copy_async %lse[%b, %h, %row] to %rows[%next] : memref<?x?x?xf32, strided<[?, ?, 1]>>, !warp.ring<2, 1x64xf32>
    warp.copy_async %pool[%p0, %h, %c0, %c0], [%p1, %h, %c0, %c0] to %ring[%next] : memref<?x?x32x128xbf16, strided<[?, ?, ?, 1]>>, !warp.ring<2, 64x128xbf16>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<Index>:$indices,
                       Arg<Warp_RingType, "", [MemWrite]>:$ring, Index:$item, Optional<I1>:$condition,
                       DefaultValuedAttr<Warp_CopyAtomAttr, "::attn::warp::CopyAtom::CpAsync">:$atom,
                       DefaultValuedAttr<I64Attr, "1">:$boxes);
  let assemblyFormat = [{
    custom<Boxes>($view, $indices, $boxes) `to` $ring `[` $item `]` (`when` $condition^)? (`by` $atom^)? attr-dict
    `:` type($view) `,` type($ring)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The indices of one of its boxes.
    ::mlir::OperandRange getBox(int64_t number);
    /// Rows that come from one.
    int64_t getRowsPerBox();
  }];
}

def Warp_AwaitOp : Warp_Op<"await"> {
  let summary = "waits until item `item` of a ring has arrived for all warps";
  let description = [{
    A block-wide barrier: every warp has come here, so every read before it, by
    any warp, is over. That is what makes a slot free for the next item: a
    `copy_async` into the slot of a released item must stand after an `await`
    (of any ring) or a `warp.copy` that follows the release.
    How many younger copies may still be in flight is derived from the program
    (attn/Dialect/Warp/Analysis/PendingCopies.h).
  }];
  let arguments = (ins Arg<Warp_RingType, "", [MemRead, MemWrite]>:$ring, Index:$item);
  let results = (outs Warp_SlotType:$slot);
  let assemblyFormat = "$ring `[` $item `]` attr-dict `:` type($ring) `->` type($slot)";
  let hasVerifier = 1;
}

def Warp_ReleaseOp : Warp_Op<"release"> {
  let summary = "this warp no longer reads the awaited slot";
  let description = [{
    Exactly once for each `await`, in the same block, after its last reader.
    Other warps may still be reading; see `warp.await`.
  }];
  let arguments = (ins Arg<Warp_SlotType, "", [MemFree]>:$slot);
  let assemblyFormat = "$slot attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def Warp_StoreOp : Warp_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "writes a fragment to a box of global memory; out of range is not written";
  let description = [{
    The fragment's dimensions are the innermost dimensions of the memref. An
    Mx1 fragment may be written to a memref whose innermost dimension is the
    row (`rows` set): each row is written once.

    With `via`, on its way the tile lies in a slot, from where it is written in
    pieces of 16 bytes by the warps, or in boxes by TMA. The slot has
    the rows of the fragment; if it has fewer columns the tile goes through it in
    parts. Each warp (warpgroup, with TMA) uses its own rows only, which nobody
    else may read: the slot is an own one, or one that products read as `a`.
    What lay in these rows is lost. A slot of a ring can be released after the
    store.

    With `accumulate` the elements, f32, are added to those in memory, atomically
    and in no order: one by one, or by TMA.

    (C1) The atom is `plain`, or, via a slot and in a role, `tma`.
    (C2) By `tma`: a slot in panels; a memref of at most 4 dimensions.
    ```mlir
    %stage = warp.alloc : !warp.slot<128x64xbf16, panels<128>>
    warp.store %o, %out[%b, %h, %row, %c0] via %stage by tma : !warp.frag<128x128xbf16, acc, 8>, memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, !warp.slot<128x64xbf16, panels<128>>
    ```
  }];
  let arguments = (ins Warp_FragType:$value, Arg<AnyMemRef, "", [MemWrite]>:$view,
                       Variadic<Index>:$indices, Arg<Optional<Warp_SlotType>, "", [MemWrite]>:$staging,
                       UnitAttr:$rows, UnitAttr:$accumulate,
                       DefaultValuedAttr<Warp_CopyAtomAttr, "::attn::warp::CopyAtom::Plain">:$atom);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `]` (`rows` $rows^)? (`accumulate` $accumulate^)? (`via` $staging^)? (`by` $atom^)? attr-dict
    `:` type($value) `,` type($view) (`,` type($staging)^)?
  }];
  let hasVerifier = 1;
}

def Warp_StoreFragOp : Warp_Op<"store_frag"> {
  let summary = "writes a fragment to a slot, where products find it";
  let description = [{
    In a kernel without roles to a slot of `warp.alloc`, by all warps and
    synchronous, as `warp.copy`. In a role that computes to an item of a ring that
    the role fills: each warp waits, for itself, until the item before has left
    the slot, and writes its rows; the item has arrived when all warps of the role
    have.
    ```mlir
    warp.store_frag %ds to %slot : !warp.frag<64x64xbf16, acc, 4>, !warp.slot<64x64xbf16>
    warp.store_frag %ds to %ring[%item] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
    ```
  }];
  let arguments = (ins Warp_FragType:$value,
                       Arg<AnyTypeOf<[Warp_SlotType, Warp_RingType]>, "", [MemWrite]>:$target,
                       Optional<Index>:$item);
  let assemblyFormat = "$value `to` $target (`[` $item^ `]`)? attr-dict `:` type($value) `,` type($target)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of the slot, or of one of the ring.
    SlotType getSlotType();
  }];
}

def Warp_GatherOp : Warp_Op<"gather"> {
  let summary = "elements of global memory at computed indices; out of range reads 0";
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<AnyType>:$indices);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `,` functional-type($indices, $result)";
  let hasVerifier = 1;
}

def Warp_SearchOp : Warp_Op<"search"> {
  let summary = "how many elements of a sorted row of global memory are <= a value";
  let description = [{
    The meaning of `tile.search`: one leading index per dimension of the memref
    but the last, which never decreases, then the value; each is an i32 or an
    `acc` fragment of i32 that stretches to the result. Of scalars only, the
    result is an i32, and the search a scalar operation: it may stand in a
    producer, and beside roles.
    ```mlir
    %n = warp.search %ends[%b], %rows : memref<?x?xi32>, !warp.frag<64x1xi32, acc, 4>, (i32) -> !warp.frag<64x1xi32, acc, 4>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<AnyType>:$indices,
                       AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $view `[` $indices `]` `,` $value attr-dict `:` type($view) `,` type($value) `,` functional-type($indices, $result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles that are handed out
//===----------------------------------------------------------------------===//

def Warp_DrawOp : Warp_Op<"draw"> {
  let summary = "the number of the next tile that nobody has taken";
  let description = [{
    In a `resident` kernel block n starts with tile n; then each draw gives the
    next number, counted over all blocks, from the number of blocks on. The
    counter is an element of memory that is zero when the kernel starts, and zero
    again when every tile below `tiles` has been followed by one draw.

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

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

def Warp_LoadFragOp : Warp_Op<"load_frag"> {
  let summary = "reads a fragment from a slot into registers";
  let description = [{
    An A operand, or an `acc` fragment of f32. A slot of one row is read as the
    columns (1xN) or the rows (Nx1) of a tile.
    ```mlir
    %q = warp.load_frag %slot : !warp.slot<128x64xbf16> -> !warp.frag<128x64xbf16, a, 4>
    %lse = warp.load_frag %row : !warp.slot<1x64xf32> -> !warp.frag<64x1xf32, acc, 4>
    ```
  }];
  let arguments = (ins Arg<Warp_SlotType, "", [MemRead]>:$slot);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$slot attr-dict `:` type($slot) `->` type($result)";
  let hasVerifier = 1;
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

def Warp_TurnOp : Warp_Op<"turn", [SingleBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the warpgroups of a role do this one after the other";
  let description = [{
    Group 0 first, then group 1, …; a group comes in again when the last one has
    been through. While one group issues its products the others do something
    else (ping-pong). Yields pending values and awaited slots, which then belong
    to the block around the turn.
    ```mlir
    %sp, %op = warp.turn {
      %s = warp.mma_async wgmma %q, %k, %zero transpose_b : …
      %o = warp.mma_async wgmma %p, %v, %acc : …
      warp.yield %s, %o : …
    } : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>
    ```
  }];
  let results = (outs Variadic<AnyTypeOf<[Warp_PendingType, Warp_SlotType]>>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict (`:` type($results)^)?";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    YieldOp getYield();
  }];
}

include "attn/Dialect/Warp/IR/FragmentOps.td"

#endif // ATTN_DIALECT_WARP_IR_WARPOPS_TD
