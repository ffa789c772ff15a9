//===- TileOps.td - operations of the tile dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_IR_TILEOPS_TD
#define ATTN_DIALECT_TILE_IR_TILEOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Tile/IR/TileDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_KernelOp : Tile_Op<"kernel", [
    SingleBlock, RecursiveMemoryEffects, AutomaticAllocationScope,
    SingleBlockImplicitTerminator<"EndOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a kernel: a grid of blocks, each a sequential program on tiles";
  let description = [{
    ```mlir
    tile.kernel @causal plan(#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4>)
        grid(%b, %h, %x) in (%batches, %heads, %blocks) {
      …
    }
    ```
    The body runs once for each (b, h, x) from 0 on, in any order, or side by
    side. The kernels of a function run one after the other; each has a name, by
    which it is launched, and the plan that it is built by. With `independent` it
    reads nothing that the kernel after it writes and the other way round, nor do
    they write the same, if blocks end where `tile.exit_if` lets them: then the two
    may run side by side.

    (C1) Stands in the entry block of a function.
    (C2) No other kernel of the function has its name.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Attn_PlanAttr:$plan,
                       Index:$batches, Index:$heads, Index:$blocks,
                       UnitAttr:$independent);
  let regions = (region SizedRegion<1>:$region);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::attn::PlanAttr":$plan,
                                 "::mlir::ValueRange":$grid)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// `name`, or if a kernel of the function that `block` belongs to has it,
    /// with a number after it.
    static std::string findName(::mlir::Block *block, ::llvm::StringRef name);

    /// How many blocks there are, by dimension.
    ::mlir::OperandRange getGrid() { return getOperands(); }
    /// The number of a block, by dimension.
    ::mlir::Block::BlockArgListType getNumbers() { return getBody()->getArguments(); }
    ::mlir::Value getNumber(unsigned dimension) { return getNumbers()[dimension]; }
    ::mlir::Operation *getTerminator() { return getBody()->getTerminator(); }
  }];
}

def Tile_EndOp : Tile_Op<"end", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "a box of a strided memref as a vector; out of range reads 0";
  let description = [{
    ```mlir
    %t = tile.load %k[%b, %h, %row, %c0] : memref<?x?x?x80xbf16, strided<[?, ?, ?, 1], offset: ?>>, vector<64x80xbf16>
    ```
    The vector's dimensions are the innermost dimensions of the memref, starting
    at the given indices; the leading indices select one slice. Elements whose
    index is outside the memref read as zero, whatever memory holds there: lengths
    that are no multiple of a block need no code of their own.

    With `packed`, what a packed `tile.store` of the same type wrote, in a kernel
    with as many warps. All elements lie in the innermost dimension, of as many
    elements, in an order of the target: lanes read what they hold. All indices
    are inside of the memref.

    With `slices` the tile's rows come in so many equal parts, each from a slice
    of its own: the first part from the slice that the leading indices select,
    each other one from the slice after that of the part before, along the
    dimension in front of that of the rows. With `below`, parts whose slice would
    be at that index or after it hold the last slice before it; all others are
    inside of the memref. So a tile holds rows of query heads that share a key
    head:
    ```mlir
    %t = tile.load %q[%b, %h, %row, %c0] slices 8 below(%end) : memref<?x?x?x64xbf16>, vector<64x64xbf16>
    ```

    (C1) One index per dimension of the memref.
    (C2) The element types agree.
    (C3) The vector's sizes are fixed and its rank is at most the memref's.
    (C4) What is packed has rank 2 and elements of f32, as many as the innermost
         dimension, where the index is the constant 0.
    (C6) Several slices divide the rows of the vector, and have a dimension of
         the memref in front of those of the vector; they are not packed.
         Without them nothing is `below`.
  }];
  let arguments = (ins Arg<AnyMemRef, "the memory", [MemRead]>:$view, Variadic<Index>:$indices,
                       Optional<Index>:$sliceEnd, UnitAttr:$packed,
                       DefaultValuedAttr<I64Attr, "1">:$slices);
  let results = (outs AnyVectorOfNonZeroRank:$result);
  let assemblyFormat = [{
    $view `[` $indices `]` (`packed` $packed^)? (`slices` $slices^)? (`below` `(` $sliceEnd^ `)`)? attr-dict
    `:` type($view) `,` type($result)
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "Type":$type, "Value":$view, "ValueRange":$indices, CArg<"bool", "false">:$packed),
              [{ build($_builder, $_state, type, view, indices, Value(), packed, /*slices=*/1); }]>
  ];
}

