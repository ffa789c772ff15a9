//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def WarpBuffer : Pass<"warp-buffer", "::mlir::func::FuncOp"> {
  let summary = "copies of key and value tiles go through rings, ahead of use";
  let description = [{
    Needs: `warp-resident`; a chain of loops with step 1, each starting where
    the one before ends, whose bodies copy the same tiles.

    Gives: `warp-buffered`, with `warp.ring`, `warp.copy_async`, `warp.await`
    and `warp.release`. Item n of a ring is the tile of block n. Copies before
    the loops become asynchronous too, so that all first tiles are in flight
    together. Optional: without it every copy is synchronous. Without such
    loops the kernel stays as it is, and a *missed* remark says why.

    With `depth` d >= 2 and the schedule `own`:
    ```mlir
    warp.copy_async %k[…] to %K[%lo] when %lo < %hi          // prologue
    warp.copy_async %v[…] to %V[%lo] when %lo < %hi
    scf.for %n = %lo to %hi step %c1 {
      %kt = warp.await %K[%n]
      warp.copy_async %k[…] to %K[%n + d - 1] when %n + d - 1 < %hi
      %s = warp.mma mma_sync %q, %kt, … ; warp.release %kt ; …
      %vt = warp.await %V[%n]
      warp.copy_async %v[…] to %V[%n + d - 1] when %n + d - 1 < %hi
      %o = warp.mma mma_sync %p, %vt, … ; warp.release %vt
    }
    ```
    Example: `test/Dialect/Warp/buffer.mlir`.
  }];
  let options = [
    Option<"depth", "depth", "unsigned", "0",
           "Slots per ring; 0 is the `stages` of the kernel">,
    Option<"schedule", "schedule", "::attn::warp::BufferSchedule",
           "::attn::warp::BufferSchedule::Auto",
           "Where the copies ahead stand",
           [{::llvm::cl::values(
             clEnumValN(::attn::warp::BufferSchedule::Auto, "auto",
                        "early for depth 1, own for up to two rings, "
                        "together otherwise"),
             clEnumValN(::attn::warp::BufferSchedule::Own, "own",
                        "after the await of the same ring"),
             clEnumValN(::attn::warp::BufferSchedule::Early, "early",
                        "after the first await after the slot is released"),
             clEnumValN(::attn::warp::BufferSchedule::Together, "together",
                        "after the awaits of all rings"))}]>
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpDeferSum : Pass<"warp-defer-sum", "::mlir::func::FuncOp"> {
  let summary = "row sums are added up across lanes once, after the loops";
  let description = [{
    Needs: `warp-sync`. Gives: the same, where a
    running row sum that starts at zero and steps by
    `math.fma %l, %correction, %rowsum` or `arith.addf %l, %rowsum`, also in
    branches, is kept as one partial sum per lane (an Mx4 fragment), so that the
    step moves nothing between lanes. A vote whether a row sum reaches a limit
    asks for the partial sums then. Optional; other forms of the step are left
    alone. The order of the additions changes, within the error rule.
    ```mlir
    %sum = warp.reduce <add> %p : !warp.frag<128x64xf32, acc, 4> -> !warp.frag<128x1xf32, acc, 4>
    %l2 = math.fma %l, %c, %sum : !warp.frag<128x1xf32, acc, 4>
    ```
    becomes
    ```mlir
    %part = warp.reduce <add> %p : !warp.frag<128x64xf32, acc, 4> -> !warp.frag<128x4xf32, acc, 4>
    %c4 = warp.broadcast %c : !warp.frag<128x1xf32, acc, 4> -> !warp.frag<128x4xf32, acc, 4>
    %l2 = math.fma %l, %c4, %part : !warp.frag<128x4xf32, acc, 4>
    ```
    Example: `test/Dialect/Warp/defer-sum.mlir`.
  }];
  let dependentDialects = ["::mlir::math::MathDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpOrderTiles : Pass<"warp-order-tiles", "::mlir::func::FuncOp"> {
  let summary = "a grid begins its longest tiles first";
  let description = [{
    Needs: `warp-resident`. Gives: the same. A GPU begins blocks in the order of
    x, y, z. Where tiles are copied in loops whose bounds differ from block to
    block, and no loop over tiles (`warp-persist`) hands these out, the grid is
    numbered anew: groups of 16 heads (4 where loops add sums to memory) take
    turns, x is slowest in each, and the last group has 512 tiles or more. So
    what begins last is short, and all multiprocessors end at about the same
    time. (The tile room sees to it that x goes from long to short; heads that
    share keys stay together.) Optional: a *missed* remark says why a kernel
    whose tiles differ stays as it is.
    ```mlir
    warp.kernel blocks(%x, %h, %b) in (%n, %heads, %batch) warps(4) { … }
    ```
    becomes
    ```mlir
    %tiles = … %n * %heads * %batch
    warp.kernel blocks(%tile, %_, %_) in (%tiles, %c1, %c1) warps(4) {
      %x, %h, %b = … %tile
      …
    }
    ```
    Example: `test/Dialect/Warp/order-tiles.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpPersist : Pass<"warp-persist", "::mlir::func::FuncOp"> {
  let summary = "blocks stay and take one tile after the other";
  let description = [{
    Needs: `warp-sync`. Gives: `warp-resident`, the same as a `resident` kernel
    with a loop over tiles around its body, so that the next tile's operands are
    loaded while the last one's results leave. The loop carries the tile's
    number, the three numbers of the block that it stands for, and what the
    block reads by them from memory. Where all tiles are alike the next is the
    one that comes as many later as there are blocks; where a loop has bounds
    that differ from block to block it is drawn, before the last copy, and
    groups of heads take turns, longest tiles first in each. Tiles that are idle
    (`warp.exit_if`) are passed over, by a loop that goes on to the next one; a
    block whose tiles are counted asks of 32 at a time before its first
    (`warp.all`), and ends where none has work. Optional: where nothing is copied
    the kernel stays as it is, and a *missed* remark says so.
    ```mlir
    warp.kernel blocks(%x, %h, %b) in (%n, %heads, %batch) warps(8) { … }
    ```
    becomes
    ```mlir
    %counter = memref.alloc() {warp.zeroed} : memref<1xi32>
    %tiles = … %n * %heads * %batch
    warp.kernel blocks(%first, %_, %_) in (%tiles, %c1, %c1) warps(8) resident {
      scf.while (%tile = %first, %x = …, %h = …, %b = …) {
        %more = arith.cmpi ult, %tile, %tiles
        scf.condition(%more) %tile, %x, %h, %b
      } do {
        …
        %next = warp.draw %counter below %tiles   // or %tile + number of blocks
        warp.copy …
        …
        scf.yield %next, …
      }
    }
    ```
    Example: `test/Dialect/Warp/persist.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpDoubleBuffer : Pass<"warp-double-buffer", "::mlir::func::FuncOp"> {
  let summary = "the next weights are made while P V reads the last";
  let description = [{
    Needs: `warp-resident`. Gives: the same, where loops that carry the left
    operand of a product (from `tile-overlap-products`) do two steps in each
    iteration, and a loop of none or one after them does the odd one. The
    operand then is another value, in other registers, in each step, and
    `warp-make-async` leaves the product in flight while the next one's operand
    is made. Costs those registers, and code. Optional: where no loop carries an
    operand or the registers are not there (32 must be left beside the tiles of
    the products, 48 with a mask or a score function), the kernel stays as it is
    and a *missed* remark says so.
    ```mlir
    scf.for %n = %lo to %hi step %c1 iter_args(%o = …, %p = …) {
      %s = warp.mma wgmma %q, %k, %zero transpose_b
      %a = warp.convert %p
      %o1 = warp.mma wgmma %a, %v, %o
      %p1 = warp.cast truncf … %s …
      scf.yield %o1, %p1
    }
    ```
    becomes
    ```mlir
    scf.for %n = %lo to %even step %c2 iter_args(%o = …, %p = …) {
      …                                // %p to %o1, makes %p1
      …                                // %p1 to %o2, makes %p2
      scf.yield %o2, %p2
    }
    scf.for %n = %even to %hi step %c1 iter_args(…) { … }
    ```
    Example: `test/Dialect/Warp/double-buffer.mlir`.
  }];
  let options = [
    Option<"selective", "selective", "bool", "false",
           "Only loops that gain: steps of at least 128 keys and columns of "
           "values, whose scores are neither masked nor computed upon">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpSpecialize : Pass<"warp-specialize", "::mlir::func::FuncOp"> {
  let summary = "copies move to a producer role";
  let description = [{
    Needs: `warp-resident`; kernels whose slots have panels, with copies
    directly in the kernel or in loops.

    Gives: `warp-roles`, with a ring for each operand and two roles. The
    producer is what the copied boxes depend on: the loops and their scalars.
    The consumer is the rest, with an await where a tile is first read and a
    release where it was read last. The items of a ring are counted through the
    loops. What a loop over tiles carries (`warp-persist`) the producer sends,
    before the loop and at the end of its body; the consumer takes it there,
    after its last store. A slot that the kernel writes for a product
    (`warp.store_frag`) becomes a ring of one item that the consumer fills and
    drains itself. Optional: a kernel that has none of it stays
    as it is, and a *missed* remark says why.
    ```mlir
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %q[…] to %Q[%c0] by tma
      scf.for %n = %lo to %hi step %c1 iter_args(%i = %c0, %j = %c0) {
        warp.copy_async %k[…] to %K[%i] by tma
        warp.copy_async %v[…] to %V[%j] by tma
        scf.yield %i + 1, %j + 1
      }
    }
    warp.role @softmax compute warps(8) registers(240) {
      %qt = warp.await %Q[%c0]
      scf.for %n = %lo to %hi step %c1 iter_args(…, %i = %c0, %j = %c0) {
        %kt = warp.await %K[%i] ; %s = warp.mma wgmma %qt, %kt, … ; warp.release %kt
        …
      }
    }
    ```
    Example: `test/Dialect/Warp/specialize.mlir`.
  }];
  let options = [
    Option<"depth", "depth", "unsigned", "0",
           "Slots of the rings that loops fill; 0 is the `stages` of the kernel">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpDelayExchange : Pass<"warp-delay-exchange", "::mlir::func::FuncOp"> {
  let summary = "what warps write for each other is read one step later";
  let description = [{
    Needs: `warp-roles`. Gives: the same, where a product whose operand the
    role wrote for itself in the same step (dS, of which all warps make their
    share of dQ), and whose result is only added to memory, is one step late.
    Groups of warps then do not wait for each other in each step. The ring gets
    two slots, starts with zeros, and is read once more after the loops.
    Optional: what is used in another way stays as it is, and a *missed* remark
    says why.
    ```mlir
    scf.for %n = %lo to %hi step %c1 iter_args(…, %i = %c0) {
      …
      warp.store_frag %ds to %DS[%i]
      %dst = warp.await %DS[%i]
      %dq = warp.mma wgmma %dst, %k, %zero transpose_a ; warp.release %dst
      %dk1 = warp.mma wgmma %dsa, %q, %dk
      warp.store %dq, %sums[%n, %c0] accumulate packed
    }
    ```
    becomes
    ```mlir
    warp.store_frag %zeros to %DS[%c0]
    scf.for %n = %lo to %hi step %c1 iter_args(…, %i = %c0, %last = -1) {
      …
      warp.store_frag %ds to %DS[%i + 1]
      %dst = warp.await %DS[%i]
      %dq = warp.mma wgmma %dst, %k, %zero transpose_a ; warp.release %dst
      %dk1 = warp.mma wgmma %dsa, %q, %dk
      scf.if %last >= 0 {
        warp.store %dq, %sums[%last, %c0] accumulate packed
      }
      scf.yield …, %n
    }
    …                                          // the last tile, after the loop
    ```
    Example: `test/Dialect/Warp/delay-exchange.mlir`.
  }];
  let options = [
    Option<"sharedLimit", "shared-limit", "int64_t", "232448",
           "Bytes of shared memory a block may use (227 KiB on sm_90a)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpMakeAsync : Pass<"warp-make-async", "::mlir::func::FuncOp"> {
  let summary = "products run beside what does not need their result";
  let description = [{
    Needs: `warp-roles`. Gives: `warp-async`, each `warp.mma` of slots with
    panels as `warp.mma_async` in its place and `warp.wait` before the first
    use. The order of issue does not change: what runs side by side was put side
    by side by `tile-overlap-products`. Optional.
    ```mlir
    %sp = warp.mma_async wgmma %q, %k, %zero transpose_b
    %op = warp.mma_async wgmma %p, %v, %o
    %s = warp.wait %sp ; warp.release %k
    %e = … %s …
    %o1 = warp.wait %op ; warp.release %v
    %p1 = warp.cast truncf %e
    ```
    Example: `test/Dialect/Warp/make-async.mlir`.
  }];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpInsertTurns : Pass<"warp-insert-turns", "::mlir::func::FuncOp"> {
  let summary = "warpgroups issue their products one group after the other";
  let description = [{
    Needs: `warp-async`, with roles. Gives: the same; the
    issues that are in flight together in the body of a loop stand in a
    `warp.turn`. Optional: without a consumer of two groups, where its groups
    exchange tiles through a ring (they wait for each other there), where a turn
    would await a ring of one slot, or without such products, the kernel stays as
    it is and a *missed* remark says why.

    Example: `test/Dialect/Warp/insert-turns.mlir`.
  }];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpShareColumns : Pass<"warp-share-columns", "::mlir::func::FuncOp"> {
  let summary = "warps in a grid read the operands of products less often";
  let description = [{
    Needs: `warp-buffered`. Gives: the same, where warps that are stacked along
    the rows of a tile stand in a grid, if products by `mma_sync` read less of
    shared memory then. Operands in registers, of which a warp has no whole rows
    any more, go through slots. Optional: fragments whose rows are reduced, or
    that something else wants stacked, stay as they are; so do those whose slots
    do not fit, and a *missed* remark says so.
    ```mlir
    %s = warp.mma mma_sync %k, %q, %zero transpose_b : …, !warp.frag<64x64xf32, acc, 4>
    %a = warp.convert %p : !warp.frag<64x64xbf16, acc, 4> -> !warp.frag<64x64xbf16, a, 4>
    %dv1 = warp.mma mma_sync %a, %do, %dv : …, !warp.frag<64x128xf32, acc, 4>
    ```
    becomes
    ```mlir
    %slot = warp.alloc : !warp.slot<64x64xbf16>
    %s = warp.mma mma_sync %k, %q, %zero transpose_b : …, !warp.frag<64x64xf32, acc, 2x2>
    warp.store_frag %p to %slot : !warp.frag<64x64xbf16, acc, 2x2>, !warp.slot<64x64xbf16>
    %dv1 = warp.mma mma_sync %slot, %do, %dv : …, !warp.frag<64x128xf32, acc, 2x2>
    ```
    Example: `test/Dialect/Warp/share-columns.mlir`.
  }];
  let options = [
    Option<"sharedLimit", "shared-limit", "int64_t", "166912",
           "Bytes of shared memory a block may use (163 KiB on sm_80)">
  ];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpStageStores : Pass<"warp-stage-stores", "::mlir::func::FuncOp"> {
  let summary = "tiles are stored through shared memory, in whole rows";
  let description = [{
    Needs: `warp-staged`. Gives: the same, stores of tiles with `via`. In a
    kernel with roles the slot is an own one if memory allows, of the whole tile
    or of a part of its columns; otherwise it is that of an `a` operand, whose
    release moves after the store. Optional: what finds no slot stays as it is,
    and a *missed* remark says so.
    ```mlir
    %stage = warp.alloc : !warp.slot<128x128xbf16, panels<128>>
    …
    warp.store %o, %out[%b, %h, %row, %c0] via %stage : …
    ```
    Example: `test/Dialect/Warp/stage-stores.mlir`.
  }];
  let options = [
    Option<"sharedLimit", "shared-limit", "int64_t", "166912",
           "Bytes of shared memory a block may use (163 KiB on sm_80)">
  ];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpShareRegisters : Pass<"warp-share-registers", "::mlir::func::FuncOp"> {
  let summary = "a producer with many intervals of key blocks has more registers";
  let description = [{
    Needs: `warp-roles`. Gives: the same, where the loops of a producer use more
    numbers than it has registers, it has more of them and the consumer fewer.
    The consumer keeps what its products need. Nothing changes where the plan
    says how many registers the consumer has.
    ```mlir
    warp.role @load copy warps(4) registers(40) { … }
    warp.role @softmax compute warps(8) registers(232) { … }
    // becomes
    warp.role @load copy warps(4) registers(72) { … }
    warp.role @softmax compute warps(8) registers(216) { … }
    ```
    Example: `test/Dialect/Warp/share-registers.mlir`.
  }];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpDeepenRings : Pass<"warp-deepen-rings", "::mlir::func::FuncOp"> {
  let summary = "what is loaded next has a second slot beside the one in use";
  let description = [{
    Needs: `warp-deepened`. Gives: the same, in resident kernels each ring of
    one slot with a second one, as long as it fits. With `steps`, in all kernels
    with roles, only rings that each step of a tile refills: so it runs before
    `warp-stage-stores` takes memory for what leaves once in a tile. Optional:
    what does not fit stays as it is, and a *missed* remark says so.
    ```mlir
    %Q = warp.ring : !warp.ring<1, 128x128xbf16, panels<128>>
    // becomes
    %Q = warp.ring : !warp.ring<2, 128x128xbf16, panels<128>>
    ```
    Example: `test/Dialect/Warp/deepen-rings.mlir`.
  }];
  let options = [
    Option<"sharedLimit", "shared-limit", "int64_t", "232448",
           "Bytes of shared memory a block may use (227 KiB on sm_90a)">,
    Option<"steps", "steps", "bool", "false",
           "Only rings that each step of a tile refills">
  ];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpTestAhead : Pass<"warp-test-ahead", "::mlir::func::FuncOp"> {
  let summary = "loops test items before they await them";
  let description = [{
    Needs: `warp-deepened`. Gives: the same. To ask whether an item has arrived
    takes some 50 cycles, even if it has. In the loops of a role that drains
    rings it is asked ahead, by `warp.test`: for the first item after a product
    was waited for before that wait, in the iteration before if there is none
    earlier in the body, and for the items after it (V after K) before the first
    is awaited. Items that a role fills for itself are awaited as they were.
    Optional.
    ```mlir
    scf.for %i = … iter_args(%n = %n0, %there = %false) -> (index, i1) {
      %vThere = warp.test %V[%n]
      %k = warp.await %K[%n] unless %there
      … warp.await %V[%n] unless %vThere …
      %next = arith.addi %n, %c1 : index
      %kThere = warp.test %K[%next]
      %o = warp.wait %pending
      scf.yield %next, %kThere : index, i1
    }
    ```
    It pays where three or four groups share the tensor cores (d = 64): on an
    H100 full and causal attention gain 0.3 to 2.7 % from 2048 tokens on. Two
    groups (d = 128), and loops that compute upon their scores, lose about as
    much by the instructions it takes. So the pipeline asks for the others only.
    Example: `test/Dialect/Warp/test-ahead.mlir`.
  }];
  let options = [
    Option<"selective", "selective", "bool", "false",
           "Only loops that gain: of three groups or more, whose scores are "
           "neither masked nor computed upon">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpRunBeside : Pass<"warp-run-beside", "::mlir::func::FuncOp"> {
  let summary = "idle warps do what a grid of its own did before";
  let description = [{
    Needs: `warp-deepened`. Gives: the same. A kernel that is `independent` of the
    next one and has blocks of one warp goes into `warp.beside` of the role that
    copies there, whose idle warps share its blocks out, if the next one's blocks
    stay. So the rows of which no key is visible (`tile-list-blocks`) are written
    beside the work on all others, not before it. Optional.
    ```mlir
    warp.role @load copy warps(4) registers(40) {
      warp.beside {
      ^bb0(%warp: index):
        scf.for %i = %first to %blocks step %warps { … }
      }
      …
    }
    ```
    Example: `test/Dialect/Warp/run-beside.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpStartEarly : Pass<"warp-start-early", "::mlir::func::FuncOp"> {
  let summary = "kernels start while the ones before them end";
  let description = [{
    Needs: `warp-deepened`. Gives: the same. Between two kernels a device runs dry:
    the last blocks of one end one by one, then the next one is launched, and its
    blocks set up their barriers. Here every kernel but the first `starts(early)`:
    its blocks are there when the last ones of the kernel before it end, and wait
    for that. Where kernels touch nothing that another of them writes (d_query and
    those of keys and values, the sums of heads for d_key and d_value) they
    `starts(beside)`: their blocks run as soon as those before leave room. That is
    found by what they read and write, whole tensors and workspaces. Optional: on
    an H200 gradients of two programs that have a multiprocessor for each tile are
    1.12 to 1.8 times as fast beside each other as one after the other, those of
    many tiles 0.97 to 1.07.
    ```mlir
    warp.kernel @rows blocks(%x, %y, %z) in (%n, %h, %b) warps(8) { … }
    warp.kernel @d_query blocks(%x, %y, %z) in (%q, %c1, %c1) warps(16) starts(early) { … }
    warp.kernel @d_key_value blocks(%x, %y, %z) in (%k, %c1, %c1) warps(12) starts(beside) { … }
    ```
    The runtime launches them with programmatic stream serialization, as the CUDA
    programming guide calls it; launched otherwise they are as right.
    Example: `test/Dialect/Warp/start-early.mlir`.
  }];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpExpandTanh : Pass<"warp-expand-tanh", "::mlir::func::FuncOp"> {
  let summary = "tanh of small scores is a polynomial";
  let description = [{
    Needs: `warp-deepened`. Gives: the same. A `math.tanh` of an f32 tile that may
    be approximate (`afn`, of softcaps) takes a special function for each score,
    as the weight does, of which a multiprocessor does 16 in a clock, and ten or
    more other operations. Where all scores that a warp holds are less than 0.8 from 0, an odd
    polynomial of degree 9 takes the place of both: its error is at most 2^-21
    beside 1, what `afn` allows. A vote says which of the two a warp does; beyond
    0.8 it pays one more multiplication than before, and the vote. Where the score
    is a product with one factor, this factor is that of the test, too. Optional;
    on sm_80 on request: no forward kernel spills for it there, but gradients of
    d = 64 without a mask do, 84 bytes in place of 20 (ptxas 13.0).
    ```mlir
    %x = arith.mulf %s, %cap : !s
    %y = math.tanh %x fastmath<afn> : !s
    // becomes
    %w = arith.mulf %s, %scaled : !s             // x / 0.4
    %bits = warp.cast bitcast %w : !s to !i
    %bit = arith.andi %bits, %exponent : !i      // 0x40000000
    %far = arith.cmpi ne, %bit, %zero : !i       // |w| >= 2, or NaN
    %any = warp.any %far : !i1
    %y = scf.if %any -> (!s) { tanh (0.4 w) } else { w q(w^2) }
    ```
    Example: `test/Dialect/Warp/expand-tanh.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::attn::warp::WarpDialect"];
}

def WarpTurnEnds : Pass<"warp-turn-ends", "::mlir::func::FuncOp"> {
  let summary = "a tile's first and last product take turns, too";
  let description = [{
    Needs: `warp-deepened`. Gives: the same. Where the products of loops over
    blocks take turns (`warp-insert-turns`), those that stand before and behind
    these loops do: the first Q K^T of a tile, and the last P V. On request: an
    H200 is 1.01 to 1.04 times as fast with it without a mask at d = 64 (256 x
    64) and 1.01 to 1.02 times under a causal one at d = 128 (128 x 64), but 0.97
    to 0.99 times with three groups and no mask, and 0.98 to 1.00 times under a
    causal mask at d = 64.
    ```mlir
    %s = warp.mma_async wgmma %q, %k, %zero transpose_b : !q, !k, !s
    // becomes
    %s = warp.turn {
      %p = warp.mma_async wgmma %q, %k, %zero transpose_b : !q, !k, !s
      warp.yield %p : !p
    } : !p
    ```
    Example: `test/Dialect/Warp/turn-ends.mlir`.
  }];
  let dependentDialects = ["::attn::warp::WarpDialect"];
}

def WarpAssignResources
    : Pass<"warp-assign-resources", "::mlir::func::FuncOp"> {
  let summary = "places slots and rings in shared memory";
  let description = [{
    Needs: `warp-deepened`. Gives: `warp-placed`, each `warp.alloc` and
    `warp.ring` with its byte offset and the kernel with `shared(bytes)`.
    Everything lives for the whole kernel, so nothing overlaps. Slots with
    panels start at multiples of 1024 bytes. In a kernel with roles the barriers
    of the rings follow at the end. A kernel that needs more than the target has
    is refused with the sum in words.

    Example: `test/Dialect/Warp/assign-resources.mlir`.
  }];
  let options = [
    Option<"sharedLimit", "shared-limit", "int64_t", "166912",
           "Bytes of shared memory a block may use (163 KiB on sm_80)">
  ];
}

#endif // ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD
