// RUN: attn-opt %s --warp-delay-exchange | FileCheck %s
// RUN: attn-opt %s --warp-delay-exchange=shared-limit=60000 --remarks-filter=warp-delay-exchange -o %t 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: attn-opt %s --warp-delay-exchange --warp-make-async | FileCheck %s --check-prefix=ASYNC
// RUN: attn-opt %s --warp-delay-exchange --warp-make-async --warp-insert-turns --remarks-filter=warp-insert-turns -o %t.mlir 2>&1 | FileCheck %s --check-prefix=TURNS
// RUN: FileCheck %s --check-prefix=ASYNC --implicit-check-not=warp.turn < %t.mlir

!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!out = memref<?x?x?x64xf32>
!sums = memref<?x?x?x4096xf32>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!one = !warp.ring<1, 128x64xbf16, panels<128>>
!wide = !warp.slot<128x64xbf16, panels<128>>
!acc = !warp.frag<128x64xf32, acc, 8>
!h = !warp.frag<128x64xbf16, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>
!part = !warp.frag<64x64xf32, acc, 8>

// In each of two loops the sum is that of the block before, and is left out of
// the first step; the last tile is read after the loops. What a step makes is
// stored before its products.
// CHECK-LABEL: func.func @delayed
// CHECK: %[[DS:.*]] = warp.ring fills(@math) drains(@math) : <2, 128x64xbf16, panels<128>>
// CHECK: warp.role @math
// CHECK: %[[NOTHING:.*]] = warp.splat %{{.*}} : <128x64xbf16, acc, 8>
// CHECK: warp.store_frag %[[NOTHING]] to %[[DS]][%c0]
// CHECK: %[[FIRST:.*]]:4 = scf.for %[[N:[a-z0-9]+]] = %{{.*}} iter_args(%{{.*}}, %{{.*}}, %[[J:[a-z0-9]+]] = %c0, %[[LAST:[a-z0-9]+]] = %c-1) -> (!warp.frag<128x64xf32, acc, 8>, index, index, index)
// CHECK: %[[S:[0-9]+]] = warp.mma wgmma %[[KEY:[0-9]+]], %{{.*}} transpose_b
// CHECK: %[[D:.*]] = warp.cast truncf %[[S]]
// CHECK: arith.addi %[[J]], %{{.*}} : index
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %{{.*}} : index
// CHECK-NEXT: warp.store_frag %[[D]] to %[[DS]][%[[NEXT]]]
// CHECK-NEXT: %[[TILE:.*]] = warp.await %[[DS]][%[[J]]]
// CHECK-NEXT: %[[PART:.*]] = warp.mma wgmma %[[TILE]], %[[KEY]], %{{.*}} transpose_a
// CHECK-NEXT: warp.release %[[TILE]]
// CHECK: warp.mma wgmma
// CHECK: %[[EXISTS:.*]] = arith.cmpi sge, %[[LAST]]
// CHECK: scf.if %[[EXISTS]] {
// CHECK-NEXT: warp.store %[[PART]], %{{.*}}[%{{.*}}, %{{.*}}, %[[LAST]], %{{.*}}] accumulate packed
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[N]]
// CHECK: %[[SECOND:.*]]:4 = scf.for %{{.*}} iter_args(%{{.*}} = %[[FIRST]]#0, %{{.*}} = %[[FIRST]]#1, %{{.*}} = %[[FIRST]]#2, %{{.*}} = %[[FIRST]]#3)
// CHECK: %[[END:.*]] = warp.await %[[DS]][%[[SECOND]]#2]
// CHECK: %[[REST:.*]] = warp.mma wgmma %[[END]], %[[KEY]], %{{.*}} transpose_a
// CHECK-NEXT: warp.release %[[END]]
// CHECK: arith.cmpi sge, %[[SECOND]]#3
// CHECK: warp.store %[[REST]], %{{.*}}[%{{.*}}, %{{.*}}, %[[SECOND]]#3, %{{.*}}] accumulate packed

// A group issues the late product and what runs beside it, and takes no turn.
// ASYNC-LABEL: func.func @delayed
// ASYNC: warp.store_frag
// ASYNC: warp.store_frag
// ASYNC: warp.mma_async wgmma {{.*}} transpose_a
// ASYNC: warp.mma_async wgmma
// ASYNC: warp.wait
// ASYNC: scf.if
// TURNS: remark: [Missed] insert-turns {{.*}}Remark="its groups exchange tiles, and wait for each other for these"

