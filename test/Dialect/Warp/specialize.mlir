// RUN: attn-opt %s --warp-specialize | FileCheck %s
// RUN: attn-opt %s --warp-specialize=depth=3 | FileCheck %s --check-prefix=THREE

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!q = !warp.slot<128x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!p = !warp.frag<128x64xbf16, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>

// One ring per operand; items are counted through the loops.
// CHECK-LABEL: @plain(
// CHECK-SAME: %[[N:.*]]: index, %[[LO:.*]]: index, %[[HI:.*]]: index, %[[QV:.*]]: memref<{{.*}}>, %[[KV:.*]]: memref<{{.*}}>, %[[VV:.*]]: memref<{{.*}}>, %[[OUT:.*]]: memref<{{.*}}>)
// THREE-LABEL: @plain(
func.func @plain(%n: index, %lo: index, %hi: index, %q: !view, %k: !view, %v: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: warp.kernel @{{.*}} blocks(%[[X:.*]], %[[H:.*]], %[[B:.*]]) in ({{.*}}) warps(12) stages(2) {
  warp.kernel @plain blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    // CHECK-NEXT: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
    // CHECK-NEXT: %[[K:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
    // CHECK-NEXT: %[[V:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
    // THREE: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
    // THREE-NEXT: warp.ring fills(@load) drains(@softmax) : <3, 64x128xbf16, panels<128>>
    // THREE-NEXT: warp.ring fills(@load) drains(@softmax) : <3, 64x128xbf16, panels<128>>
    %qs = warp.alloc : !q
    %ks = warp.alloc : !t
    %vs = warp.alloc : !t
    // Scalars are computed once, for both roles.
    // CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[X]], %{{.*}} : index
    %row = arith.muli %x, %c128 : index
    // CHECK-NEXT: warp.role @load copy warps(4) registers(40) {
    // CHECK-NEXT:   %[[C0:.*]] = arith.constant 0 : index
    // CHECK-NEXT:   warp.copy_async %[[QV]][%[[B]], %[[H]], %[[ROW]], %{{.*}}] to %[[Q]][%[[C0]]] by tma
    // CHECK-NEXT:   scf.for %[[I:.*]] = %[[LO]] to %[[HI]] step %{{.*}} iter_args(%[[KN:.*]] = %[[C0]]) -> (index) {
    // CHECK-NEXT:     %[[KR:.*]] = arith.muli %[[I]], %{{.*}} : index
    // CHECK-NEXT:     warp.copy_async %[[KV]][%[[B]], %[[H]], %[[KR]], %{{.*}}] to %[[K]][%[[KN]]] by tma
    // CHECK-NEXT:     %[[C1:.*]] = arith.constant 1 : index
    // CHECK-NEXT:     %[[KN1:.*]] = arith.addi %[[KN]], %[[C1]] : index
    // CHECK-NEXT:     warp.copy_async %[[VV]][%[[B]], %[[H]], %[[KR]], %{{.*}}] to %[[V]][%[[KN]]] by tma
    // CHECK:          scf.yield %[[KN1]] : index
    // CHECK-NEXT:   }
    // CHECK-NEXT: }
    // CHECK-NEXT: warp.role @softmax compute warps(8) registers(232) {
    warp.copy %q[%b, %h, %row, %c0] to %qs : !view, !q
    %zs = warp.splat %zero : !s
    %zo = warp.splat %zero : !o
    // CHECK:   %[[QT:.*]] = warp.await %[[Q]][%{{.*}}]
    // CHECK:   %[[R:.*]]:2 = scf.for %[[J:.*]] = %[[LO]] to %[[HI]] step %{{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[KM:.*]] = %{{.*}}) -> (!warp.frag<128x128xf32, acc, 8>, index)
    %r = scf.for %i = %lo to %hi step %c1 iter_args(%o = %zo) -> (!o) {
      %kr = arith.muli %i, %c64 : index
      warp.copy %k[%b, %h, %kr, %c0] to %ks : !view, !t
      // CHECK:   %[[KT:.*]] = warp.await %[[K]][%[[KM]]]
      // CHECK:   %[[S:.*]] = warp.mma wgmma %[[QT]], %[[KT]], %{{.*}} transpose_b
      // CHECK-NEXT:   warp.release %[[KT]]
      %s = warp.mma wgmma %qs, %ks, %zs transpose_b : !q, !t, !s
      %p = warp.cast truncf %s : !s to !p
      warp.copy %v[%b, %h, %kr, %c0] to %vs : !view, !t
      %pa = warp.convert %p : !p -> !a
      // CHECK:   %[[VT:.*]] = warp.await %[[V]][%[[KM]]]
      // CHECK:   warp.mma wgmma %{{.*}}, %[[VT]], %[[O]]
      // CHECK-NEXT:   warp.release %[[VT]]
      // CHECK-NEXT:   scf.yield
      %o2 = warp.mma wgmma %pa, %vs, %o : !a, !t, !o
      scf.yield %o2 : !o
    }
    // CHECK:   warp.release %[[QT]]
    // CHECK:   warp.store
    %ob = warp.cast truncf %r : !o to !warp.frag<128x128xbf16, acc, 8>
    warp.store %ob, %out[%b, %h, %row, %c0] : !warp.frag<128x128xbf16, acc, 8>, !view
  }
  return
}

