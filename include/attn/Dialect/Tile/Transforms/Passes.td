//===- Passes.td - passes of the tile dialect --------------*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileExpandScores : Pass<"tile-expand-scores", "::mlir::func::FuncOp"> {
  let summary = "tile.scores as code on vectors";
  let description = [{
    Needs: `tile-overlapped`. Gives: `tile-expanded`, without `tile.scores`: its
    scalar regions become vector code, in which every value has the smallest
    shape that holds it (a scalar, Mx1, 1xN or MxN), and hidden scores a select
    of -inf. What does not depend on the block is computed before the loops over
    blocks. What a pullback gives where the score is not -inf, it gives where the
    mask shows the score, if the score function has a bound.

    ```mlir
    %y = tile.scores %x at(%b, %h, %rows, %cols) below(%n) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %m = arith.cmpi sge, %i, %j : i32
      tile.yield %m : i1
    } : vector<128x64xf32>, vector<128x1xi32>, vector<1x64xi32>
    ```
    becomes
    ```mlir
    %in = arith.cmpi slt, %cols, %ns : vector<1x64xi32>
    %inside = vector.broadcast %in : vector<1x64xi1> to vector<128x64xi1>
    %is = vector.broadcast %rows : vector<128x1xi32> to vector<128x64xi32>
    %js = vector.broadcast %cols : vector<1x64xi32> to vector<128x64xi32>
    %m = arith.cmpi sge, %is, %js : vector<128x64xi32>
    %mask = arith.andi %m, %inside : vector<128x64xi1>
    %y = arith.select %mask, %x, %minusInf : vector<128x64xi1>, vector<128x64xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileOrderBlocks : Pass<"tile-order-blocks", "::mlir::func::FuncOp"> {
  let summary = "start the query blocks that see most keys first";
  let description = [{
    Needs: `tile-stepped`. Gives: the same with query blocks numbered from the
    end, where the mask shows later rows more keys (a causal mask): block `x` of
    `n` becomes `n - 1 - x`. The longest blocks then do not run last and alone.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

def TileListBlocks : Pass<"tile-list-blocks", "::mlir::func::FuncOp"> {
  let summary = "visit the blocks that two earlier grids found in the mask";
  let description = [{
    Needs: `tile-stepped`; a loop that holds one `tile.scores` that hides keys.
    Gives: `tile-listed`, in several grids.

    A mask that depends on more than bounds of rows and keys (a captured block
    map, documents in any order) tells nothing before it is evaluated. Two grids
    before the kernel evaluate it once for each pair of a tile (of queries, or of
    keys where gradients of keys are summed) and a block that the loop visits (of
    keys, or of queries), and write, per tile, the numbers of the blocks in which
    something shows: P that also hide something, then F that hide nothing. So is
    a mask listed that is made of bounds but shows other blocks than they say
    (tiles of a video, the places of two halves): a few tiles of 8192 positions
    are looked at, by running the mask for some of their rows where no data
    decide, and what loops between bounds would visit in vain there, or ask a
    long mask in vain, is compared with what shows. What the grids write are
    allocations of the function, 5 bytes for each pair; a batch or head that the
    mask does not depend on does not multiply them.

    A mask that sees positions through quotients only (a block map at (i / 128,
    j / 128)) is evaluated once for each group of rows and columns that are
    alike. Where a mask's integers and floats have bounds in a part of a block
    (interval arithmetic), they are evaluated once for that part: it may then be
    visited, or masked, in vain. Where that is so of half as many blocks again
    as the pairs of those tiles show in part, each pair is evaluated. Of blocks
    with few groups or parts (8) a warp looks at 16 tiles by 16 at once, else at
    one. Where the mask also reads data for each query or each key, the ends of
    these in a block are found first and tell of most blocks that they show
    nothing or all (of documents: that the last one of the queries is before the
    first one of the keys). What that leaves open is evaluated pair by pair,
    until a pair that shows and one that does not are found.

    Where a block is one group nothing is left to ask of a block that is listed,
    but for the end of the keys. A third grid writes the results of tiles to which
    nothing shows, which are then idle in the kernel (`tile.exit_if`). The loop
    becomes two, which count visits:

    ```mlir
    %a:3 = scf.for %t = %c0 to %P step %c1 iter_args(…) {        // masked
      %e = arith.minsi %t, %visits : index       // and not below 0
      %n32 = memref.load %lists[%b, %h, %tile, %e]
      …
    %b:3 = scf.for %t = %P to %visits step %c1 iter_args(%a…)     // not masked
    ```
    Where bounds say enough it is left to `tile-peel-masks`; so are loops over
    queries if bounds leave a range of them, with two ends, for each tile (a
    window, a sequence of packed ones) and each pair has to be looked at: to visit
    all of the range takes less time than to evaluate the mask outside of it.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TilePeelMasks : Pass<"tile-peel-masks", "::mlir::func::FuncOp"> {
  let summary = "visit no hidden key block, and mask only partly visible ones";
  let description = [{
    Needs: `tile-listed`; loops that hold one `tile.scores` that hides keys.
    Gives: `tile-peeled`.

    The mask is read as a formula of linear inequalities (and, or, not, xor and
    select of comparisons; quotients and remainders by constants; sorted memory
    and searches). Projected to block numbers it says which key blocks show
    anything to the rows of a query block, and which hide anything; the bounds
    are computed before the loop, from lengths, offsets and elements at the first
    and last row. Where the visited blocks are one interval, the loop becomes a
    chain of up to three loops over consecutive ranges, where the upper bound of
    one is the lower bound of the next:

    ```mlir
    %a:3 = scf.for %n = %lo to %fullLo step %c1 iter_args(…)        // masked
    %b:3 = scf.for %n = %fullLo to %fullHi step %c1 iter_args(%a…)  // not masked
    %c:3 = scf.for %n = %fullHi to %hi step %c1 iter_args(%b…)      // masked
    ```
    The first exists only if the mask bounds keys from below, the last only if
    it bounds them from above (the end of the keys does). Where they are several
    intervals (global and local keys together), two loops count visits, through
    the masked blocks and then through the full ones, and each computes its block
    as the same function of the visit:

    ```mlir
    %a:3 = scf.for %t = %c0 to %masked step %c1 iter_args(…) {
      %behind = arith.cmpi sge, %t, %first1 : index
      %shift = arith.select %behind, %shift1, %shift0 : index
      %n = arith.addi %t, %shift : index
      …
    %b:3 = scf.for %t = %masked to %visits step %c1 iter_args(%a…)
    ```
    What is not understood may show and hide anything: a conjunct of that kind
    keeps one masked loop, still from `lo` to `hi`. No block that shows anything
    is ever left out; a few may be visited, or masked, in vain.

    Guards of steps go where every row has seen a key: in full blocks, and
    everywhere if every row sees one in its first block.

    Each loop is a copy of the step. Steps of f32 products on tensor cores are
    up to 90 KB of instructions, and a multiprocessor, whose thread blocks are at
    different places, keeps 128 KB: with `selective` such a step stays one loop,
    from `lo` to `hi`, whose blocks are all masked.
  }];
  let options = [
    Option<"selective", "selective", "bool", "false",
           "Divide no loop whose step is so much code that two do not fit "
           "the instruction cache of a GPU">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def TilePeelScores : Pass<"tile-peel-scores", "::mlir::func::FuncOp"> {
  let summary = "read no memory per score where the score function is constant";
  let description = [{
    Needs: `tile-peeled`. Gives: the same, in which loops over blocks that show
    everything (or the only loop of a chain) are up to three:

    ```mlir
    %a:3 = scf.for %n = %lo to %first step %c1 iter_args(…)     // saturated
    %b:3 = scf.for %n = %first to %end step %c1 iter_args(%a…)  // as it was
    %c:3 = scf.for %n = %end to %hi step %c1 iter_args(%b…)     // saturated
    ```
    An operation of the score function that a comparison of integers decides (a
    minimum, a maximum, an absolute value, the comparison itself) gives the same
    operand for all pairs of a block, from some block on, where what is compared
    grows or falls with the position: with

    ```mlir
      %d = arith.subi %i, %j : i32
      %a = arith.maxsi %d, %least : i32
      %c = arith.minsi %a, %most : i32
      %bias = tile.gather %table[%h, %c]
    ```
    all pairs of a block far to the left take `%most`, and those far to the
    right `%least`. The comparison is read as masks are (`tile-peel-masks`); of a
    minimum or maximum of something else, min(8 + 3 log(d), 15), it is found from
    which d on the range of the one operand lies beyond the other, where the
    functions are off by a part in 2^16. The bounds are computed before the loop,
    and in the pieces on both sides the operand stands in place of the operation:
    `tile.gather %table[%h, %most]` is one element, read before the loops. All
    results are what they were, bit for bit, until `tile-lazy-max` takes what is
    one number for all keys of a loop into the reference.

    It pays where a piece has fewer reads of memory, or functions (`math`
    operations of several instructions), per score than before; of the
    operations that are decided on one side only those are written that it takes,
    so that the piece is as long as can be. Else the loop stays as it is: three
    loops are three times the code.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def TileShareBlocks : Pass<"tile-share-blocks", "::mlir::func::FuncOp"> {
  let summary = "loops over blocks go through one share of them";
  let description = [{
    Needs: `tile-peeled`. Gives: `tile-shared`, the same without
    `tile.share_blocks`. What the loops of a kernel visit together, whatever the
    mask shows of it, is divided as evenly as whole blocks can be:

    ```mlir
    tile.share_blocks %p of 8
    …
    %a:3 = scf.for %n = %lo to %fullHi step %c1 iter_args(…)       // not masked
    %b:3 = scf.for %n = %fullHi to %hi step %c1 iter_args(%a…)     // masked
    ```
    becomes
    ```mlir
    %count = arith.subi %hi, %lo : index
    %raised = arith.addi %count, %c7 : index
    %size = arith.divui %raised, %c8 : index
    …                                     // first = min(lo + p * size, hi)
    %mid = …                              // fullHi within [first, end]
    %a:3 = scf.for %n = %first to %mid step %c1 iter_args(…)
    %b:3 = scf.for %n = %mid to %end step %c1 iter_args(%a…)
    ```
    An empty share gives what the loops started with. Loops that do not go on
    where the one before ends, as those over two lists, are divided one by one.
    A program without `tile.share_blocks` stays as it is.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileGroupBounds : Pass<"tile-group-bounds", "::mlir::func::FuncOp"> {
  let summary = "parts of a tile's rows have key blocks, and full ones, of their own";
  let description = [{
    Needs: `tile-shared`. Gives: `tile-grouped`, a tile program whose loops have
    bounds that may differ between parts of `rows` rows of a tile, which
    warpgroups compute side by side:

    ```mlir
    %all:3 = tile.group_bounds [%lo, %fullHi, %hi) of 64 {
    ^bb0(%row: index):
      %ownFullHi = …                              // of rows %row to %row + 63
      %ownHi = …
      tile.yield %lo, %ownFullHi, %ownHi : index, index, index
    }
    %a:3 = scf.for %n = %lo to %all#1 step %c1 iter_args(…)          // not masked
    %b:3 = scf.for %n = %all#1 to %all#2 step %c1 iter_args(%a…)     // masked
    ```
    Under a causal mask a tile of 256 rows has four blocks of 64 keys on its
    diagonal; 64 rows of it see one to four of them, and only one in part. Where
    no block is full for all rows, because a window is no wider than the tile,
    one loop becomes three, if blocks may be full for a part. Bounds that memory
    has a part in stay as they are, and those of full blocks where the score
    function differs from loop to loop (`tile-peel-scores`). Whoever runs all rows
    takes the bounds of the tile. Kernels whose plan leaves the pass out stay as
    they are.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "64", "Rows of a part (of a warpgroup)">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::attn::tile::TileDialect"
  ];
}

def TileKeysToRanges : Pass<"tile-keys-to-ranges", "::mlir::func::FuncOp"> {
  let summary = "masks compare each key with two bounds of its row";
  let description = [{
    Needs: `tile-grouped`. Gives: `tile-ranged`, in `tile.scores` that are
    `ranged` where anything changed.

    A comparison of a search for the key, or of a sorted gather at it, with a
    value that is the same for all keys becomes a range of keys. Its ends are
    computed before the loop: per row two elements in place of a search per
    key, or two searches in place of a gather per key. With documents by offsets,

    ```mlir
    mask {
    ^bb0(%b: i32, %h: i32, %row: i32, %key: i32):
      %x = tile.search %offsets[], %row : memref<?xi32>, i32, () -> i32
      %y = tile.search %offsets[], %key : memref<?xi32>, i32, () -> i32
      %same = arith.cmpi eq, %x, %y : i32
    ```
    becomes, with o[-1] below and o[size] above all keys,
    ```mlir
      %from = tile.gather %offsets[%x - 1]
      %above = tile.gather %offsets[%x]
      %a = arith.cmpi sge, %key, %from : i32
      %b = arith.cmpi slt, %key, %above : i32
      %same = arith.andi %a, %b : i1
    ```
    where `tile-expand-scores` computes what does not depend on the key before
    the loop. This holds for any value of the row, in or out of the range of the
    memory. Keys after the end of a gathered memory read 0: a third comparison
    asks for them.

    So does the comparison of a quotient by a constant, of the key or of its
    distance: j / 128 == i / 128 says that j is not before i / 128 * 128, and
    before the 128th key from there.

    Then, where a mask sets several upper bounds to the keys of a row (the end
    of its document, its own position, the number of keys), one comparison with
    their minimum remains, and one with the maximum of the lower bounds. Other
    comparisons of a distance |i - j| become two of i - j.

    A mask with ranges does not tell `tile-peel-masks` which blocks show anything.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileHideFaint : Pass<"tile-hide-faint", "::mlir::func::FuncOp"> {
  let summary = "keys that a linear bias leaves no weight are not visited";
  let description = [{
    Needs: `tile-peeled`; loops over key blocks that are a chain from block 0 on
    and hold `tile.scores` with a score function

        y = scale * x + slope * j + (what is the same for all keys of a row)

    (ALiBi: Press et al., "Train Short, Test Long", section 3), scale and slope
    numbers of the head, and a mask that shows each row one interval of keys
    (causal, a window). Gives: the same with fewer blocks, and three kernels
    before it, `_key_norms`, `_query_norms` and `_widths`. By Cauchy and Schwarz
    no score is further from its bias than B = |scale| max |q| max |k|, so that
    the weight of a key further than (2 B + 110) / |slope| from the row's key of
    the greatest bias is below exp(-110) of the greatest weight: nothing, in
    f32. The kernels compute this width for each head, from the norms of all
    rows. Where a key, a query or a value is not finite no block is left out.

    ```mlir
    %a:3 = scf.for %n = %c0 to %full step %c1 iter_args(…)
    // becomes, where scores grow with the key
    %w = memref.load %widths[%b, %h] : memref<?x?xi32>
    …                                             // lo = (last - w) / 96
    %a:3 = scf.for %n = %lo to %full step %c1 iter_args(…)
    ```
    Norms take one reading of queries, keys and values: it pays for thousands of
    keys. So plans ask for it, and those that the compiler picks do from 8192
    queries and keys on, or fewer where the slope is a constant. Example: `test/Dialect/Tile/hide-faint.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def TileReverseKeys : Pass<"tile-reverse-keys", "::mlir::func::FuncOp"> {
  let summary = "key blocks from the last to the first where scores grow or keys end";
  let description = [{
    Needs: `tile-ranged`; loops over key blocks that are a chain and hold
    `tile.scores`. Gives: `tile-reversed`, a tile program that visits the same
    blocks in the other order, where the formula of the scores adds something to
    the product of queries and keys that grows with the key, such as the bias of
    ALiBi, r (j - i):

    ```mlir
    %a:3 = scf.for %n = %lo to %full step %c1 iter_args(…)           // not masked
    %b:3 = scf.for %n = %full to %hi step %c1 iter_args(%a…)         // masked
    ```
    becomes
    ```mlir
    %sum = arith.addi %hi, %lo : index
    %last = arith.subi %sum, %c1 : index
    %middle = arith.subi %sum, %full : index
    %b:3 = scf.for %t = %lo to %middle step %c1 iter_args(…) {       // masked
      %distance = arith.subi %last, %t : index
      %n = arith.maxsi %distance, %lo : index
      …
    %a:3 = scf.for %t = %middle to %hi step %c1 iter_args(%b…)       // not masked
    ```
    In ascending order every block has a new maximum, and `tile-lazy-max` has to
    compute most blocks twice. In the other order the first maximum does.

    A chain whose last loop masks one block at most, such as the one that the end
    of the keys cuts, takes the other order, too, unless the scores fall with the
    key or are the product times a constant. The masked loop is then over the
    first visit alone, [lo, min(lo + 1, hi)), and `tile-overlap-products`, which
    computes the first step before the loops, leaves none of it: one copy of the
    step less. Without that pass the order stays.

    A number of the row or head that the key's position is multiplied with counts
    as positive if it is no negative constant: the order is a matter of speed
    only. Where the bias falls with the key, or has no trend that is seen (a
    table; the distance to both sides), and where loops count visits (several
    intervals, lists of blocks), nothing changes. Rows may see no key in the
    blocks that come first: masked steps are guarded.

  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"
  ];
}

def TileFoldExp2 : Pass<"tile-fold-exp2", "::mlir::func::FuncOp"> {
  let summary = "fold the factor of the scores and log2(e) into one fma and exp2";
  let description = [{
    Needs: `tile-reversed`. Gives: `tile-folded`.

    Marks every `tile.online_softmax` that takes the result of a `tile.scores`
    and is not `exact` with `exp2`. Where the score function ends in a product
    with a positive constant, perhaps in a choice of -inf, the constant moves into
    the operation's `scale`:

    ```mlir
    %y = tile.scores %x at(%b, %h, %i, %j) score {
    ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
      %c = arith.constant 1.250000e-01 : f32
      %scaled = arith.mulf %s, %c : f32
      tile.yield %scaled : f32
    } mask {…} : …
    %p, … = tile.online_softmax %y, %m, %l : …
    ```
    becomes
    ```mlir
    %y = tile.scores %x at(%b, %h, %i, %j) mask {…} : …
    %p, … = tile.online_softmax %y, %m, %l {exp2, scale = 1.250000e-01 : f32} : …
    ```
    so that one fused multiply-add per score remains. Where the scores are known
    to be small, at most 512 as a softcap keeps them, the operation becomes
    `bounded`; others are looked at when they are there, row by row. A remark
    says which. Two constant factors of a score in a row become one.

    Weights of gradients are powers of two already, and the factor of their fma
    takes the scale:

    ```mlir
    %p = scf.if %far -> (vector<128x64xf32>) {    // of a head with a large lse
      …                                           // takes scores * scale
    } else {
      %e = math.fma %scores, %log2e, %offsets     // log2e * scale
      %e2 = math.exp2 %e
      scf.yield %e2
    }
    ```
    The same where the arms give what the powers are taken of, scores in the
    second one: the first one divides by the scale. Where a pullback takes the
    scores, too, the score function stays as it is: the two have operations in
    common.

    A bias of an integer times a number of the row or head (ALiBi) becomes one
    `math.fma` of these two and the rest. Other products that are added to
    something become one `math.fma` with that, where they differ from score to
    score. What leads to an integer or a truth value made of a float keeps its
    roundings. The tanh of a score c tanh(x) of 16-bit numbers with |c| <= 64
    becomes `fastmath<afn>`: its error may be 2^-21, beside 1 and not beside tanh.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileOverlapProducts : Pass<"tile-overlap-products", "::mlir::func::FuncOp"> {
  let summary = "P V of one key block beside Q K^T of the next";
  let description = [{
    Needs: `tile-folded`; loops over key blocks that carry (o, m, l) and hold
    one `tile.online_softmax`. Gives: `tile-overlapped`, a tile program that
    computes the scores and weights of its first block before the loops, and the
    product of the last weights with their values after them:

    ```mlir
    %p0, … = tile.online_softmax …                           // block lo
    %r:4 = scf.for %n = %second to %hi step %c1 iter_args(%o, %m, %l, %p = %p0) {
      %s = vector.contract … %q, %k, %zero                   // block n
      %o1 = vector.contract … %p, %v, %o                     // block n - 1
      %p1, %m1, %l1, %c = tile.online_softmax …
      %o2 = arith.mulf %o1, %cb
      scf.yield %o2, %m1, %l1, %p1
    }
    %o3 = vector.contract … %r#3, %v, %r#0                   // block hi - 1
    ```
    The two products of a step do not depend on each other. No number changes:
    the same operations happen to it in the same order. A chain of loops (from
    `tile-peel-masks`) stays a chain; of a first loop over one block, which the
    first step does, nothing is left. The key block may be any function of the
    induction variable, of arithmetic and reads of memory.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileLazyMax : Pass<"tile-lazy-max", "::mlir::func::FuncOp"> {
  let summary = "no row maximum where the one of the blocks before will do";
  let description = [{
    Needs: `tile-expanded`. Gives: `tile-lazy`, a tile program whose loops
    compute the weights of a block with the maximum of the blocks before, and
    once more, with the true maximum, if a row sum of any row is not below 2^64
    (2^15 where the weights become f16):

    ```mlir
    %p0 = math.exp2 …                                  // scores - old maximum
    %sums = vector.shape_cast …                        // row sums of %p0
    %large = arith.cmpf uge, %sums, %limit : vector<128x1xf32>
    %redo = vector.multi_reduction <or>, %large, %false [0, 1] : vector<128x1xi1> to i1
    %p, %m1, %l1, %c = scf.if %redo -> (…) {
      %p1, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l {exp2, guard, …}
      scf.yield %p1, %m1, %l1, %c1
    } else {
      scf.yield %p0, %m, %sum, %ones
    }
    %o1 = scf.if %redo -> (…) {
      …                                                // %o times %c
    } else {
      scf.yield %o
    }
    ```
    In the second branch stands what needs the output, so that P V of the block
    before has until then to end.
    The reference cancels in the output; the result differs by rounding only. A
    row that has seen no key yet asks for the true maximum by itself. Where the
    softmax is not `bounded`, a row whose maximum is 512 or more in magnitude
    wants it, too. Maxima are new only where the step is done once more: there
    it looks at them, and the loop carries the answer to the next step.

    A bias r n of the scores, n a position and r the same in the whole loop
    (ALiBi), goes into the reference: exp2 of fma(S, factor, fma(n, r log2(e),
    -m)), where the inner one may be reassociated (`fastmath<reassoc>`), that of
    the first position plus constants. So does a bias that is one number for all
    keys of the loop. The biased scores are computed only where the step is done
    once more.

    Where a position, a distance, or a key's position times a rate is added as it
    is, maxima are large in most rows: exp2((scores - m) log2(e)) then takes one
    operation per score more, and a large maximum is no reason to do a step once
    more.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileExpandSoftmax : Pass<"tile-expand-softmax", "::mlir::func::FuncOp"> {
  let summary = "tile.online_softmax as vector, arith and math operations";
  let description = [{
    Needs: `tile-lazy`. Gives: `tile-flat`, which both conversions out of the
    room ask for.

    Row reductions become `vector.multi_reduction` with a constant accumulator
    and a `vector.shape_cast` to Mx1; with `exp2` the exponential is one
    `math.fma` and a `math.exp2`, otherwise `math.exp`. Without `bounded` an
    `scf.if` asks whether the reference of any row is 512 or more in magnitude;
    there the maximum of the block is subtracted before the `math.fma`. A softmax
    in an `scf.if` (`tile-lazy-max`'s step that is done once more) always does so.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def TileMergeFactors : Pass<"tile-merge-factors", "::mlir::func::FuncOp"> {
  let summary = "one product for the constant factors of an element";
  let description = [{
    Needs: `tile-flat`. Gives: the same with fewer operations for each element of
    a tile. A quotient by a constant becomes a product, and constant factors move
    towards the end, where they meet:

    ```mlir
    %u = arith.divf %x, %20s          // tanh(x / 20) * 20, as a softcap has it
    %t = math.tanh %u
    %y = arith.mulf %t, %20s
    %e = math.fma %y, %log2e, %offset
    …
    %a = arith.mulf %g, %20s          // what goes back: g * 20 * (1 - t t) / 20
    %s = arith.mulf %t, %t
    %r = arith.subf %ones, %s
    %b = arith.mulf %a, %r
    %d = arith.divf %b, %20s
    ```
    becomes
    ```mlir
    %u = arith.mulf %x, %0.05s
    %t = math.tanh %u
    %e = math.fma %t, %28.85s, %offset
    …
    %n = arith.negf %t
    %r = math.fma %n, %t, %ones
    %d = arith.mulf %g, %r
    ```

    Results differ by a few units in the last place of f32. What leads to an
    integer or a truth value made of a float keeps its roundings, and so do
    programs without `fast_math` or with `f32_products = ieee`. What is computed
    once for a row or a column stays as it is written.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

def TileLoopHeads : Pass<"tile-loop-heads", "::mlir::func::FuncOp"> {
  let summary = "a block goes through the query heads that share its key head";
  let description = [{
    Needs: `tile-flat`. Gives: the same. Gradients of a key head are sums over the
    query heads that share it. A kernel with a block for each query head stores
    them to a workspace of f32, and another kernel adds them up. Here a block goes
    through these heads one by one: it reads key and value once, and there is no
    workspace and no second kernel.
    ```mlir
    tile.kernel @d_key_value … grid(%b, %h, %x) in (%batches, %keyHeads, %blocks) {
      %k = tile.load %key[%b, %h, %row, %c0] …
      %first = arith.muli %h, %perKeyHead : index
      %sum = scf.for %i = %c0 to %perKeyHead step %c1 iter_args(%s = %zero) {
        %head = arith.addi %first, %i : index
        scf.for %n = … { tile.load %query[%b, %head, …] … }
        …
      }
      tile.store %sum, %d_key[%b, %h, %row, %c0] …
    }
    ```
    Optional: a *missed* remark says why a kernel with such sums stays as it is.
    Of few keys the blocks are fewer than multiprocessors, and it is left out.
    Example: `test/Dialect/Tile/loop-heads.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
