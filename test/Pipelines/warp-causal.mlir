// Causal attention from tensors to a placed warp kernel.
// RUN: attn-opt %s --attn-to-tile="target=sm_80 reverse-keys=false lazy-max=false" --convert-tile-to-warp \
// RUN:   --warp-defer-sum --warp-buffer --cse --warp-assign-resources \
// RUN:   --remarks-filter=warp 2>&1 | FileCheck %s

// CHECK-NOT: remark
// CHECK-LABEL: func.func @causal(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<{{[^%]*}}, %[[K:[a-z0-9]+]]: memref<{{[^%]*}}, %[[V:[a-z0-9]+]]: memref<{{[^%]*}}, %[[O:[a-z0-9]+]]: memref<{{[^%]*}}, %[[LSE:[a-z0-9]+]]: memref<
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                  %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  // CHECK: warp.kernel @{{.*}} blocks(%{{.*}}) in (%{{.*}}) warps(4) stages(2) shared(98304) {
  // CHECK-NEXT: %[[QR:.*]] = warp.ring at 0 : <1, 128x128xbf16>
  // CHECK-NEXT: %[[KR:.*]] = warp.ring at 32768 : <2, 64x128xbf16>
  // CHECK-NEXT: %[[VR:.*]] = warp.ring at 65536 : <2, 64x128xbf16>

  // The first tiles of all three in flight.
  // CHECK: warp.copy_async %[[Q]][{{.*}}] to %[[QR]]
  // CHECK: warp.copy_async %[[K]][{{.*}}] to %[[KR]]
  // CHECK: warp.copy_async %[[V]][{{.*}}] to %[[VR]]
  // CHECK: %[[QT:.*]] = warp.await %[[QR]]

  // Blocks that every row of the tile sees: no coordinates, no mask.
  // CHECK: %[[FULL:.*]]:3 = scf.for %[[N:.*]] = %{{.*}} to %[[MID:.*]] step
  // CHECK-SAME: -> (!warp.frag<128x128xf32, acc, 4>, !warp.frag<128x1xf32, acc, 4>, !warp.frag<128x4xf32, acc, 4>)
  // CHECK-NOT: warp.coords
  // CHECK: %[[KT:.*]] = warp.await %[[KR]][%[[N]]]
  // CHECK: warp.copy_async %[[K]][{{.*}}] to %[[KR]][%[[NEXT:.*]]] when
  // CHECK-NEXT: %[[S:.*]] = warp.mma mma_sync %[[QT]], %[[KT]], %{{.*}} transpose_b
  // CHECK-NEXT: warp.release %[[KT]]
  // CHECK-NEXT: warp.reduce <max> %[[S]]
  // CHECK: scf.if
// CHECK: arith.subf %[[S]]
// CHECK: math.fma
  // CHECK: %[[P:.*]] = math.exp2 {{.*}} : !warp.frag<128x64xf32, acc, 4>
  // CHECK: %[[C:.*]] = math.exp2 {{.*}} : !warp.frag<128x1xf32, acc, 4>
  // CHECK: warp.reduce <add> %[[P]] : <128x64xf32, acc, 4> -> <128x4xf32, acc, 4>
  // CHECK: %[[VT:.*]] = warp.await %[[VR]][%[[N]]]
  // CHECK: warp.copy_async %[[V]][{{.*}}] to %[[VR]][%[[NEXT]]] when
  // CHECK-NEXT: %[[PT:.*]] = warp.cast truncf %[[P]]
  // CHECK: %[[PA:.*]] = warp.convert %[[PT]]
  // CHECK-NEXT: warp.mma mma_sync %[[PA]], %[[VT]]
  // CHECK-NEXT: warp.release %[[VT]]
  // CHECK: scf.yield

  // Blocks on the diagonal, in the same rings.
  // CHECK: %[[DIAGONAL:.*]]:3 = scf.for %[[M:.*]] = %[[MID]] to %{{.*}} iter_args(%{{.*}} = %[[FULL]]#0, %{{.*}} = %[[FULL]]#1, %{{.*}} = %[[FULL]]#2)
  // CHECK: warp.await %[[KR]][%[[M]]]
  // CHECK: warp.copy_async %[[K]]
  // CHECK: warp.select
  // CHECK: warp.await %[[VR]][%[[M]]]
  // CHECK: warp.copy_async %[[V]]
  // CHECK: scf.yield
  // CHECK: warp.release %[[QT]]

  // CHECK: %[[L:.*]] = warp.reduce <add> %[[DIAGONAL]]#2 : <128x4xf32, acc, 4> -> <128x1xf32, acc, 4>
  // CHECK: warp.store %{{.*}}, %[[O]][{{.*}}] : <128x128xbf16, acc, 4>
  // CHECK: math.log %[[L]]
  // CHECK: warp.store %{{.*}}, %[[LSE]][{{.*}}] rows : <128x1xf32, acc, 4>
  %o, %lse = attn.attention %q, %k, %v {
      variants = [#attn.causal],
      plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2>}
      : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
        -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