def Tile_StoreOp : Tile_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "writes a vector to a box of a strided memref; out of range is not written";
  let description = [{
    ```mlir
    tile.store %o, %out[%b, %h, %row, %c0] : vector<128x64xbf16>, memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
    ```
    The box is that of `tile.load`, with `packed` and `slices`, too; (C1) to (C4)
    and (C6) are the same. Parts whose slice is not `below` are not written.

    With `accumulate` the elements are added to those in memory, atomically and
    in no order where blocks run side by side.

    (C5) What is accumulated is f32, and of one slice.
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$value, Arg<AnyMemRef, "the memory", [MemWrite]>:$view,
                       Variadic<Index>:$indices, Optional<Index>:$sliceEnd, UnitAttr:$accumulate,
                       UnitAttr:$packed, DefaultValuedAttr<I64Attr, "1">:$slices);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `]` (`accumulate` $accumulate^)? (`packed` $packed^)? (`slices` $slices^)?
    (`below` `(` $sliceEnd^ `)`)? attr-dict `:` type($value) `,` type($view)
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "Value":$value, "Value":$view, "ValueRange":$indices, CArg<"bool", "false">:$accumulate,
                   CArg<"bool", "false">:$packed),
              [{ build($_builder, $_state, value, view, indices, Value(), accumulate, packed, /*slices=*/1); }]>
  ];
}

def Tile_GatherOp : Tile_Op<"gather"> {
  let summary = "elements of a memref at computed indices; out of range reads 0";
  let description = [{
    One index operand per dimension of the memref: an `i32` scalar, or a vector
    of `i32` with the result's rank whose every dimension is 1 or the result's
    (it stretches, as in `vector.broadcast`).
    ```mlir
    %bias = tile.gather %table[%h, %rows, %cols] : memref<?x?x?xf32, …>, (i32, vector<64x1xi32>, vector<1x32xi32>) -> vector<64x32xf32>
    ```
    With `sorted`, the elements never decrease along the last dimension: a
    promise of the caller (`sorted_captures` of `attn.attention`). With `inside`
    no index is out of range, and none is tested: a promise, too. With `aligned`
    (of a result of rank 2, `inside`) an element of an even column and the one
    behind it in its row lie at a multiple of their size, and are read at once.

    (C1) One index per dimension of the memref.
    (C2) The element types agree.
    (C3) Every index is `i32` or a vector of `i32` that stretches to the result.
    (C4) `sorted` gathers are of integers, of a memref of rank 1 or more.
    (C5) A scalar result has scalar indices only, and stands in a region of
         `tile.scores`.
    (C6) `aligned` gathers are `inside`, and of rank 2.
  }];
  let arguments = (ins Arg<AnyMemRef, "the memory", [MemRead]>:$view, Variadic<AnyType>:$indices,
                       UnitAttr:$sorted, UnitAttr:$inside, UnitAttr:$aligned);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat, AnyVectorOfNonZeroRank]>:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `,` functional-type($indices, $result)";
  let hasVerifier = 1;
}

def Tile_BinsOp : Tile_Op<"bins"> {
  let summary = "numbers of this block that are added to at computed indices, zeros at first";
  let description = [{
    For sums by element of a table: a histogram with weights. Of rank 1, or of
    rank 2 with bins of its own for each row of the tiles that are added.
    ```mlir
    %sums = tile.bins : memref<64xf32>
    scf.for %n = %c0 to %end step %c1 {
      …
      tile.scatter_add %added, %sums[%index] : vector<128x64xf32>, memref<64xf32>, vector<128x64xi32>
    }
    tile.store_bins %sums, %out[%b, %h, %part, %c0] : memref<64xf32>, memref<?x?x?x?xf32>
    ```
    (C1) Stands directly in a `tile.kernel`.
    (C2) The type has fixed sizes, rank 1 or 2, elements of f32 and no layout.
    (C3) Nobody but `tile.scatter_add` and `tile.store_bins` uses it, and that one
         stands after all others.
  }];
  let results = (outs Res<AnyMemRef, "", [MemAlloc, MemWrite]>:$bins);
  let assemblyFormat = "attr-dict `:` type($bins)";
  let hasVerifier = 1;
}

