//===- CopyOps.td - shared and global memory -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_COPYOPS_TD
#define ATTN_DIALECT_WARP_IR_COPYOPS_TD

include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

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
    `tile.load`. Of several boxes, as in `warp.copy_async`.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<Index>:$indices,
                       Arg<Warp_SlotType, "", [MemWrite]>:$slot,
                       DefaultValuedAttr<I64Attr, "1">:$boxes);
  let assemblyFormat = [{
    custom<Boxes>($view, $indices, $boxes) `to` $slot attr-dict `:` type($view) `,` type($slot)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The indices of one of its boxes.
    ::mlir::OperandRange getBox(int64_t number);
    /// Rows that come from one.
    int64_t getRowsPerBox();
  }];
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

    In a role it waits for the item's barrier. With `unless` it does not where
    a `warp.test` of the item, before it or in the iteration before, said that
    the item is there.
    ```mlir
    %there = warp.test %V[%n] : !warp.ring<2, 64x64xbf16, panels<128>>
    %v = warp.await %V[%n] unless %there
      : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
    ```
  }];
  let arguments = (ins Arg<Warp_RingType, "", [MemRead, MemWrite]>:$ring, Index:$item,
                       Optional<I1>:$arrived);
  let results = (outs Warp_SlotType:$slot);
  let builders = [OpBuilder<(ins "::mlir::Type":$slot, "::mlir::Value":$ring,
                                 "::mlir::Value":$item), [{
    build($_builder, $_state, slot, ring, item, /*arrived=*/::mlir::Value());
  }]>];
  let assemblyFormat = "$ring `[` $item `]` (`unless` $arrived^)? attr-dict `:` type($ring) `->` type($slot)";
  let hasVerifier = 1;
}

def Warp_TestOp : Warp_Op<"test"> {
  let summary = "whether item `item` of a ring has arrived";
  let description = [{
    For a role that drains the ring and does not fill it. Waits for nothing: the
    answer takes as long as that of an `await` whose item is there, but what
    does not need it runs beside. False says nothing, and warps may be told
    different things, so only an `await` of the item may use it, in the same
    block or, carried by the loop around it, in the next iteration. The item is
    the one that the role awaits next in the ring (an mbarrier knows the parity
    of its phase only; PTX ISA, mbarrier.test_wait).
  }];
  let arguments = (ins Arg<Warp_RingType, "", [MemRead, MemWrite]>:$ring, Index:$item);
  let results = (outs I1:$arrived);
  let assemblyFormat = "$ring `[` $item `]` attr-dict `:` type($ring)";
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

    With `packed` the elements, f32, lie in the innermost dimension of the memref
    in an order that the target picks, the same for all that has this type: the
    lanes of a warp write side by side. All indices are inside.

    With `slices` and `below`, as in `tile.store`: parts of the rows, a multiple
    of 8 each, go to slices of their own, which are inside of the memref, those
    that are written.

    (C1) The atom is `plain`, or, via a slot and in a role, `tma`.
    (C2) By `tma`: a slot in panels; a memref of at most 4 dimensions.
    (C3) Several slices go via no slot, and are neither packed nor accumulated.
    ```mlir
    %stage = warp.alloc : !warp.slot<128x64xbf16, panels<128>>
    warp.store %o, %out[%b, %h, %row, %c0] via %stage by tma : !warp.frag<128x128xbf16, acc, 8>, memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, !warp.slot<128x64xbf16, panels<128>>
    ```
  }];
  let arguments = (ins Warp_FragType:$value, Arg<AnyMemRef, "", [MemWrite]>:$view,
                       Variadic<Index>:$indices, Optional<Index>:$sliceEnd,
                       Arg<Optional<Warp_SlotType>, "", [MemWrite]>:$staging,
                       UnitAttr:$rows, UnitAttr:$accumulate, UnitAttr:$packed,
                       DefaultValuedAttr<I64Attr, "1">:$slices,
                       DefaultValuedAttr<Warp_CopyAtomAttr, "::attn::warp::CopyAtom::Plain">:$atom);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `]` (`rows` $rows^)? (`accumulate` $accumulate^)? (`packed` $packed^)?
    (`slices` $slices^)? (`below` `(` $sliceEnd^ `)`)? (`via` $staging^)? (`by` $atom^)? attr-dict
    `:` type($value) `,` type($view) (`,` type($staging)^)?
  }];
  let hasVerifier = 1;
}

