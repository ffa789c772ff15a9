// Every optional pass says what it did, with figures, or why it did nothing; under
// its own name.

// RUN: attn-opt %s --attn-sm90 --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: attn-opt %s --attn-sm80 --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefixes=CHECK,SM80

// CHECK: [Passed] order-blocks | Category:tile-order-blocks | Remark="query blocks are numbered from the last to the first"
// CHECK: [Missed] list-blocks | Category:tile-list-blocks | Remark="bounds of rows and keys say which blocks the mask leaves"
// CHECK: [Passed] peel-masks | Category:tile-peel-masks | {{.*}}segments=2
// SM90: [Passed] group-bounds | Category:tile-group-bounds | rows=64
// CHECK: [Passed] keys-to-ranges | Category:tile-keys-to-ranges | comparisons=0, masks=1
// CHECK: [Missed] reverse-keys | Category:tile-reverse-keys | Remark="nothing that is added to the scores grows with the key"
// CHECK: [Passed] fold-exp2 | Category:tile-fold-exp2 | factors=
// SM90: [Passed] overlap-products | Category:tile-overlap-products | loops=2
// CHECK: [Passed] lazy-max | Category:tile-lazy-max | bounded=0
// CHECK: [Passed] defer-sum | Category:warp-defer-sum | sums=
// SM90: [Passed] persist | Category:warp-persist | scheduler=dynamic
// SM90: [Missed] double-buffer | Category:warp-double-buffer
// SM90: [Passed] specialize | Category:warp-specialize | copies=7
// SM90: [Missed] deepen-rings | Category:warp-deepen-rings | Remark="no step refills a ring of one slot"
// SM90: [Passed] make-async | Category:warp-make-async | products=
// SM90: [Passed] insert-turns | Category:warp-insert-turns | turns=
// SM80: [Passed] buffer | Category:warp-buffer | rings=2
// CHECK: [Passed] stage-stores | Category:warp-stage-stores | stores=1
// SM90: [Passed] deepen-rings | Category:warp-deepen-rings | rings=1
// SM90: [Missed] expand-tanh | Category:warp-expand-tanh | Remark="no tanh of a tile may be approximate"

// A ring of one slot has no room for blocks that groups pass over.
// RUN: attn-opt %s --attn-sm90="plan=#attn.plan<target=sm_90a,block_q=128,block_k=64,warps=8,stages=1>" --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=PASSED-OVER
// PASSED-OVER: [Missed] specialize | Category:warp-specialize | Remark="all groups go through all blocks: a ring has one slot, or loops use other rings"

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