// A prologue, two loops and an epilogue share the rings of keys and values. The
// block number of the values is carried, in the producer too.
// CHECK-LABEL: @overlapped(
func.func @overlapped(%n: index, %lo: index, %mid: index, %hi: index, %q: !view, %k: !view, %v: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: warp.kernel
  warp.kernel @overlapped blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    // CHECK-NEXT: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
    // CHECK-NEXT: %[[K:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
    // CHECK-NEXT: %[[V:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
    // CHECK-NOT: warp.ring
    // CHECK-NOT: warp.alloc
    %qs = warp.alloc : !q
    %k0s = warp.alloc : !t
    %ks = warp.alloc : !t
    %vs = warp.alloc : !t
    %vls = warp.alloc : !t
    // CHECK: warp.role @load copy
    // CHECK:   warp.copy_async {{.*}} to %[[K]]
    // CHECK:   %[[KN:.*]] = arith.addi
    // CHECK:   warp.copy_async {{.*}} to %[[Q]]
    // CHECK:   %[[R1:.*]]:3 = scf.for {{.*}} iter_args(%[[VB:.*]] = %{{.*}}, %{{.*}} = %[[KN]], %{{.*}} = %{{.*}}) -> (index, index, index) {
    // CHECK:     warp.copy_async {{.*}} to %[[K]]
    // CHECK:     %[[VR:.*]] = arith.muli %[[VB]]
    // CHECK:     warp.copy_async %{{.*}}[%{{.*}}, %{{.*}}, %[[VR]], %{{.*}}] to %[[V]]
    // CHECK:   %[[R2:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[R1]]#0, %{{.*}} = %[[R1]]#1, %{{.*}} = %[[R1]]#2) -> (index, index, index) {
    // CHECK:   warp.copy_async {{.*}} to %[[V]][%[[R2]]#2]
    // CHECK-NOT: warp.copy_async
    // CHECK: warp.role @softmax compute
    warp.copy %q[%b, %h, %x, %c0] to %qs : !view, !q
    %zs = warp.splat %zero : !s
    %zo = warp.splat %zero : !o
    warp.copy %k[%b, %h, %lo, %c0] to %k0s : !view, !t
    // CHECK: warp.await %[[K]]
    // CHECK: warp.await %[[Q]]
    %s0 = warp.mma wgmma %qs, %k0s, %zs transpose_b : !q, !t, !s
    %p0 = warp.cast truncf %s0 : !s to !p
    // CHECK: scf.for
    %r:3 = scf.for %i = %lo to %mid step %c1 iter_args(%o = %zo, %p = %p0, %vb = %lo) -> (!o, !p, index) {
      %kr = arith.muli %i, %c64 : index
      warp.copy %k[%b, %h, %kr, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qs, %ks, %zs transpose_b : !q, !t, !s
      %vr = arith.muli %vb, %c64 : index
      warp.copy %v[%b, %h, %vr, %c0] to %vs : !view, !t
      %pa = warp.convert %p : !p -> !a
      %o2 = warp.mma wgmma %pa, %vs, %o : !a, !t, !o
      %p2 = warp.cast truncf %s : !s to !p
      scf.yield %o2, %p2, %i : !o, !p, index
    }
    %r2:3 = scf.for %i = %mid to %hi step %c1 iter_args(%o = %r#0, %p = %r#1, %vb = %r#2) -> (!o, !p, index) {
      %kr = arith.muli %i, %c64 : index
      warp.copy %k[%b, %h, %kr, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qs, %ks, %zs transpose_b : !q, !t, !s
      %vr = arith.muli %vb, %c64 : index
      warp.copy %v[%b, %h, %vr, %c0] to %vs : !view, !t
      %pa = warp.convert %p : !p -> !a
      %o2 = warp.mma wgmma %pa, %vs, %o : !a, !t, !o
      %e = math.exp2 %s : !s
      %p2 = warp.cast truncf %e : !s to !p
      scf.yield %o2, %p2, %i : !o, !p, index
    }
    %vr = arith.muli %r2#2, %c64 : index
    warp.copy %v[%b, %h, %vr, %c0] to %vls : !view, !t
    %pa = warp.convert %r2#1 : !p -> !a
    // CHECK: warp.await %[[V]]
    %o2 = warp.mma wgmma %pa, %vls, %r2#0 : !a, !t, !o
    %ob = warp.cast truncf %o2 : !o to !warp.frag<128x128xbf16, acc, 8>
    warp.store %ob, %out[%b, %h, %x, %c0] : !warp.frag<128x128xbf16, acc, 8>, !view
  }
  return
}

// The query goes to registers: its slot is free again at once.
// CHECK-LABEL: @query_in_registers(
func.func @query_in_registers(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @query_in_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(12) stages(2) {
    // CHECK: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <1, 192x128xbf16, panels<128>>
    %qs = warp.alloc : !warp.slot<192x128xbf16, panels<128>>
    %ks = warp.alloc : !t
    warp.copy %q[%b, %h, %x, %c0] to %qs : !view, !warp.slot<192x128xbf16, panels<128>>
    // CHECK: warp.role @softmax compute warps(12) registers(160) {
    // CHECK: %[[QT:.*]] = warp.await %[[Q]]
    // CHECK-NEXT: warp.load_frag %[[QT]]
    // CHECK-NEXT: warp.release %[[QT]]
    %qf = warp.load_frag %qs : !warp.slot<192x128xbf16, panels<128>> -> !warp.frag<192x128xbf16, a, 12>
    %zs = warp.splat %zero : !warp.frag<192x64xf32, acc, 12>
    scf.for %i = %c0 to %n step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qf, %ks, %zs transpose_b : !warp.frag<192x128xbf16, a, 12>, !t, !warp.frag<192x64xf32, acc, 12>
    }
  }
  return
}

