// RUN: attn-opt %s --warp-stage-stores=shared-limit=232448 | FileCheck %s
// RUN: attn-opt %s --warp-stage-stores=shared-limit=70000 | FileCheck %s --check-prefix=TIGHT
// RUN: attn-opt %s --warp-stage-stores=shared-limit=58000 | FileCheck %s --check-prefix=FULL
// RUN: attn-opt %s --warp-stage-stores --remarks-filter=warp-stage-stores -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!rows = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!out = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!odd = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!q = !warp.slot<128x128xbf16, panels<128>>
!o = !warp.frag<128x128xf32, acc, 8>
!ob = !warp.frag<128x128xbf16, acc, 8>

// With roles the tile leaves through a slot of its own; a part of its columns
// at a time where memory is short; through the slot of the queries, which is
// then released later, where there is none.
// CHECK-LABEL: @roles
// CHECK: warp.ring fills(@load) drains(@softmax) : <2, 128x128xbf16, panels<128>>
// CHECK-NEXT: %[[S:.*]] = warp.alloc : <128x128xbf16, panels<128>>
// CHECK: warp.wait
// CHECK-NEXT: warp.release
// CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] via %[[S]] by tma : <128x128xbf16, acc, 8>
// CHECK: warp.store {{.*}} rows :
// TIGHT-LABEL: @roles
// TIGHT-NOT: warp.alloc
// TIGHT: %[[Q:.*]] = warp.await
// TIGHT: %[[K:.*]] = warp.await
// TIGHT: warp.wait
// TIGHT-NEXT: warp.release %[[K]]
// TIGHT-NOT: warp.release
// TIGHT: warp.store %{{.*}} via %[[Q]] by tma
// TIGHT-NEXT: warp.release %[[Q]]
func.func @roles(%n: index, %q: !view, %out: !view, %lse: !rows) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @roles blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
      warp.copy_async %q[%b, %h, %n, %c0] to %Q[%c1] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !o
      %m = warp.splat %zero : !warp.frag<128x1xf32, acc, 8>
      %qt = warp.await %Q[%c0] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      %kt = warp.await %Q[%c1] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      %p = warp.mma_async wgmma %qt, %kt, %z transpose_b : !q, !q, !o
      %s = warp.wait %p : !warp.pending<128x128xf32, acc, 8>
      warp.release %qt : !q
      warp.release %kt : !q
      %o = warp.cast truncf %s : !o to !ob
      warp.store %o, %out[%b, %h, %x, %c0] : !ob, !view
      warp.store %m, %lse[%b, %h, %x] rows : !warp.frag<128x1xf32, acc, 8>, !rows
    }
  }
  return
}

// Also in a branch, behind which the queries are then released.
// CHECK-LABEL: @branch
// CHECK: %[[S:.*]] = warp.alloc : <128x128xbf16, panels<128>>
// CHECK: warp.release
// CHECK-NEXT: warp.release
// CHECK-NEXT: scf.if
// CHECK: warp.store %{{.*}} via %[[S]] by tma
// TIGHT-LABEL: @branch
// TIGHT-NOT: warp.alloc
// TIGHT: %[[Q:.*]] = warp.await
// TIGHT: %[[K:.*]] = warp.await
// TIGHT: warp.wait
// TIGHT-NEXT: warp.release %[[K]]
// TIGHT-NEXT: scf.if
// TIGHT-NEXT: warp.store {{.*}} : <128x128xf32, acc, 8>
// TIGHT-NEXT: } else {
// TIGHT-NOT: warp.release
// TIGHT: warp.store %{{.*}} via %[[Q]] by tma
// TIGHT-NEXT: }
// TIGHT-NEXT: warp.release %[[Q]]
func.func @branch(%n: index, %q: !view, %out: !view, %inParts: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %parts = memref.alloc(%n, %n, %n) : memref<?x?x?x128xf32>
  warp.kernel @branch blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
      warp.copy_async %q[%b, %h, %n, %c0] to %Q[%c1] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !o
      %qt = warp.await %Q[%c0] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      %kt = warp.await %Q[%c1] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      %p = warp.mma_async wgmma %qt, %kt, %z transpose_b : !q, !q, !o
      %s = warp.wait %p : !warp.pending<128x128xf32, acc, 8>
      warp.release %qt : !q
      warp.release %kt : !q
      scf.if %inParts {
        warp.store %s, %parts[%b, %h, %x, %c0] : !o, memref<?x?x?x128xf32>
      } else {
        %o = warp.cast truncf %s : !o to !ob
        warp.store %o, %out[%b, %h, %x, %c0] : !ob, !view
      }
    }
  }
  return
}

