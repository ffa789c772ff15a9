// Random numbers are computed one element after the other: after the last
// product of an element's chain comes its selection, and then the next chain.
// RUN: attn-opt %s --attn-to-tile="target=sm_90a plan='#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>'" --cse --convert-tile-to-warp --warp-assign-resources=shared-limit=232448 --canonicalize --cse --convert-warp-to-gpu=chip=sm_90a --gpu-order-integers | FileCheck %s
// A mask is few integers: they stay in the order of the fragments.
// RUN: attn-opt %s --attn-to-tile="target=sm_90a plan='#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>'" --cse --convert-tile-to-warp --warp-assign-resources=shared-limit=232448 --canonicalize --cse --convert-warp-to-gpu=chip=sm_90a --gpu-order-integers | FileCheck %s --check-prefix=MASK
// RUN: attn-opt %s --attn-to-tile="target=sm_90a plan='#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>'" --cse --convert-tile-to-warp --warp-assign-resources=shared-limit=232448 --canonicalize --cse --convert-warp-to-gpu=chip=sm_90a --gpu-order-integers | FileCheck %s --check-prefix=TRUTHS

!t = tensor<1x1x?x16xbf16>
!lse = tensor<1x1x?xf32>

// CHECK-LABEL: gpu.func @dropout
// CHECK: scf.for
// The words of the first element, its test, what it keeps; the next.
// CHECK: arith.muli {{.*}} : i64
// CHECK: %[[KEEP:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT: arith.select %[[KEEP]]
// CHECK: arith.muli {{.*}} : i64
// CHECK: %[[KEEP:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT: arith.select %[[KEEP]]
func.func @dropout(%q: !t, %k: !t, %seed: i32, %offset: i32) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %k dropout(%seed, %offset) {dropout_p = 0.1 : f64}
    : (!t, !t, !t, i32, i32) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// MASK-LABEL: gpu.func @mask
// MASK: scf.for
// MASK: arith.remsi
// MASK-NEXT: arith.remsi
func.func @mask(%q: !t, %k: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.muli %i, %j : i32
      %c3 = arith.constant 3 : i32
      %r = arith.remsi %d, %c3 : i32
      %c0 = arith.constant 0 : i32
      %m = arith.cmpi eq, %r, %c0 : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// What lanes gather is compared before they gather more, beside random numbers,
// too.
// TRUTHS-LABEL: gpu.func @links
// TRUTHS: scf.for
// TRUTHS: scf.if
// TRUTHS-COUNT-32: arith.cmpi eq, {{.*}} : i64
// TRUTHS: scf.if
// TRUTHS-COUNT-32: arith.cmpi eq, {{.*}} : i64
// TRUTHS: arith.ori {{.*}} : i1
// TRUTHS: scf.if
// TRUTHS: arith.cmpi eq, {{.*}} : i64
// TRUTHS-NEXT: arith.ori {{.*}} : i1
func.func @links(%q: !t, %k: !t, %links: tensor<?x3xi64>, %seed: i32, %offset: i32) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %k dropout(%seed, %offset) captures(%links) {dropout_p = 0.1 : f64}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %l: tensor<?x3xi64>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %own = attn.capture_load %l[%i, %c0] : tensor<?x3xi64>
      %first = attn.capture_load %l[%j, %c0] : tensor<?x3xi64>
      %is_first = arith.cmpi eq, %own, %first : i64
      %second = attn.capture_load %l[%j, %c1] : tensor<?x3xi64>
      %is_second = arith.cmpi eq, %own, %second : i64
      %either = arith.ori %is_first, %is_second : i1
      %third = attn.capture_load %l[%j, %c2] : tensor<?x3xi64>
      %is_third = arith.cmpi eq, %own, %third : i64
      %m = arith.ori %either, %is_third : i1
      attn.yield %m : i1
    } : (!t, !t, !t, i32, i32, tensor<?x3xi64>) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