// A slot that lanes read goes back at the end of the iteration, behind a product
// of what was loaded, not behind the loads.
// CHECK-LABEL: @read_by_lanes(
func.func @read_by_lanes(%n: index, %k: !view, %rows: memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @read_by_lanes blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    %ks = warp.alloc : !t
    %ls = warp.alloc : !warp.slot<1x64xf32>
    %zo = warp.splat %zero : !o
    // CHECK: warp.role @softmax
    // CHECK: scf.for
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo) -> (!o) {
      %kr = arith.muli %i, %c64 : index
      warp.copy %rows[%b, %h, %kr] to %ls : memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>, !warp.slot<1x64xf32>
      // CHECK: %[[ROW:.*]] = warp.await %{{.*}} -> <1x64xf32>
      // CHECK: warp.load_frag %[[ROW]]
      // CHECK-NOT: warp.release %[[ROW]]
      // CHECK: warp.mma
      // CHECK-NEXT: warp.release %{{.*}} : <64x128xbf16, panels<128>>
      // CHECK-NEXT: warp.release %[[ROW]] : <1x64xf32>
      // CHECK-NEXT: scf.yield
      %row = warp.load_frag %ls : !warp.slot<1x64xf32> -> !warp.frag<1x64xf32, acc, 8>
      warp.copy %k[%b, %h, %kr, %c0] to %ks : !view, !t
      %s = warp.broadcast %row : !warp.frag<1x64xf32, acc, 8> -> !s
      %p = warp.cast truncf %s : !s to !p
      %pa = warp.convert %p : !p -> !a
      %o2 = warp.mma wgmma %pa, %ks, %o : !a, !t, !o
      scf.yield %o2 : !o
    }
  }
  return
}

