// RUN: attn-opt %s --warp-buffer | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: attn-opt %s --warp-buffer="depth=1" --cse | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: attn-opt %s --warp-buffer="schedule=together" --cse | FileCheck %s --check-prefixes=CHECK,TOGETHER
// RUN: attn-opt %s --warp-buffer="schedule=early" --cse | FileCheck %s --check-prefixes=CHECK,EARLY
// RUN: attn-opt %s --warp-buffer="depth=3" --cse | FileCheck %s --check-prefixes=CHECK,THREE

!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!q = !warp.slot<64x64xbf16>
!tile = !warp.slot<32x64xbf16>
!s = !warp.frag<64x32xf32, acc, 4>
!o = !warp.frag<64x64xf32, acc, 4>

// Two loops, [lo, mid) and [mid, hi), are one chain.
// CHECK-LABEL: @chain(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: memref<{{[^%]*}}, %[[K:[a-z0-9]*]]: memref<{{[^%]*}}, %[[V:[a-z0-9]*]]: memref<{{[^%]*}}, %[[OUT:[a-z0-9]*]]: memref<{{[^%]*}}, %[[NX:[a-z0-9]*]]: index, %[[LO:[a-z0-9]*]]: index, %[[MID:[a-z0-9]*]]: index, %[[HI:[a-z0-9]*]]: index)
func.func @chain(%q: !view, %k: !view, %v: !view, %out: !view, %nx: index,
                 %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @chain blocks(%x, %h, %b) in (%nx, %nx, %nx) warps(4) stages(2) {
    // OWN-DAG: %[[QR:.*]] = warp.ring : <1, 64x64xbf16>
    // OWN-DAG: %[[KR:.*]] = warp.ring : <2, 32x64xbf16>
    // OWN-DAG: %[[VR:.*]] = warp.ring : <2, 32x64xbf16>
    // OWN-NOT: warp.alloc
    // OWN-NOT: warp.copy %
    // ONE-COUNT-3: warp.ring : <1,
    // THREE-COUNT-2: warp.ring : <3,
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %vs = warp.alloc : !tile
    warp.copy %q[%b, %h, %x, %c0] to %qs : !view, !q
    %qf = warp.load_frag %qs : !q -> !warp.frag<64x64xbf16, a, 4>
    %s0 = warp.splat %zero : !s
    %o0 = warp.splat %zero : !o
    // Q, K and V of the first block are in flight together.
    // OWN: warp.copy_async %[[Q]][%{{.*}}] to %[[QR]][%[[ITEM0:.*]]] : memref
    // OWN: %[[SOME:.*]] = arith.cmpi slt, %[[LO]], %[[HI]]
    // OWN: %[[ROW:.*]] = arith.muli %[[LO]], %{{.*}}
    // OWN: warp.copy_async %[[K]][%{{.*}}, %{{.*}}, %[[ROW]], %{{.*}}] to %{{.*}}[%[[LO]]] when %[[SOME]]
    // OWN: warp.copy_async %[[V]][%{{.*}}] to %{{.*}}[%[[LO]]] when
    // OWN-NOT: warp.copy_async
    // OWN: %[[QT:.*]] = warp.await %[[QR]][%[[ITEM0]]]
    // OWN-NEXT: %[[QF:.*]] = warp.load_frag %[[QT]]
    // OWN-NEXT: warp.release %[[QT]]
    // OWN-NEXT: scf.for %[[N:.*]] = %[[LO]] to %[[MID]]

    // Depth 1: the key tile only; the value tile follows after its await.
    // ONE: warp.copy_async %[[Q]]
    // ONE: warp.copy_async %[[K]]
    // ONE-NOT: warp.copy_async
    // ONE: scf.for %[[N:.*]] = %[[LO]] to %[[MID]]

    // Early, depth 2: two key tiles, one value tile.
    // EARLY: warp.copy_async %[[Q]]
    // EARLY: warp.copy_async %[[K]]
    // EARLY: warp.copy_async %[[V]]
    // EARLY: warp.copy_async %[[K]]
    // EARLY-NOT: warp.copy_async
    // EARLY: scf.for %[[N:.*]] = %[[LO]] to %[[MID]]

    // THREE: warp.copy_async %[[Q]]
    // THREE: warp.copy_async %[[K]]
    // THREE: warp.copy_async %[[V]]
    // THREE: warp.copy_async %[[K]]
    // THREE: warp.copy_async %[[V]]
    // THREE-NOT: warp.copy_async
    // THREE: scf.for %[[N:.*]] = %[[LO]] to %[[MID]]
    %first = scf.for %n = %lo to %mid step %c1 iter_args(%o = %o0) -> (!o) {
      %row = arith.muli %n, %c32 : index
      warp.copy %k[%b, %h, %row, %c0] to %ks : !view, !tile
      // OWN: %[[KT:.*]] = warp.await %[[KRING:.*]][%[[N]]]
      // OWN-NEXT: %[[C1:.*]] = arith.constant 1 : index
      // OWN-NEXT: %[[NEXT:.*]] = arith.addi %[[N]], %[[C1]]
      // OWN-NEXT: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[HI]]
      // OWN-NEXT: %[[NROW:.*]] = arith.muli %[[NEXT]], %{{.*}}
      // OWN-NEXT: warp.copy_async %[[K]][%{{.*}}, %{{.*}}, %[[NROW]], %{{.*}}] to %[[KRING]][%[[NEXT]]] when %[[MORE]]
      // OWN-NEXT: %[[S:.*]] = warp.mma mma_sync %[[QF]], %[[KT]], %{{.*}} transpose_b
      // OWN-NEXT: warp.release %[[KT]]

      // ONE: %[[KT:.*]] = warp.await %[[KR:.*]][%[[N]]]
      // ONE-NEXT: arith.muli
      // ONE-NEXT: warp.copy_async %[[V]][%{{.*}}] to %[[VR:.*]][%[[N]]] : memref
      // ONE-NEXT: warp.mma mma_sync %{{.*}}, %[[KT]]
      // ONE-NEXT: warp.release %[[KT]]
      // ONE-NEXT: %[[VT:.*]] = warp.await %[[VR]][%[[N]]]
      // ONE: warp.copy_async %[[K]][%{{.*}}] to %[[KR]][%{{.*}}] when
      // ONE-NEXT: math.exp2

      // EARLY: %[[KT:.*]] = warp.await %[[KR:.*]][%[[N]]]
      // EARLY: %[[NEXT:.*]] = arith.addi %[[N]], %c1
      // EARLY: warp.copy_async %[[V]][%{{.*}}] to %[[VR:.*]][%[[NEXT]]] when
      // EARLY: warp.release %[[KT]]
      // EARLY-NEXT: warp.await %[[VR]][%[[N]]]
      // EARLY: %[[AFTER:.*]] = arith.addi %[[N]], %c2
      // EARLY: warp.copy_async %[[K]][%{{.*}}] to %[[KR]][%[[AFTER]]] when
      // EARLY-NEXT: math.exp2

      // TOGETHER: scf.for
      // TOGETHER-NEXT: warp.await
      // TOGETHER-NEXT: warp.await
      // TOGETHER: warp.copy_async %[[K]]
      // TOGETHER-NEXT: warp.copy_async %[[V]]
      // TOGETHER-NEXT: warp.mma
      // TOGETHER-NEXT: warp.release
      // TOGETHER-NOT: warp.await
      // TOGETHER: math.exp2

      // THREE: warp.await
      // THREE: arith.addi %[[N]], %c2
      // THREE: warp.copy_async
      %s = warp.mma mma_sync %qf, %ks, %s0 transpose_b : !warp.frag<64x64xbf16, a, 4>, !tile, !s
      %p = math.exp2 %s : !s
      %pt = warp.cast truncf %p : !s to !warp.frag<64x32xbf16, acc, 4>
      warp.copy %v[%b, %h, %row, %c0] to %vs : !view, !tile
      %pa = warp.convert %pt : !warp.frag<64x32xbf16, acc, 4> -> !warp.frag<64x32xbf16, a, 4>
      // OWN: %[[VT:.*]] = warp.await %[[VRING:.*]][%[[N]]]
      // OWN: warp.copy_async %[[V]][%{{.*}}] to %[[VRING]][%{{.*}}] when
      // OWN: warp.mma mma_sync %{{.*}}, %[[VT]]
      // OWN-NEXT: warp.release %[[VT]]
      %o2 = warp.mma mma_sync %pa, %vs, %o : !warp.frag<64x32xbf16, a, 4>, !tile, !o
      scf.yield %o2 : !o
    }
    // The second loop goes on in the same rings, to the same end.
    // OWN: scf.for %[[M:.*]] = %[[MID]] to %[[HI]]
    // OWN: warp.await %[[KRING]][%[[M]]]
    // OWN: %[[NEXT2:.*]] = arith.addi %[[M]],
    // OWN: arith.cmpi slt, %[[NEXT2]], %[[HI]]
    // OWN: warp.copy_async %[[K]][%{{.*}}] to %[[KRING]][%[[NEXT2]]] when
    // OWN: warp.await %[[VRING]][%[[M]]]
    // OWN: warp.copy_async %[[V]]
    %second = scf.for %n = %mid to %hi step %c1 iter_args(%o = %first) -> (!o) {
      %row = arith.muli %n, %c32 : index
      warp.copy %k[%b, %h, %row, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qf, %ks, %s0 transpose_b : !warp.frag<64x64xbf16, a, 4>, !tile, !s
      %pt = warp.cast truncf %s : !s to !warp.frag<64x32xbf16, acc, 4>
      warp.copy %v[%b, %h, %row, %c0] to %vs : !view, !tile
      %pa = warp.convert %pt : !warp.frag<64x32xbf16, acc, 4> -> !warp.frag<64x32xbf16, a, 4>
      %o2 = warp.mma mma_sync %pa, %vs, %o : !warp.frag<64x32xbf16, a, 4>, !tile, !o
      scf.yield %o2 : !o
    }
    %ot = warp.cast truncf %second : !o to !warp.frag<64x64xbf16, acc, 4>
    warp.store %ot, %out[%b, %h, %x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !view
  }
  return
}

// The query tile is read in the loop: released after it.
// CHECK-LABEL: @query_in_shared_memory(
func.func @query_in_shared_memory(%q: !view, %k: !view, %v: !view, %nx: index,
                                  %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @query_in_shared_memory blocks(%x, %h, %b) in (%nx, %nx, %nx) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %vs = warp.alloc : !tile
    warp.copy %q[%b, %h, %x, %c0] to %qs : !view, !q
    %s0 = warp.splat %zero : !s
    // OWN: %[[QT:.*]] = warp.await
    // OWN-NEXT: scf.for
    // OWN: warp.mma mma_sync %[[QT]]
    // OWN: }
    // OWN-NEXT: warp.release %[[QT]]
    scf.for %n = %c0 to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
      warp.copy %v[%b, %h, %n, %c0] to %vs : !view, !tile
      %t = warp.mma mma_sync %qs, %vs, %s transpose_b : !q, !tile, !s
    }
  }
  return
}

