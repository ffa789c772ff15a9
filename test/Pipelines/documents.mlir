// Documents by offsets on sm_90a: searches only for the first and the last row
// of a block, by all warps, and for each row, by the consumer; none in a loop,
// and the copies have warps of their own.
// RUN: attn-opt %s --attn-to-tile="target=sm_90a reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-specialize | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

// CHECK-LABEL: func.func @documents
// CHECK: warp.kernel
// CHECK-DAG: warp.search {{.*}}, i32, () -> i32
// CHECK-DAG: warp.search {{.*}}, i32, () -> i32
// CHECK-NOT: warp.search
// CHECK: warp.role @load copy
// CHECK-NOT: warp.search
// CHECK: warp.role @softmax compute
// CHECK: warp.search {{.*}}, !warp.frag<192x1xi32, acc, 12>
// CHECK-NOT: warp.search
// CHECK: scf.for
// CHECK-NOT: warp.search
func.func @documents(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0) {variants = [#attn.causal]}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %offsets: tensor<?xi32>) {
      %r = attn.capture_search %offsets[], %i : tensor<?xi32>
      %s = attn.capture_search %offsets[], %j : tensor<?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      attn.yield %same : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