// Bounds that are read from memory (a length per batch) are read once.
// CHECK-LABEL: @bound_from_memory(
func.func @bound_from_memory(%n: index, %k: !view, %lengths: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @bound_from_memory blocks(%x, %h, %b) in (%n, %n, %n) warps(4) stages(2) {
    // CHECK: %[[L:.*]] = memref.load
    // CHECK: %[[HI:.*]] = arith.index_cast %[[L]]
    %l = memref.load %lengths[%b] : memref<?xi32>
    %hi = arith.index_cast %l : i32 to index
    %ks = warp.alloc : !t
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    // CHECK: warp.role @load copy
    // CHECK: scf.for %{{.*}} = %{{.*}} to %[[HI]]
    // CHECK: warp.role @softmax compute warps(4) registers(232)
    // CHECK: scf.for %{{.*}} = %{{.*}} to %[[HI]]
    scf.for %i = %c0 to %hi step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %ks, %ks, %zs transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
    }
  }
  return
}

// A loop over tiles: the query is used in the loop inside, its ring counts the
// tiles, the keys' ring goes on counting from tile to tile.
// CHECK-LABEL: @tiles(
func.func @tiles(%tiles: index, %n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: warp.kernel
  warp.kernel @tiles blocks(%t, %h, %b) in (%tiles, %c1, %c1) warps(8) stages(2) resident {
    // CHECK-NEXT: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
    // CHECK-NEXT: %[[K:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
    %qs = warp.alloc : !warp.slot<128x128xbf16, panels<128>>
    %ks = warp.alloc : !warp.slot<64x128xbf16, panels<128>>
    %zero = arith.constant 0.0 : f32
    // CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
    %blocks = gpu.grid_dim x
    // CHECK: warp.role @load copy
    // CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %[[BLOCKS]] iter_args(%[[QN:.*]] = %{{.*}}, %[[KN:.*]] = %{{.*}}) -> (index, index) {
    // CHECK: warp.copy_async {{.*}} to %[[Q]][%[[QN]]]
    // CHECK: %[[QN1:.*]] = arith.addi %[[QN]]
    // CHECK: %[[KR:.*]] = scf.for {{.*}} iter_args(%[[KM:.*]] = %[[KN]]) -> (index) {
    // CHECK: warp.copy_async {{.*}} to %[[K]][%[[KM]]]
    // CHECK: scf.yield %[[QN1]], %[[KR]]
    // CHECK: warp.role @softmax compute
    // CHECK: scf.for {{.*}} step %[[BLOCKS]]
    // CHECK: %[[QT:.*]] = warp.await %[[Q]]
    // CHECK: scf.for
    // CHECK: warp.await %[[K]]
    // CHECK: }
    // CHECK: warp.release %[[QT]]
    scf.for %x = %t to %tiles step %blocks {
      warp.copy %q[%x, %c0, %c0, %c0] to %qs : !view, !warp.slot<128x128xbf16, panels<128>>
      scf.for %i = %c0 to %n step %c1 {
        warp.copy %k[%x, %c0, %i, %c0] to %ks : !view, !warp.slot<64x128xbf16, panels<128>>
        %z = warp.splat %zero : !warp.frag<128x64xf32, acc, 8>
        %s = warp.mma wgmma %qs, %ks, %z transpose_b : !warp.slot<128x128xbf16, panels<128>>, !warp.slot<64x128xbf16, panels<128>>, !warp.frag<128x64xf32, acc, 8>
      }
    }
  }
  return
}

