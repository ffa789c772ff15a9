//===- KernelOps.td - kernels, roles and turns -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_KERNELOPS_TD
#define ATTN_DIALECT_WARP_IR_KERNELOPS_TD

include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

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
    `warp-buffer` builds by default; `registers` how many each lane has of the
    role that computes, if the plan says; `per_sm` how many blocks with roles
    share a multiprocessor, if not one; `scheduler` how `warp-persist` has blocks
    come by their tiles (`grid`, `static` or `dynamic`), if the plan says.
    `shared` is the size in bytes of the block's shared memory once
    `warp-assign-resources` has placed it.
    With `resident` no more blocks run than stay on the device at once, at most
    those of the grid: `gpu.grid_dim x` of them, which share the work out by
    loops of their own. `independent` is what it is for `tile.kernel`.
    A kernel starts when the one before it has ended. With `starts(early)` its
    blocks may come while that one still runs, once all of its blocks have begun,
    and wait for its end before they do anything; with `starts(beside)` they wait
    for it before they end, and what they read is complete: it is of no kernel
    since the last one that starts otherwise, that one included.

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
         it; every group takes as many turns, and nothing is filled in them;
         an await does not wait only if a test of the same item says so, with no
         other await of the ring in between.
         Under the answer of `warp.any`, which warps get differently, stands
         nothing that warps do together. What is said of a ring and its copies
         and awaits holds for `warp.mailbox`, `warp.send` and `warp.receive`. A
         loop whose end is not known in advance is an `scf.while`, in both roles,
         that passes on what it carries and ends by a condition of numbers that
         are the same in both. Of a group the bounds of loops may depend on
         its number: what [lo, hi) is to the others is [first, end) to it, and
         two loops beside those, over [lo, first) and [end, hi), take the items
         of the other blocks and give them back, with as many turns. Where blocks
         take turns, at most one item of a ring is used outside of the loops, and
         between own and other blocks stand no more turns than a block has. Then
         lo <= first < end <= hi if lo < hi, which the minima and maxima that
         they are computed with show. Loops of a group that follow each other
         at a block that depends on its number are one loop to the others: they
         use the same items for a block, and end no sooner than they start.
    (W4) Placed slots and rings lie inside `shared` bytes, below the barriers of
         the rings, and do not overlap. The registers of all warps exist.
    (W5) Every fragment is spread over the warps of its role, or of the kernel if
         it has none; over one warp in `warp.beside`. Roles read scalars and rings of the kernel and what they
         compute themselves, and store via its slots.

    With roles the kernel holds rings, slots to store via, scalar operations,
    `warp.exit_if` and two or more `warp.role`, and `warps` is their sum: first
    those of the roles that compute, then those of the roles that copy. Every
    slot of a ring then has two barriers of 8 bytes (full, empty); they lie at
    the end of `shared`, with what `warp.mailbox` hold.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Index:$gridX, Index:$gridY, Index:$gridZ,
                       I64Attr:$warps, OptionalAttr<I64Attr>:$stages, OptionalAttr<I64Attr>:$sharedBytes,
                       UnitAttr:$resident, OptionalAttr<Warp_SchedulerAttr>:$scheduler,
                       OptionalAttr<I64Attr>:$registers, OptionalAttr<I64Attr>:$blocksPerSM,
                       UnitAttr:$independent, OptionalAttr<Warp_StartAttr>:$start);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    ::std::vector<RoleOp> getRoles();
    bool hasRoles();
    /// The kernel of the function that runs after it; null if there is none.
    KernelOp getNextKernel();
    /// The role of a name, or null.
    RoleOp getRole(::llvm::StringRef name);
    /// Bytes of the rings' barriers and of numbers at the end of shared memory;
    /// 0 without roles.
    int64_t getBarrierBytes();
  }];
}