// MISSED: remark: [Missed] delay-exchange {{.*}}a second slot would make it {{[0-9]+}} bytes of shared memory of 60000
func.func @delayed(%n: index, %lo: index, %hi: index, %q: !view, %k: !view, %sums: !sums, %out: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) {
    %Q = warp.ring fills(@load) drains(@math) : !ring
    %K = warp.ring fills(@load) drains(@math) : !one
    %DS = warp.ring fills(@math) drains(@math) : !one
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by tma : !view, !one
      %e = scf.for %i = %c0 to %lo step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %q[%b, %h, %i, %c0] to %Q[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
      %f = scf.for %i = %lo to %hi step %c1 iter_args(%item = %e) -> (index) {
        warp.copy_async %q[%b, %h, %i, %c0] to %Q[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @math compute warps(8) {
      %z = warp.splat %zero : !acc
      %zp = warp.splat %zero : !part
      %kt = warp.await %K[%c0] : !one -> !wide
      %e:3 = scf.for %i = %c0 to %lo step %c1 iter_args(%dk = %z, %item = %c0, %j = %c0) -> (!acc, index, index) {
        %qt = warp.await %Q[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %s = warp.mma wgmma %kt, %qt, %z transpose_b : !wide, !tile, !acc
        %d = warp.cast truncf %s : !acc to !h
        warp.store_frag %d to %DS[%j] : !h, !one
        %t = warp.await %DS[%j] : !one -> !wide
        %later = arith.addi %j, %c1 : index
        %p = warp.mma wgmma %t, %kt, %zp transpose_a : !wide, !wide, !part
        warp.release %t : !wide
        %a = warp.convert %d : !h -> !a
        %dk1 = warp.mma wgmma %a, %qt, %dk : !a, !tile, !acc
        warp.release %qt : !tile
        warp.store %p, %sums[%b, %h, %i, %c0] accumulate packed : !part, !sums
        scf.yield %dk1, %next, %later : !acc, index, index
      }
      %f:3 = scf.for %i = %lo to %hi step %c1 iter_args(%dk = %e#0, %item = %e#1, %j = %e#2) -> (!acc, index, index) {
        %qt = warp.await %Q[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %s = warp.mma wgmma %kt, %qt, %z transpose_b : !wide, !tile, !acc
        %d = warp.cast truncf %s : !acc to !h
        warp.store_frag %d to %DS[%j] : !h, !one
        %t = warp.await %DS[%j] : !one -> !wide
        %later = arith.addi %j, %c1 : index
        %p = warp.mma wgmma %t, %kt, %zp transpose_a : !wide, !wide, !part
        warp.release %t : !wide
        %a = warp.convert %d : !h -> !a
        %dk1 = warp.mma wgmma %a, %qt, %dk : !a, !tile, !acc
        warp.release %qt : !tile
        warp.store %p, %sums[%b, %h, %i, %c0] accumulate packed : !part, !sums
        scf.yield %dk1, %next, %later : !acc, index, index
      }
      warp.release %kt : !wide
      warp.store %f#0, %out[%b, %h, %x, %c0] : !acc, !out
    }
  }
  return
}

// What is computed of the tile is needed in the step.
// CHECK-LABEL: func.func @needed
// CHECK: warp.ring fills(@math) drains(@math) : <1, 128x64xbf16, panels<128>>
// CHECK: warp.store_frag
// CHECK-NEXT: warp.await
// MISSED: remark: [Missed] delay-exchange {{.*}}what is computed of the tile is not added to memory alone
func.func @needed(%n: index, %k: !view, %sums: !sums) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) {
    %K = warp.ring fills(@load) drains(@math) : !one
    %DS = warp.ring fills(@math) drains(@math) : !one
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by tma : !view, !one
    }
    warp.role @math compute warps(8) {
      %zp = warp.splat %zero : !part
      %nothing = arith.constant 0.0 : bf16
      %d = warp.splat %nothing : !h
      %kt = warp.await %K[%c0] : !one -> !wide
      %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dq = %zp, %j = %c0) -> (!part, index) {
        warp.store_frag %d to %DS[%j] : !h, !one
        %t = warp.await %DS[%j] : !one -> !wide
        %later = arith.addi %j, %c1 : index
        %p = warp.mma wgmma %t, %kt, %dq transpose_a : !wide, !wide, !part
        warp.release %t : !wide
        scf.yield %p, %later : !part, index
      }
      warp.release %kt : !wide
      warp.store %e#0, %sums[%b, %h, %x, %c0] accumulate packed : !part, !sums
    }
  }
  return
}