def Warp_LoadOp : Warp_Op<"load"> {
  let summary = "reads what a packed warp.store of the same type wrote";
  let description = [{
    ```mlir
    %sum = warp.load %sums[%b, %h, %n, %c0] packed : memref<?x?x?x8192xf32> -> !warp.frag<64x128xf32, acc, 8>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<Index>:$indices);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$view `[` $indices `]` `packed` attr-dict `:` type($view) `->` type($result)";
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
  let description = [{
    With `inside` none is out of range; with `aligned`, too, an element of an
    even column and the one behind it in its row lie at a multiple of their size:
    promises of the caller.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$view, Variadic<AnyType>:$indices,
                       UnitAttr:$inside, UnitAttr:$aligned);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `,` functional-type($indices, $result)";
  let hasVerifier = 1;
}

def Warp_ClearBinsOp : Warp_Op<"clear_bins"> {
  let summary = "the bins of this warp are zeros";
  let description = [{
    The slot holds `tile.bins` for the warps that run the operation: a column for
    each of their lanes, which only its warp reads and writes, and rows for each
    bin: one, or one for each row of a tile that a lane has elements in. What is
    out of range goes to rows behind those. It is not swizzled.
    ```mlir
    %bins = warp.alloc : !warp.slot<72x256xf32>
    warp.clear_bins %bins : !warp.slot<72x256xf32>
    warp.scatter_add %added, %bins[%index] of 64 : !warp.frag<128x64xf32, acc, 8>, !warp.slot<72x256xf32>, !warp.frag<128x64xi32, acc, 8>
    warp.store_bins %bins of 64, %out[%b, %h, %n, %c0] : !warp.slot<72x256xf32>, memref<?x?x?x?xf32>
    ```
  }];
  let arguments = (ins Arg<Warp_SlotType, "", [MemWrite]>:$bins);
  let assemblyFormat = "$bins attr-dict `:` type($bins)";
  let extraClassDeclaration = [{
    /// The slot of so many bins, or so many for each of `rows` rows of a tile (0:
    /// the rows share them), of that many warps.
    static SlotType getSlotType(::mlir::MLIRContext *context, int64_t count, int64_t rows, int64_t warps);
    /// Rows of a tile of `rows` rows that one lane has elements in; 1 if `rows`
    /// is 0.
    static int64_t getRowsOfLane(int64_t rows, int64_t warps);
  }];
}

def Warp_ScatterAddOp : Warp_Op<"scatter_add"> {
  let summary = "adds the elements of a fragment to the bins at their indices; out of range adds to none";
  let description = [{
    Of `count` bins, or as many for each of `rows` rows. A lane adds its elements
    to its own column, register by register.

    (C1) The slot is that of so many bins of the fragment's warps, and nothing
         else; the rows are those of the fragment.
    (C2) The index is an i32 or a fragment of i32 that stretches to the value.
  }];
  let arguments = (ins Warp_FragType:$value, Arg<Warp_SlotType, "", [MemRead, MemWrite]>:$bins,
                       AnyType:$index, I64Attr:$count, DefaultValuedAttr<I64Attr, "0">:$rows);
  let assemblyFormat = [{
    $value `,` $bins `[` $index `]` `of` $count (`rows` $rows^)? attr-dict
    `:` type($value) `,` type($bins) `,` type($index)
  }];
  let hasVerifier = 1;
}

def Warp_StoreBinsOp : Warp_Op<"store_bins"> {
  let summary = "writes the bins of this warp to rows of global memory; out of range is not written";
  let description = [{
    To one row, the first one plus the number of the warp, sums of its lanes; or
    to those of a tile's `rows` that the warp has elements in, sums of the four
    lanes that share a row.

    (C1) The slot is that of so many bins, of some number of warps, and nothing
         else.
    (C2) One index per dimension of the memref, of rank 2 or more and f32.
  }];
  let arguments = (ins Arg<Warp_SlotType, "", [MemRead]>:$bins,
                       Arg<AnyMemRef, "", [MemWrite]>:$view, Variadic<Index>:$indices,
                       I64Attr:$count, DefaultValuedAttr<I64Attr, "0">:$rows);
  let assemblyFormat = [{
    $bins `of` $count (`rows` $rows^)? `,` $view `[` $indices `]` attr-dict `:` type($bins) `,` type($view)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The warps that have columns in the slot.
    int64_t getWarps();
  }];
}

def Warp_DotRowsOp : Warp_Op<"dot_rows"> {
  let summary = "sums of products of the rows of two tensors in global memory";
  let description = [{
    For rows from the indices on: row m of the result belongs to row `%i + m` of
    both tensors, and its column q adds lhs * rhs over the 16-byte chunks q, q + 4,
    q + 8, ... of the row, in this order, in f32. (So no data moves between lanes;
    `warp.reduce` to Mx1 finishes the sum.) A row past the end gives 0. The rows
    are contiguous, a multiple of 16 bytes long, and lie at such a multiple.
    ```mlir
    %parts = warp.dot_rows %x, %y[%b, %h, %i] : memref<?x?x?x64xbf16>, memref<?x?x?x64xbf16> -> !warp.frag<128x4xf32, acc, 8>
    %sums = warp.reduce <add> %parts : !warp.frag<128x4xf32, acc, 8> -> !warp.frag<128x1xf32, acc, 8>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$lhs, Arg<AnyMemRef, "", [MemRead]>:$rhs,
                       Variadic<Index>:$indices);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$lhs `,` $rhs `[` $indices `]` attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What is wrong with tensors of these types; empty if they have such rows.
    static std::string whyNot(::mlir::Type lhs, ::mlir::Type rhs);
    int64_t getRowBytes();
  }];
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

#endif // ATTN_DIALECT_WARP_IR_COPYOPS_TD