// Two rings whose first items are used before the loop inside are in step there,
// too: they have one number, in each loop.
// CHECK-LABEL: @in_step(
func.func @in_step(%tiles: index, %n: index, %k: !view, %bias: memref<?x?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: warp.kernel
  warp.kernel @in_step blocks(%t, %h, %b) in (%tiles, %c1, %c1) warps(4) stages(2) resident {
    // CHECK-NEXT: %[[K:.*]] = warp.ring {{.*}} : <2, 64x128xbf16, panels<128>>
    // CHECK-NEXT: %[[B:.*]] = warp.ring {{.*}} : <2, 128x64xbf16, panels<128>>
    %k0 = warp.alloc : !t
    %ks = warp.alloc : !t
    %b0 = warp.alloc : !warp.slot<128x64xbf16, panels<128>>
    %bs = warp.alloc : !warp.slot<128x64xbf16, panels<128>>
    %zero = arith.constant 0.0 : f32
    %blocks = gpu.grid_dim x
    // CHECK: warp.role @load copy
    // CHECK: scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (index) {
    // CHECK: warp.copy_async {{.*}} to %[[K]][%[[N]]]
    // CHECK: %[[M:.*]] = arith.addi %[[N]]
    // CHECK: warp.copy_async {{.*}} to %[[B]][%[[N]]]
    // CHECK: scf.for {{.*}} iter_args(%[[I:.*]] = %[[M]]) -> (index) {
    // CHECK: warp.copy_async {{.*}} to %[[K]][%[[I]]]
    // CHECK: warp.copy_async {{.*}} to %[[B]][%[[I]]]
    // What lanes read goes back before the loop, behind what is made of it.
    // CHECK: warp.role @softmax compute
    // CHECK: %[[F:.*]] = warp.await %[[B]]
    // CHECK: warp.load_frag %[[F]]
    // CHECK-NEXT: math.absf
    // CHECK-NEXT: warp.release %[[F]]
    // CHECK-NEXT: scf.for
    scf.for %x = %t to %tiles step %blocks {
      %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
      warp.copy %k[%x, %c0, %c0, %c0] to %k0 : !view, !t
      %s0 = warp.mma wgmma %k0, %k0, %z transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
      warp.copy %bias[%x, %c0] to %b0 : memref<?x?xbf16>, !warp.slot<128x64xbf16, panels<128>>
      %f0 = warp.load_frag %b0 : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, acc, 4>
      %a0 = math.absf %f0 : !warp.frag<128x64xbf16, acc, 4>
      scf.for %i = %c1 to %n step %c1 {
        warp.copy %k[%x, %c0, %i, %c0] to %ks : !view, !t
        %s = warp.mma wgmma %ks, %ks, %z transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
        warp.copy %bias[%x, %i] to %bs : memref<?x?xbf16>, !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %bs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, acc, 4>
      }
    }
  }
  return
}

// Tiles that are drawn: the producer has the number, and what it is taken apart
// with; the consumer is told, after its last store.
// CHECK-LABEL: @drawn(
// CHECK: %[[K:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// CHECK-NEXT: %[[NUMBERS:.*]] = warp.mailbox fills(@load) drains(@softmax) : <2, 2>
// CHECK: warp.role @load copy
// CHECK: %[[ROW0:.*]] = arith.divui %[[FIRST:.*]], %{{.*}} : index
// CHECK: %[[ITEM0:.*]] = arith.constant 0 : index
// CHECK: warp.send %[[FIRST]], %[[ROW0]] to %[[NUMBERS]][%[[ITEM0]]] : <2, 2>
// CHECK: scf.while (%[[T:.*]] = %[[FIRST]], %{{.*}} = %[[ROW0]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: scf.for
// CHECK: warp.copy_async
// CHECK: %[[NEXT:.*]] = warp.draw
// CHECK: warp.copy_async
// CHECK: %[[ROW:.*]] = arith.divui %[[NEXT]], %{{.*}} : index
// CHECK: warp.send %[[NEXT]], %[[ROW]] to %[[NUMBERS]][%{{.*}}] : <2, 2>
// CHECK: scf.yield %[[NEXT]], %[[ROW]],
// CHECK: warp.role @softmax compute
// CHECK-NOT: arith.divui
// CHECK: %[[TAKEN:.*]]:2 = warp.receive %[[NUMBERS]][%{{.*}}] : <2, 2>
// CHECK: scf.while (%{{.*}} = %[[TAKEN]]#0, %{{.*}} = %[[TAKEN]]#1, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK-NOT: warp.draw
// CHECK-NOT: arith.divui
// CHECK: warp.store
// CHECK: %[[AGAIN:.*]]:2 = warp.receive %[[NUMBERS]][%{{.*}}] : <2, 2>
// CHECK: scf.yield %[[AGAIN]]#0, %[[AGAIN]]#1,
func.func @drawn(%n: index, %k: !view, %counter: memref<1xi32>, %out: memref<?x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @drawn blocks(%x, %h, %b) in (%n, %c1, %c1) warps(4) stages(2) resident {
    %ks = warp.alloc : !t
    %row0 = arith.divui %x, %n : index
    %r:2 = scf.while (%t = %x, %row = %row0) : (index, index) -> (index, index) {
      %more = arith.cmpi ult, %t, %n : index
      scf.condition(%more) %t, %row : index, index
    } do {
    ^bb0(%t: index, %row: index):
      scf.for %i = %c0 to %row step %c1 {
        warp.copy %k[%c0, %c0, %i, %c0] to %ks : !view, !t
        %f = warp.load_frag %ks : !t -> !warp.frag<64x128xbf16, a, 4>
      }
      %next = warp.draw %counter below %n : memref<1xi32>
      warp.copy %k[%c0, %c0, %row, %c0] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !warp.frag<64x128xbf16, a, 4>
      %l = warp.splat %zero : !warp.frag<64x1xf32, acc, 4>
      warp.store %l, %out[%c0, %c0, %row] rows : !warp.frag<64x1xf32, acc, 4>, memref<?x?x?xf32>
      %nextrow = arith.divui %next, %n : index
      scf.yield %next, %nextrow : index, index
    }
  }
  return
}