def Tile_ScatterAddOp : Tile_Op<"scatter_add"> {
  let summary = "adds each element of a tile to the bin at its index; out of range adds to none";
  let description = [{
    In an order that the target picks, the same each time. An index is a vector of
    i32 that stretches to the tile, as in `tile.gather`.

    (C1) The tile has rank 2 and elements of f32.
    (C2) Bins of rows are as many as the rows of the tile.
    (C3) The index stretches to the tile.
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$value,
                       Arg<AnyMemRef, "the bins", [MemRead, MemWrite]>:$bins, AnyType:$index);
  let assemblyFormat = "$value `,` $bins `[` $index `]` attr-dict `:` type($value) `,` type($bins) `,` type($index)";
  let hasVerifier = 1;
}

def Tile_StoreBinsOp : Tile_Op<"store_bins"> {
  let summary = "writes bins to rows of a memref; out of range is not written";
  let description = [{
    Bins of each row are a box of the memref's two innermost dimensions. Those of
    rank 1 are the sums of several rows of such a box, from the indices on: as
    many as the kernel's plan has warps. What each of these holds is the target's
    choice.

    (C1) One index per dimension of the memref, which has rank 2 or more and
         elements of f32.
  }];
  let arguments = (ins Arg<AnyMemRef, "the bins", [MemRead]>:$bins,
                       Arg<AnyMemRef, "the memory", [MemWrite]>:$view, Variadic<Index>:$indices);
  let assemblyFormat = "$bins `,` $view `[` $indices `]` attr-dict `:` type($bins) `,` type($view)";
  let hasVerifier = 1;
}

def Tile_SearchOp : Tile_Op<"search"> {
  let summary = "how many elements of a sorted row of a memref are <= a value";
  let description = [{
    ```mlir
    %n = tile.search %offsets[%b], %rows : memref<?x?xi32, …>, vector<64x1xi32>, (i32) -> vector<64x1xi32>
    %s = tile.search %ends[], %i : memref<?xi32, …>, i32, () -> i32
    ```
    The meaning of `attn.capture_search`, element wise: one leading index per
    dimension of the memref but the last, then the value; each is an `i32`, or a
    vector of `i32` that stretches to the result as in `tile.gather`. The last
    dimension never decreases (a promise of the caller); a leading index out of
    range gives 0.

    (C1) One leading index per dimension of the memref, less one.
    (C2) The memref has rank 1 or more and elements of i32.
    (C3) Leading indices and value are `i32` or vectors of `i32` that stretch to
         the result.
    (C4) A scalar result has scalar operands only.
  }];
  let arguments = (ins Arg<AnyMemRef, "the memory", [MemRead]>:$view, Variadic<AnyType>:$indices,
                       AnyType:$value);
  let results = (outs SignlessIntegerLike:$result);
  let assemblyFormat = [{
    $view `[` $indices `]` `,` $value attr-dict `:` type($view) `,` type($value) `,` functional-type($indices, $result)
  }];
  let hasVerifier = 1;
}

def Tile_CoordsOp : Tile_Op<"coords", [Pure]> {
  let summary = "base, base + 1, … along one axis: what the score and mask regions see";
  let description = [{
    ```mlir
    %rows = tile.coords %row0, 0 : vector<128x1xi32>
    %cols = tile.coords %col0, 1 : vector<1x64xi32>
    ```
    (C1) `axis` is a dimension of the result.
    (C2) Every other dimension has size 1.
  }];
  let arguments = (ins I32:$base, I64Attr:$axis);
  let results = (outs VectorOfAnyRankOf<[I32]>:$result);
  let assemblyFormat = "$base `,` $axis attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ExitIfOp : Tile_Op<"exit_if", [MemoryEffects<[MemWrite]>]> {
  let summary = "this block of the grid may end here";
  let description = [{
    Where the condition holds nothing is lost if what follows in the block does
    not run: all that it would write is in memory already, or a later grid writes
    it. So the operation may be dropped, but need not be: blocks may end here, or
    never start.
    ```mlir
    tile.kernel @f plan(…) grid(%b, %h, %x) in (%nb, %nh, %nx) {
      %visits = memref.load %counts[%x] : memref<?xi32>
      %nothing = arith.cmpi eq, %visits, %c0_i32 : i32
      tile.exit_if %nothing
      …
    ```
    (C1) Stands directly in a `tile.kernel`.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
}

def Tile_ShareBlocksOp : Tile_Op<"share_blocks", [MemoryEffects<[MemWrite]>]> {
  let summary = "the loops over blocks go through one share of them";
  let description = [{
    The chain of loops over blocks in the kernel, in which every block is one
    that somebody sees, goes through share `number` of `count` only:
    consecutive visits, as many in each share but for the last ones.
    ```mlir
    tile.kernel @f plan(…) grid(%n, %h, %x) in (%parts, %nh, %nx) {
      %number = arith.remui %n, %c8 : index
      tile.share_blocks %number of 8
      …
    }
    ```
    `tile-share-blocks` writes it into the bounds of the loops, when it is known
    which blocks they visit.

    (C1) Stands directly in a `tile.kernel`, which holds no other one.
    (C2) `count` is positive.
  }];
  let arguments = (ins Index:$number, I64Attr:$count);
  let assemblyFormat = "$number `of` $count attr-dict";
  let hasVerifier = 1;
}

def Tile_GroupBoundsOp : Tile_Op<"group_bounds", [
    SingleBlock, RecursiveMemoryEffects, RecursivelySpeculatable,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the key blocks that a group of the tile's rows goes through";
  let description = [{
    ```mlir
    %first, %behind, %end = tile.group_bounds [%lo, %fullHi, %hi) of 64 {
    ^bb0(%row: index):
      %ownFullHi = arith.floordivsi %row, %c64 : index
      %last = arith.addi %row, %c64 : index
      %own = arith.ceildivsi %last, %c64 : index
      tile.yield %lo, %ownFullHi, %own : index, index, index
    }
    ```
    The tile goes through the blocks [lo, hi) in a chain of loops, each from one
    bound to the next; what a loop does with a block is right for all rows. Who
    runs a tile program may divide the rows of the tile into groups of that many
    rows that run side by side; the region says which blocks the group needs whose
    first row is `row`: [ownLo, ownHi). The bounds between say which loop is right
    for the group's rows. Who runs all rows takes the bounds as they are; others
    may take

    ```
    first = min(max(ownLo, lo), max(hi - 1, lo))
    end   = min(max(ownHi, first + 1), hi)
    ```
    and each bound between as min(max(own, the one before), end).

    (C1) `rows` is positive.
    (C2) The region is a function of an index that yields as many as there are
         bounds, and holds operations without effects or regions.
    (C3) There are two bounds or more.
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
  }];
}

def Tile_ScoresOp : Tile_Op<"scores", [
    RecursiveMemoryEffects, AllTypesMatch<["scores", "result"]>]> {
  let summary = "scores of a block of queries and keys, masked, as scalar code";
  let description = [{
    ```mlir
    %y = tile.scores %x at(%b, %h, %i, %j) below(%n) score {
    ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
      %bias = tile.gather %table[%head, %key] : memref<?x?xf32>, (i32, i32) -> f32
      %sum = arith.addf %s, %bias : f32
      tile.yield %sum : f32
    } mask {
    ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
      %causal = arith.cmpi sle, %key, %query : i32
      tile.yield %causal : i1
    } : vector<128x64xf32>, vector<128x1xi32>, vector<1x64xi32>
    ```
    Element by element, with the coordinates of its query and its key:
    ```
    result = key < below && mask(b, h, query, key) ? score(x, b, h, query, key) : -inf
    ```
    A region that is not there changes, or hides, nothing; nor does `below` that
    is not there. The coordinates are those of the rows and of the columns of the
    scores: queries along the rows in a step over keys, along the columns in a
    step over queries. The head is one number, or one for each query. Analyses
    read the scalars; `tile-expand-scores` replaces them by vectors. With `ranged`, the mask compares keys with the ends of ranges
    that are computed per row (`tile-keys-to-ranges`), and says no more which
    blocks show anything.

    (C1) One of `queries` and `keys` has one per row of the scores, M x 1, the
         other one per column, 1 x N. Heads of their own are as many as queries.
    (C2) `score` is a function of (f32, i32, i32, i32, i32) and yields f32,
         `mask` is one of (i32, i32, i32, i32) and yields i1.
    (C3) Regions hold scalar code: what acts element by element, constants,
         `tile.gather`, `tile.search` and `memref.dim`.
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F32]>:$scores, I32:$batch,
                       AnyTypeOf<[I32, VectorOfRankAndType<[2], [I32]>]>:$head,
                       VectorOfRankAndType<[2], [I32]>:$queries,
                       VectorOfRankAndType<[2], [I32]>:$keys, Optional<I32>:$below,
                       UnitAttr:$ranged);
  let regions = (region AnyRegion:$score, AnyRegion:$mask);
  let results = (outs VectorOfRankAndType<[2], [F32]>:$result);
  let assemblyFormat = [{
    $scores `at` `(` $batch `,` $head `,` $queries `,` $keys `)` (`below` `(` $below^ `)`)?
    (`score` $score^)? (`mask` $mask^)? attr-dict `:` type($scores) `,` type($queries) `,` type($keys) ``
    custom<HeadType>(type($head))
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    bool hasScore() { return !getScore().empty(); }
    bool hasMask() { return !getMask().empty(); }
    /// True if some scores may be hidden.
    bool hidesKeys() { return hasMask() || getBelow(); }
    /// What the argument of a region stands for; any other value itself.
    static ::mlir::Value resolve(::mlir::Value value);
  }];
}

def Tile_YieldOp : Tile_Op<"yield", [
    Pure, Terminator, ParentOneOf<["GroupBoundsOp", "ScoresOp"]>]> {
  let summary = "the values of a region of tile.scores or tile.group_bounds";
  let description = [{
    ```mlir
    tile.yield %visible : i1
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Tile_OnlineSoftmaxOp : Tile_Op<"online_softmax", [
    Pure, AllTypesMatch<["scores", "probabilities"]>,
    AllTypesMatch<["max", "sum", "newMax", "newSum", "correction"]>]> {
  let summary = "one step of the running softmax normaliser";
  let description = [{
    With x = scale * scores (element wise):
    ```
    newMax        = max(max, rowmax(x))
    reference     = guard && newMax == -inf ? 0 : newMax
    probabilities = exp(x - reference)
    correction    = exp(max - reference)         (0 when max = -inf)
    newSum        = sum * correction + rowsum(probabilities)
    ```
    (Milakov and Gimelshein, "Online normalizer calculation for softmax",
    algorithm 3; FlashAttention-2, algorithm 1.) `guard` is needed where a row
    may have seen no key yet (C17); without it such a row gives NaN. With `exp2`
    the exponential is an exp2, log2(e) folded into the factor. `exact` forbids
    that: it is set where the numerics contract of the source refuses fast
    exponentials, and stays set.

    `bounded` says that every x but -inf is known to be at most 512 in
    magnitude. The argument of exp2 is then one fused multiply-add. Without it
    the maximum of the block is subtracted first: the rounding of a product with
    a large maximum would be a large number itself, or an infinity.

    (C1) The row statistics have one column and as many rows as the scores.
    (C2) `scale` is positive and finite: the maximum of scaled scores is then
         the scaled maximum, and -inf stays -inf.
    (C3) `exact` and `exp2` exclude each other.
    (C4) `bounded` comes with `exp2`, which alone depends on it.
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F32]>:$scores,
                       VectorOfRankAndType<[2], [F32]>:$max,
                       VectorOfRankAndType<[2], [F32]>:$sum,
                       DefaultValuedAttr<F32Attr, "1.0">:$scale, UnitAttr:$guard, UnitAttr:$exp2, UnitAttr:$exact,
                       UnitAttr:$bounded);
  let results = (outs VectorOfRankAndType<[2], [F32]>:$probabilities,
                      VectorOfRankAndType<[2], [F32]>:$newMax,
                      VectorOfRankAndType<[2], [F32]>:$newSum,
                      VectorOfRankAndType<[2], [F32]>:$correction);
  let assemblyFormat = [{
    $scores `,` $max `,` $sum attr-dict `:` type($scores) `,` type($max)
  }];
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_TILE_IR_TILEOPS_TD