// In a loop the next products still read the queries.
// TIGHT-LABEL: @store_in_loop
// TIGHT-NOT: via
// TIGHT: warp.release
func.func @store_in_loop(%n: index, %q: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @store_in_loop blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
      warp.copy_async %q[%b, %h, %n, %c0] to %Q[%c1] by tma : !view, !warp.ring<2, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !o
      %qt = warp.await %Q[%c0] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      %kt = warp.await %Q[%c1] : !warp.ring<2, 128x128xbf16, panels<128>> -> !q
      scf.for %i = %c0 to %n step %c1 {
        %p = warp.mma_async wgmma %qt, %kt, %z transpose_b : !q, !q, !o
        %s = warp.wait %p : !warp.pending<128x128xf32, acc, 8>
        %o = warp.cast truncf %s : !o to !ob
        warp.store %o, %out[%b, %h, %i, %c0] : !ob, !view
      }
      warp.release %qt : !q
      warp.release %kt : !q
    }
  }
  return
}

// Half of the columns fit.
// FULL-LABEL: @parts
// FULL: %[[S:.*]] = warp.alloc : <64x64xbf16, panels<128>>
// FULL: warp.store %{{.*}} via %[[S]] by tma : <64x128xbf16, acc, 4>
func.func @parts(%n: index, %q: !view, %out: !out) {
  %c0 = arith.constant 0 : index
  warp.kernel @parts blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<3, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<3, 64x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %zero = arith.constant 0.0 : bf16
      %z = warp.splat %zero : !warp.frag<64x128xbf16, acc, 4>
      %qt = warp.await %Q[%c0] : !warp.ring<3, 64x128xbf16, panels<128>> -> !warp.slot<64x128xbf16, panels<128>>
      warp.release %qt : !warp.slot<64x128xbf16, panels<128>>
      warp.store %z, %out[%x, %c0] : !warp.frag<64x128xbf16, acc, 4>, !out
    }
  }
  return
}

// Of memory that the function allocates there is no tensor map.
// CHECK-LABEL: @workspace
// CHECK: %[[S:.*]] = warp.alloc : <64x128xbf16, panels<128>>
// CHECK: warp.store %{{.*}} via %[[S]] : <64x128xbf16, acc, 4>
func.func @workspace(%n: index, %q: !view) {
  %c0 = arith.constant 0 : index
  %out = memref.alloc(%n) : memref<?x128xbf16>
  warp.kernel @workspace blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<1, 64x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %zero = arith.constant 0.0 : bf16
      %z = warp.splat %zero : !warp.frag<64x128xbf16, acc, 4>
      %qt = warp.await %Q[%c0] : !warp.ring<1, 64x128xbf16, panels<128>> -> !warp.slot<64x128xbf16, panels<128>>
      warp.release %qt : !warp.slot<64x128xbf16, panels<128>>
      warp.store %z, %out[%x, %c0] : !warp.frag<64x128xbf16, acc, 4>, memref<?x128xbf16>
    }
  }
  return
}