// Tiles that are looked for: the producer looks, the consumer is told.
// CHECK-LABEL: @searched(
// CHECK: warp.role @load copy
// CHECK: %[[FIRST:.*]] = scf.while
// CHECK: memref.load
// CHECK: warp.draw
// CHECK: warp.send %[[FIRST]] to %[[NUMBERS:.*]][%{{.*}}] : <2, 1>
// CHECK: scf.while (%{{.*}} = %[[FIRST]],
// CHECK: %[[EARLY:.*]] = warp.draw
// CHECK: warp.copy_async
// CHECK: %[[NEXT:.*]] = scf.while (%{{.*}} = %[[EARLY]])
// CHECK: memref.load
// CHECK: warp.draw
// CHECK: warp.send %[[NEXT]] to %[[NUMBERS]]
// CHECK: scf.yield %[[NEXT]],
// CHECK: warp.role @softmax compute
// CHECK-NOT: memref.load
// CHECK-NOT: warp.draw
// CHECK: warp.receive %[[NUMBERS]]
// CHECK: scf.while
// CHECK-NOT: memref.load
// CHECK-NOT: warp.draw
// CHECK: warp.receive %[[NUMBERS]]
func.func @searched(%n: index, %k: !view, %counter: memref<1xi32>, %idle: memref<?xi1>, %out: memref<?x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @searched blocks(%x, %h, %b) in (%n, %n, %n) warps(4) stages(2) resident {
    %ks = warp.alloc : !t
    %first = scf.while (%t = %x) : (index) -> index {
      %pass = memref.load %idle[%t] : memref<?xi1>
      scf.condition(%pass) %t : index
    } do {
    ^bb0(%t: index):
      %next = warp.draw %counter below %n : memref<1xi32>
      scf.yield %next : index
    }
    %r = scf.while (%t = %first) : (index) -> index {
      %more = arith.cmpi ult, %t, %n : index
      scf.condition(%more) %t : index
    } do {
    ^bb0(%t: index):
      %early = warp.draw %counter below %n : memref<1xi32>
      warp.copy %k[%c0, %c0, %t, %c0] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !warp.frag<64x128xbf16, a, 4>
      %l = warp.splat %zero : !warp.frag<64x1xf32, acc, 4>
      warp.store %l, %out[%c0, %c0, %t] rows : !warp.frag<64x1xf32, acc, 4>, memref<?x?x?xf32>
      %next = scf.while (%s = %early) : (index) -> index {
        %pass = memref.load %idle[%s] : memref<?xi1>
        scf.condition(%pass) %s : index
      } do {
      ^bb0(%s: index):
        %d = warp.draw %counter below %n : memref<1xi32>
        scf.yield %d : index
      }
      scf.yield %next : index
    }
  }
  return
}

