// Each pass of the room in a wrong order: the error names the form that the pass
// needs and the one that is there. In the right order each one runs.

// DEFINE: %{masks} = %S/../../Masks
// DEFINE: %{tile} = --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile
// DEFINE: %{split} = --attn-expand-variants --attn-plan='target=sm_90a plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, split_keys = 4>"' --convert-attn-to-tile
// DEFINE: %{steps} = %{tile} --tile-expand-scores

// RUN: not attn-opt %s --tile-order-blocks -o %t 2>&1 | FileCheck %s --check-prefix=ATTN
// ATTN: [[#@LINE+53]]:{{.*}}: error: tile-order-blocks needs tile-stepped, got an attn.attention; run it after convert-attn-to-tile

// RUN: attn-opt %s %{tile} --tile-order-blocks --tile-list-blocks --tile-peel-masks --tile-peel-scores --tile-share-blocks --tile-group-bounds --tile-keys-to-ranges --tile-reverse-keys --tile-fold-exp2 --tile-overlap-products --tile-expand-scores --tile-lazy-max --tile-expand-softmax --tile-merge-factors --convert-tile-to-warp -o %t
// RUN: not attn-opt %s %{tile} --tile-peel-masks --tile-order-blocks -o %t 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: tile-order-blocks needs tile-stepped, got tile-peeled: a loop over some of the key blocks; run it before tile-peel-masks
// RUN: not attn-opt %s %{tile} --tile-peel-masks --tile-list-blocks -o %t 2>&1 | FileCheck %s --check-prefix=LIST
// LIST: error: tile-list-blocks needs tile-stepped, got tile-peeled: a loop over some of the key blocks; run it before tile-peel-masks
// RUN: not attn-opt %{masks}/block-table.mlir %{tile} --tile-list-blocks --tile-list-blocks -o %t 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: tile-list-blocks needs tile-stepped, got tile-listed: a loop that takes its key blocks from a list; it has run already
// RUN: not attn-opt %s %{tile} --tile-peel-masks --tile-group-bounds --tile-peel-masks -o %t 2>&1 | FileCheck %s --check-prefix=PEEL
// PEEL: error: tile-peel-masks needs tile-listed, got tile-grouped: key blocks of a group of rows; run it before tile-group-bounds
// RUN: not attn-opt %s %{split} --tile-group-bounds -o %t 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: error: tile-group-bounds needs tile-shared, got a tile.share_blocks; run it after tile-share-blocks
// RUN: not attn-opt %s %{split} --tile-expand-scores -o %t 2>&1 | FileCheck %s --check-prefix=UNSHARED
// UNSHARED: error: tile-expand-scores needs tile-overlapped, got a tile.share_blocks; run it after tile-share-blocks
// RUN: attn-opt %s %{split} --tile-share-blocks --tile-group-bounds -o %t
// RUN: not attn-opt %s %{tile} --tile-peel-masks --tile-group-bounds --tile-share-blocks -o %t 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: tile-share-blocks needs tile-peeled, got tile-grouped: key blocks of a group of rows; run it before tile-group-bounds
// RUN: not attn-opt %s %{tile} --tile-peel-masks --tile-expand-scores --tile-group-bounds -o %t 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: error: tile-group-bounds needs tile-shared, got tile-expanded: a mask of vectors; run it before tile-expand-scores
// RUN: not attn-opt %s %{tile} --tile-keys-to-ranges --tile-peel-masks -o %t 2>&1 | FileCheck %s --check-prefix=RANGED
// RANGED: error: tile-peel-masks needs tile-listed, got tile-ranged: a mask that compares keys with ranges; run it before tile-keys-to-ranges
// RUN: not attn-opt %s %{steps} --tile-overlap-products -o %t 2>&1 | FileCheck %s --check-prefix=SCORED
// SCORED: error: tile-overlap-products needs tile-folded, got tile-expanded: a mask of vectors; run it before tile-expand-scores
// RUN: not attn-opt %s %{steps} --tile-fold-exp2 -o %t 2>&1 | FileCheck %s --check-prefix=SCORES
// SCORES: error: tile-fold-exp2 needs tile-reversed, got tile-expanded: a mask of vectors; run it before tile-expand-scores

// DEFINE: %{alibi} = attn-opt %{masks}/alibi-by-score.mlir --attn-expand-variants --attn-plan=target=sm_80 --convert-attn-to-tile
// RUN: %{alibi} --tile-keys-to-ranges --tile-reverse-keys --tile-fold-exp2 --tile-expand-scores -o %t
// RUN: not %{alibi} --tile-reverse-keys --tile-keys-to-ranges -o %t 2>&1 | FileCheck %s --check-prefix=RANGES
// RANGES: error: tile-keys-to-ranges needs tile-grouped, got tile-reversed: a loop from the last key block to the first; run it before tile-reverse-keys
// RUN: not %{alibi} --tile-fold-exp2 --tile-reverse-keys -o %t 2>&1 | FileCheck %s --check-prefix=REVERSE
// REVERSE: error: tile-reverse-keys needs tile-ranged, got tile-folded: a softmax with exp2; run it before tile-fold-exp2
// RUN: not attn-opt %s %{tile} --tile-overlap-products --tile-fold-exp2 -o %t 2>&1 | FileCheck %s --check-prefix=FOLD
// FOLD: error: tile-fold-exp2 needs tile-reversed, got tile-overlapped: a first step before its loop; run it before tile-overlap-products
// RUN: not attn-opt %s %{tile} --tile-fold-exp2 --tile-expand-scores --tile-lazy-max --tile-overlap-products -o %t 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: tile-overlap-products needs tile-folded, got tile-lazy: a softmax under a condition; run it before tile-lazy-max
// RUN: not attn-opt %s %{steps} --tile-lazy-max -o %t 2>&1 | FileCheck %s --check-prefix=LAZY
// LAZY: error: tile-lazy-max needs tile-expanded, got a softmax without exp2; run it after tile-fold-exp2
// RUN: not attn-opt %s %{steps} --tile-expand-softmax --convert-tile-to-warp --tile-expand-softmax -o %t 2>&1 | FileCheck %s --check-prefix=SOFTMAX
// SOFTMAX: error: tile-expand-softmax needs tile-lazy, got warp-sync: a warp.kernel; run it before convert-tile-to-warp
// RUN: not attn-opt %s %{steps} --tile-merge-factors -o %t 2>&1 | FileCheck %s --check-prefix=FACTORS
// FACTORS: error: tile-merge-factors needs tile-flat, got a tile.online_softmax; run it after tile-expand-softmax
// RUN: not attn-opt %s %{steps} --convert-tile-to-warp -o %t 2>&1 | FileCheck %s --check-prefix=WARP
// WARP: error: convert-tile-to-warp needs tile-flat, got a tile.online_softmax; run it after tile-expand-softmax
// RUN: not attn-opt %s %{steps} --convert-tile-to-loops -o %t 2>&1 | FileCheck %s --check-prefix=LOOPS
// LOOPS: error: convert-tile-to-loops needs tile-flat, got a tile.online_softmax; run it after tile-expand-softmax
// RUN: attn-opt %s %{steps} --tile-expand-softmax --convert-tile-to-loops -o %t

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
