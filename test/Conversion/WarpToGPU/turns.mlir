// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --gpu-share-warp-number --canonicalize --cse | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!acc = !warp.frag<192x64xf32, acc, 12>
!a = !warp.frag<192x64xbf16, a, 12>

// Three groups, with the named barriers 1, 2 and 3. The last one lets the first
// begin. A group waits at its own, with one other: 256 threads; then the next
// one may, and after the last the first again.
// CHECK-LABEL: gpu.func @three
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
// CHECK: %[[GROUP:.*]] = arith.divui %[[WARP]], %c4_i32
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[GROUP]], %c2_i32
// CHECK: scf.if %[[IS_LAST]]
// CHECK-NEXT: "bar.arrive $0, $1;", "r,r,~{memory}" %c1_i32, %c256_i32
// CHECK: %[[OWN:.*]] = arith.addi %[[GROUP]], %c1_i32
// CHECK: nvvm.barrier id = %[[OWN]] number_of_threads = %c256_i32
// CHECK: wgmma.mma_async
// CHECK: %[[AFTER:.*]] = arith.addi %[[GROUP]], %c2_i32
// CHECK: %[[NEXT:.*]] = arith.select %[[IS_LAST]], %c1_i32, %[[AFTER]]
// CHECK: "bar.arrive $0, $1;", "r,r,~{memory}" %[[NEXT]], %c256_i32
// CHECK: wgmma.wait_group
func.func @three(%n: index, %v: !view, %old: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @three blocks(%x, %h, %b) in (%n, %c1, %c1) warps(16) shared(8208) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %c0] to %r[%c0] by tma : !view, !ring
    }
    warp.role @softmax compute warps(12) registers(160) {
      %one = arith.constant 1.0 : bf16
      %a = warp.splat %one : !a
      %acc = warp.splat %old : !acc
      %s = warp.await %r[%c0] : !ring -> !tile
      %p = warp.turn {
        %q = warp.mma_async wgmma %a, %s, %acc : !a, !tile, !acc
        warp.yield %q : !warp.pending<192x64xf32, acc, 12>
      } : !warp.pending<192x64xf32, acc, 12>
      %o = warp.wait %p : !warp.pending<192x64xf32, acc, 12>
      warp.release %s : !tile
    }
  }
  return
}