// Without roles only slots that are there.
// CHECK-LABEL: @no_roles
// CHECK: %[[Q:.*]] = warp.alloc : <64x64xbf16>
// CHECK-NOT: warp.alloc
// CHECK: warp.store %{{.*}} via %[[Q]] :
func.func @no_roles(%n: index, %q: !out, %out: !out) {
  %c0 = arith.constant 0 : index
  warp.kernel @no_roles blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %Q = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %q[%x, %c0] to %Q : !out, !warp.slot<64x64xbf16>
    %f = warp.load_frag %Q : !warp.slot<64x64xbf16> -> !warp.frag<64x64xbf16, a, 4>
    %zero = arith.constant 0.0 : bf16
    %z = warp.splat %zero : !warp.frag<64x64xbf16, acc, 4>
    warp.store %z, %out[%x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !out
  }
  return
}

// The slot of the keys is read by all warps, that of fewer rows is too small.
// CHECK-LABEL: @no_slot
// CHECK-NOT: via
// REMARK: stage-stores{{.*}}no shared memory is left, and no slot of an operand takes the tile
func.func @no_slot(%n: index, %q: !out, %out: !out) {
  %c0 = arith.constant 0 : index
  warp.kernel @no_slot blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %Q = warp.alloc : !warp.slot<64x32xbf16>
    %K = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %q[%x, %c0] to %Q : !out, !warp.slot<64x32xbf16>
    warp.copy %q[%x, %c0] to %K : !out, !warp.slot<64x64xbf16>
    %zero = arith.constant 0.0 : f32
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    %f = warp.cast truncf %z : !warp.frag<64x64xf32, acc, 4> to !warp.frag<64x64xbf16, acc, 4>
    %a = warp.convert %f : !warp.frag<64x64xbf16, acc, 4> -> !warp.frag<64x64xbf16, a, 4>
    %s = warp.mma mma_sync %a, %K, %z transpose_b : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %out[%x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !out
  }
  return
}

// So is a left operand that is transposed.
// CHECK-LABEL: @transposed
// CHECK-NOT: via
func.func @transposed(%n: index, %q: !out, %out: !out) {
  %c0 = arith.constant 0 : index
  warp.kernel @transposed blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %Q = warp.alloc : !warp.slot<64x64xbf16>
    %K = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %q[%x, %c0] to %Q : !out, !warp.slot<64x64xbf16>
    warp.copy %q[%x, %c0] to %K : !out, !warp.slot<64x64xbf16>
    %zero = arith.constant 0.0 : f32
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    %s = warp.mma mma_sync %Q, %K, %z transpose_a : !warp.slot<64x64xbf16>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
    %f = warp.cast truncf %s : !warp.frag<64x64xf32, acc, 4> to !warp.frag<64x64xbf16, acc, 4>
    warp.store %f, %out[%x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !out
  }
  return
}

// A slot of which lanes read a tile (a bias) is refilled within the loops.
// CHECK-LABEL: @read_by_lanes
// CHECK-NOT: via
func.func @read_by_lanes(%n: index, %bias: !out, %out: !out) {
  %c0 = arith.constant 0 : index
  warp.kernel @read_by_lanes blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %B = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %bias[%x, %c0] to %B : !out, !warp.slot<64x64xbf16>
    %f = warp.load_frag %B : !warp.slot<64x64xbf16> -> !warp.frag<64x64xbf16, acc, 4>
    %g = math.absf %f : !warp.frag<64x64xbf16, acc, 4>
    warp.store %g, %out[%x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !out
  }
  return
}

// Pieces of 16 bytes would leave out the end of a row of which they are no
// whole number.
// CHECK-LABEL: @odd_rows
// CHECK: warp.store %{{[0-9]*}}, %{{[a-z0-9]*}}[%{{[a-z0-9_]*}}, %{{[a-z0-9_]*}}] :
// REMARK: Remark="the rows in memory are no whole pieces of 16 bytes"
func.func @odd_rows(%n: index, %q: !out, %out: !odd, %f: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @odd_rows blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %Q = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %q[%x, %c0] to %Q : !out, !warp.slot<64x64xbf16>
    %a = warp.load_frag %Q : !warp.slot<64x64xbf16> -> !warp.frag<64x64xbf16, a, 4>
    %z = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
    warp.store %z, %out[%x, %c0] : !warp.frag<64x64xbf16, acc, 4>, !odd
  }
  return
}
