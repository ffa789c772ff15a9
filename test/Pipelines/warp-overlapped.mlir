// Causal attention from tensors to a placed warp kernel for sm_90a, with every
// schedule pass; and without each of them: less structure, the same program.
// DEFINE: %{plan} = plan='#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>'
// RUN: attn-opt %s --attn-to-tile="target=sm_90a %{plan} reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-specialize --warp-make-async --warp-insert-turns --cse --warp-assign-resources=shared-limit=232448 | FileCheck %s
// RUN: attn-opt %s --attn-to-tile="target=sm_90a %{plan} reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-specialize --warp-make-async --cse --warp-assign-resources=shared-limit=232448 | FileCheck %s --check-prefix=NOTURNS
// RUN: attn-opt %s --attn-to-tile="target=sm_90a %{plan} reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-specialize --cse --warp-assign-resources=shared-limit=232448 | FileCheck %s --check-prefix=SYNC
// RUN: attn-opt %s --attn-to-tile="target=sm_90a %{plan} reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-make-async --warp-insert-turns --cse --warp-assign-resources=shared-limit=232448 | FileCheck %s --check-prefix=ONEROLE
// RUN: attn-opt %s --attn-to-tile="target=sm_90a %{plan} overlap-products=false reverse-keys=false group-bounds=false lazy-max=false" --convert-tile-to-warp --warp-defer-sum --warp-specialize --warp-make-async --warp-insert-turns --cse --warp-assign-resources=shared-limit=232448 | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @causal(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<{{[^%]*}}, %[[K:[a-z0-9]+]]: memref<{{[^%]*}}, %[[V:[a-z0-9]+]]: memref<{{[^%]*}}, %[[O:[a-z0-9]+]]: memref<{{[^%]*}}, %[[LSE:[a-z0-9]+]]: memref<
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                  %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  // 32768 + 2 * 32768 + 2 * 32768 bytes of tiles, 5 * 16 of barriers.
  // CHECK: warp.kernel @{{.*}} blocks(%{{.*}}) in (%{{.*}}) warps(12) stages(2) shared(163920) {
  // CHECK-NEXT: %[[QR:.*]] = warp.ring fills(@load) drains(@softmax) at 0 : <1, 128x128xbf16, panels<128>>
  // CHECK-NEXT: %[[KR:.*]] = warp.ring fills(@load) drains(@softmax) at 32768 : <2, 128x128xbf16, panels<128>>
  // CHECK-NEXT: %[[VR:.*]] = warp.ring fills(@load) drains(@softmax) at 98304 : <2, 128x128xbf16, panels<128>>

  // CHECK: warp.role @load copy warps(4) registers(40) {
  // CHECK: warp.copy_async %[[K]][{{.*}}] to %[[KR]]
  // CHECK: warp.copy_async %[[Q]][{{.*}}] to %[[QR]]
  // CHECK: scf.for
  // CHECK: warp.copy_async %[[K]][{{.*}}] to %[[KR]]
  // CHECK: warp.copy_async %[[V]][{{.*}}] to %[[VR]]
  // CHECK: scf.for
  // CHECK: warp.copy_async %[[K]][{{.*}}] to %[[KR]]
  // CHECK: warp.copy_async %[[V]][{{.*}}] to %[[VR]]
  // CHECK: warp.copy_async %[[V]][{{.*}}] to %[[VR]]
  // CHECK-NOT: warp.copy

  // CHECK: warp.role @softmax compute warps(8) registers(232) {
  // CHECK: %[[QT:.*]] = warp.await %[[QR]]
  // CHECK: scf.for {{.*}} -> (!warp.frag<128x128xf32, acc, 8>, !warp.frag<128x1xf32, acc, 8>, !warp.frag<128x4xf32, acc, 8>, !warp.frag<128x128xbf16, acc, 8>, index, index)
  // CHECK-NOT: warp.coords
  // CHECK: %[[KT:.*]] = warp.await %[[KR]]
  // CHECK: %[[P:.*]] = warp.convert
  // CHECK: %[[T:.*]]:3 = warp.turn {
  // CHECK-NEXT: warp.mma_async wgmma %[[QT]], %[[KT]], %{{.*}} transpose_b
  // CHECK-NEXT: %[[VT:.*]] = warp.await %[[VR]]
  // CHECK-NEXT: warp.mma_async wgmma %[[P]], %[[VT]]
  // CHECK-NEXT: warp.yield
  // CHECK: %[[S:.*]] = warp.wait %[[T]]#0
  // CHECK-NEXT: warp.release %[[KT]]
  // CHECK-NEXT: warp.reduce <max> %[[S]]
  // CHECK: math.exp2
  // CHECK-NOT: warp.cast
  // CHECK: %[[OT:.*]] = warp.wait %[[T]]#2
  // CHECK-NEXT: warp.release %[[T]]#1
  // CHECK-NEXT: warp.cast
  // CHECK: arith.mulf %[[OT]]
  // CHECK-NEXT: scf.yield
  // The mask of the diagonal is made when the scores are there.
  // CHECK: scf.for
  // CHECK: warp.turn {
  // CHECK: %[[S2:.*]] = warp.wait
  // CHECK: %[[M:.*]] = arith.cmpi slt
  // CHECK: warp.select %[[M]], %[[S2]]
  // CHECK: warp.release %[[QT]]
  // CHECK: warp.store

  // NOTURNS-NOT: warp.turn
  // NOTURNS: warp.role @load copy
  // NOTURNS: warp.mma_async
  // NOTURNS-NOT: warp.turn

  // SYNC: warp.role @softmax compute
  // SYNC-NOT: {{warp.turn|mma_async}}
  // SYNC: warp.mma
  // SYNC-NOT: {{warp.turn|mma_async}}

  // ONEROLE-NOT: {{warp.role|warp.turn}}
  // ONEROLE: warp.kernel {{.*}} warps(8)
  // ONEROLE: warp.copy
  // ONEROLE: warp.mma_async
  // ONEROLE-NOT: {{warp.role|warp.turn}}

  // PLAIN: warp.role @softmax compute
  // PLAIN-NOT: warp.turn
  // PLAIN: scf.for
  // PLAIN: warp.mma_async wgmma {{.*}} transpose_b
  // PLAIN: warp.wait
  // PLAIN: warp.mma_async
  // PLAIN: warp.wait
  // PLAIN: scf.yield
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