def Warp_RoleOp : Warp_Op<"role", [
    Symbol, SingleBlock, RecursiveMemoryEffects, HasParent<"KernelOp">,
    SingleBlockImplicitTerminator<"YieldOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "the program of some warps of a block, beside that of the others";
  let description = [{
    A role that copies has one warp fill rings from global memory, hand out tiles
    and compute scalars; one that computes has all of its warps do everything
    else. Rings say by name which role fills them and which drain them. Warps are
    counted inside the role and come in groups of 4. A role that computes has the
    number of a warp's group, from 0 on, as the argument of its region; the text
    may leave it out where nothing uses it. `registers` is what each thread of the
    role may use.

    (C1) The region of a role that computes has one argument, an index; that of a
         role that copies has none.
    ```mlir
    %ring = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x128xbf16>
    warp.role @load copy warps(4) registers(24) {
      scf.for … { warp.copy_async %k[…] to %ring[%i] by tma : … }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %row = arith.muli %group, %c64 : index
      …
    }
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
    attr-dict-with-keyword custom<RoleBody>($body, ref($kind))
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    /// The number of a warp's group, in a role that computes.
    ::mlir::BlockArgument getGroup() { return getBody().getArgument(0); }
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

def Warp_BesideOp : Warp_Op<"beside", [
    SingleBlock, RecursiveMemoryEffects, HasParent<"RoleOp">,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "what the warps do that a role which copies leaves idle";
  let description = [{
    One warp of a role that copies runs it. Each of the others runs the region of
    `warp.beside`, by itself and with the role's registers, from the start of the
    role on. The argument is its number among these warps of the block, from 0
    to one less than `getNumWarps()`.
    ```mlir
    warp.role @load copy warps(4) registers(40) {
      warp.beside {
      ^bb0(%warp: index):
        %zero = warp.splat %c0 : !warp.frag<64x64xbf16, acc, 1>
        …
      }
      …
    }
    ```

    (C1) Stands directly in a role that copies, which has a warp to spare.
    (C2) The region is a function of an index.
    (C3) It uses no slots, rings, mailboxes or counters, and takes no turns.
    (C4) No block of the kernel ends before (`warp.exit_if`).
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    ::mlir::BlockArgument getWarp() { return getBody().getArgument(0); }
    /// How many warps of a block run it.
    int64_t getNumWarps();
  }];
}

def Warp_YieldOp : Warp_Op<"yield", [
    Pure, Terminator,
    ParentOneOf<["KernelOp", "RoleOp", "BesideOp", "TurnOp", "AllOp", "GroupBoundsOp"]>]> {
  let summary = "end of a kernel, a role or what is beside it, a turn or another region";
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
    begun, and where tiles are counted a block of only such ends before the loop.

    (C1) Stands directly in the kernel, before its roles.
    ```mlir
    warp.exit_if %nothing
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
}

def Warp_AllOp : Warp_Op<"all", [
    SingleBlock, RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "whether a condition holds for each of the numbers 0 to 31";
  let description = [{
    The region computes a condition from a number. Each lane of a warp asks for
    its own, all at the same time: what the region reads from memory takes as long
    as one read. Every warp that comes here does so, and all know the answer.

    (C1) The region is a function of an index that yields an i1.
    (C2) It computes scalars, and writes nothing. A search is none of them: the
         lanes of a warp make it together.
    (C3) Stands in no role: one thread of those that copy goes on alone.
    ```mlir
    %nothing = warp.all {
    ^bb0(%i: index):
      %tile = arith.addi %first, %i : index
      %count = memref.load %counts[%tile] : memref<?xi32>
      %is_none = arith.cmpi eq, %count, %c0 : i32
      warp.yield %is_none : i1
    }
    ```
  }];
  let results = (outs I1:$result);
  let regions = (region SizedRegion<1>:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// For how many numbers: the lanes of a warp.
    static constexpr int64_t numAsked = 32;
    /// What the region yields.
    ::mlir::Value getYielded() {
      return getCondition().front().getTerminator()->getOperand(0);
    }
  }];
}

def Warp_GroupBoundsOp : Warp_Op<"group_bounds", [
    SingleBlock, RecursiveMemoryEffects, RecursivelySpeculatable,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the key blocks that a group goes through, once there are groups";
  let description = [{
    `tile.group_bounds`: the region says which of the blocks [lo, hi) the group
    needs whose first row is `row`, and where one loop over them ends and the next
    begins. All warps of a kernel without roles go through the same loops, and a
    role that copies loads for all groups, so here the results are the bounds as
    they are. `warp-specialize` makes arithmetic on the group's number of it, in
    the role that computes, which then goes through
    ```
    first = min(max(ownLo, lo), max(hi - 1, lo))
    end   = min(max(ownHi, first + 1), hi)
    ```
    with the bounds between at min(max(own, the one before), end), and, by W3,
    passes over the others.

    (C1) `rows` is positive.
    (C2) The region is a function of an index that yields as many as there are
         bounds.
    (C3) Stands in no role that computes.
    (C4) There are two bounds or more.
    ```mlir
    %first, %behind, %end = warp.group_bounds [%lo, %fullHi, %hi) of 64 {
    ^bb0(%row: index):
      %ownFullHi = arith.floordivsi %row, %c64 : index
      %own = arith.ceildivsi %row, %c64 : index
      warp.yield %lo, %ownFullHi, %own : index, index, index
    }
    ```
  }];
  let arguments = (ins Variadic<Index>:$bounds, I64Attr:$rows);
  let regions = (region SizedRegion<1>:$own);
  let results = (outs Variadic<Index>:$results);
  let assemblyFormat = "`[` $bounds `)` `of` $rows $own attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Those of all loops together.
    ::mlir::Value getLo() { return getBounds().front(); }
    ::mlir::Value getHi() { return getBounds().back(); }
    /// What the region says, one for each bound.
    ::mlir::OperandRange getOwnBounds() {
      return getOwn().front().getTerminator()->getOperands();
    }
    /// What a result stands for where all rows are meant.
    ::mlir::Value getWhole(::mlir::Value result) {
      return getBounds()[::llvm::cast<::mlir::OpResult>(result).getResultNumber()];
    }
  }];
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

#endif // ATTN_DIALECT_WARP_IR_KERNELOPS_TD