// The block's number may be read from a list, at an index with an upper bound.
// OWN-LABEL: @listed_blocks(
// OWN: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
// OWN: warp.await %[[K:.*]][%[[T]]]
// OWN: %[[AHEAD:.*]] = arith.minsi
// OWN: %[[N:.*]] = memref.load %{{.*}}[%[[AHEAD]]]
// OWN: warp.copy_async %{{.*}}[%{{.*}}, %{{.*}}, %[[N]], %{{.*}}] to %[[K]]
func.func @listed_blocks(%k: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %hi: index, %list: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @listed_blocks blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !warp.slot<64x128xbf16>
    %ks = warp.alloc : !warp.slot<64x128xbf16>
    %s0 = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    scf.for %t = %c0 to %hi step %c1 {
      %at = arith.minsi %t, %hi : index
      %row = memref.load %list[%at] : memref<?xindex>
      warp.copy %k[%b, %h, %row, %c0] to %ks : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, !warp.slot<64x128xbf16>
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !warp.slot<64x128xbf16>, !warp.slot<64x128xbf16>, !warp.frag<64x64xf32, acc, 4>
    }
  }
  return
}

// With more than two rings the warps meet once per step.
// CHECK-LABEL: @three_rings(
// OWN: scf.for
// OWN-NEXT: warp.await
// OWN-NEXT: warp.await
// OWN-NEXT: warp.await
// OWN: warp.copy_async
// OWN: warp.copy_async
// OWN: warp.copy_async
// OWN: warp.mma
// OWN-NOT: warp.await
// OWN: return
func.func @three_rings(%q: !view, %k: !view, %v: !view, %out: !view, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @three_rings blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %vs = warp.alloc : !tile
    %ts = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    %o0 = warp.splat %zero : !o
    %sum = scf.for %n = %c0 to %hi step %c1 iter_args(%o = %o0) -> (!o) {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
      warp.copy %v[%b, %h, %n, %c0] to %vs : !view, !tile
      %t = warp.mma mma_sync %qs, %vs, %s transpose_b : !q, !tile, !s
      %pt = warp.cast truncf %t : !s to !warp.frag<64x32xbf16, acc, 4>
      %pa = warp.convert %pt : !warp.frag<64x32xbf16, acc, 4> -> !warp.frag<64x32xbf16, a, 4>
      warp.copy %q[%b, %h, %n, %c0] to %ts : !view, !tile
      %o2 = warp.mma mma_sync %pa, %ts, %o : !warp.frag<64x32xbf16, a, 4>, !tile, !o
      scf.yield %o2 : !o
    }
    %ot = warp.cast truncf %sum : !o to !warp.frag<64x64xbf16, acc, 4>
    warp.store %ot, %out[%b, %h, %x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !view
  }
  return
}