// Where no block stays an idle one ends before both roles.
// CHECK-LABEL: @idle(
// CHECK: warp.exit_if
// CHECK: warp.role @load copy
// CHECK: warp.role @softmax compute
func.func @idle(%n: index, %k: !view, %idle: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  warp.kernel @idle blocks(%x, %h, %b) in (%n, %n, %n) warps(4) stages(2) {
    %nothing = memref.load %idle[%x] : memref<?xi1>
    warp.exit_if %nothing
    %ks = warp.alloc : !t
    warp.copy %k[%c0, %c0, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !warp.frag<64x128xbf16, a, 4>
  }
  return
}

// Bounds of groups: arithmetic on the group's number in the role that computes,
// which passes over the blocks of the others. The producer goes through all.
// CHECK-LABEL: @groups(
// CHECK-SAME: %{{.*}}: index, %[[LO:[^:]*]]: index, %[[HI:[^:]*]]: index
// CHECK: warp.role @load copy
// CHECK: %[[ALL:.*]]:2 = warp.group_bounds[%[[LO]], %[[HI]]) of 64
// CHECK: warp.yield %[[LO]], %[[HI]]
// CHECK-NOT: scf.for
// CHECK: scf.for %{{.*}} = %[[ALL]]#0 to %[[ALL]]#1 step
// CHECK-NOT: scf.for
// CHECK: warp.role @softmax compute warps(8) registers(232) group(%[[GROUP:.*]]) {
// CHECK: %[[GROUP32:.*]] = arith.index_cast %[[GROUP]] : index to i32
// CHECK: %[[ROW32:.*]] = arith.muli %[[GROUP32]], %c64{{.*}} : i32
// CHECK: %[[ROW:.*]] = arith.index_cast %[[ROW32]] : i32 to index
// CHECK: %[[OWN:.*]] = arith.addi %{{.*}}, %[[ROW]] : index
// CHECK: %[[LAST:.*]] = arith.subi %[[HI]], %{{.*}} : index
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[LAST]], %[[LO]] : index
// CHECK: %[[MOST:.*]] = arith.maxsi %[[ROW]], %[[LO]] : index
// CHECK: %[[FIRST:.*]] = arith.minsi %[[MOST]], %[[LEAST]] : index
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK: %[[ONE:.*]] = arith.maxsi %[[OWN]], %[[SECOND]] : index
// CHECK: %[[END:.*]] = arith.minsi %[[ONE]], %[[HI]] : index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FIRST]] step
// CHECK-NEXT: warp.await
// CHECK: warp.release
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step
// CHECK: warp.mma
// CHECK: scf.for %{{.*}} = %[[END]] to %[[HI]] step
// CHECK-NEXT: warp.await
// CHECK: warp.release
func.func @groups(%n: index, %lo: index, %hi: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @groups blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %qs : !view, !q
    %qf = warp.load_frag %qs : !q -> !warp.frag<128x128xbf16, a, 8>
    %zs = warp.splat %zero : !s
    %first, %end = warp.group_bounds [%lo, %hi) of 64 {
    ^bb0(%row: index):
      %own = arith.addi %x, %row : index
      warp.yield %row, %own : index, index
    }
    scf.for %i = %first to %end step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qf, %ks, %zs transpose_b : !warp.frag<128x128xbf16, a, 8>, !t, !s
    }
  }
  return
}

// A bound between two loops lies between those of the group. The producer has
// it where it is for all rows.
// CHECK-LABEL: @between(
// CHECK-SAME: %{{.*}}: index, %[[LO:[^:]*]]: index, %[[MID:[^:]*]]: index, %[[HI:[^:]*]]: index
// CHECK: warp.role @load copy
// CHECK: %[[ALL:.*]]:3 = warp.group_bounds[%[[LO]], %[[MID]], %[[HI]]) of 64
// CHECK: warp.yield %[[LO]], %[[MID]], %[[HI]]
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[ALL]]#1 step
// CHECK: scf.for %{{.*}} = %[[ALL]]#1 to %[[ALL]]#2 step
// CHECK: warp.role @softmax compute warps(8) registers(232) group(%[[GROUP:.*]]) {
// CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[OWN:.*]] = arith.addi %{{.*}}, %[[ROW]] : index
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[HI]] : index
// CHECK: %[[BEHIND:.*]] = arith.maxsi %[[ROW]], %[[LO]] : index
// CHECK: %[[FULL:.*]] = arith.minsi %[[BEHIND]], %[[END]] : index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL]] step
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[END]] step
// CHECK: scf.for %{{.*}} = %[[END]] to %[[HI]] step
func.func @between(%n: index, %lo: index, %mid: index, %hi: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @between blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %qs : !view, !q
    %qf = warp.load_frag %qs : !q -> !warp.frag<128x128xbf16, a, 8>
    %zs = warp.splat %zero : !s
    %all:3 = warp.group_bounds [%lo, %mid, %hi) of 64 {
    ^bb0(%row: index):
      %own = arith.addi %x, %row : index
      warp.yield %lo, %row, %own : index, index, index
    }
    scf.for %i = %lo to %all#1 step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qf, %ks, %zs transpose_b : !warp.frag<128x128xbf16, a, 8>, !t, !s
    }
    scf.for %i = %all#1 to %all#2 step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %s = warp.mma wgmma %qf, %ks, %zs transpose_b : !warp.frag<128x128xbf16, a, 8>, !t, !s
    }
  }
  return
}
