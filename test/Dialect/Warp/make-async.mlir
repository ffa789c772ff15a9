// RUN: attn-opt %s --warp-make-async | FileCheck %s
// RUN: attn-opt %s --warp-make-async --remarks-filter=warp-make-async -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!q = !warp.slot<128x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!p = !warp.frag<128x64xbf16, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>

// Q K^T and P V run side by side; the next P is made when P V is done.
// CHECK-LABEL: @overlapped
func.func @overlapped(%n: index, %q: !view, %k: !view, %v: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @overlapped blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 128x128xbf16, panels<128>>
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<1, 128x128xbf16, panels<128>>
      %r:2 = scf.for %i = %c1 to %n step %c1 iter_args(%kn = %c0, %vn = %c0) -> (index, index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%vn] by tma : !view, !ring
        %vn1 = arith.addi %vn, %c1 : index
        scf.yield %kn1, %vn1 : index, index
      }
    }
    warp.role @softmax compute warps(8) registers(240) {
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %scale = warp.splat %one : !o
      %p0 = warp.cast truncf %zs : !s to !p
      %qt = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !q
      // CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %{{.*}}, %{{.*}}) ->
      %r:4 = scf.for %i = %c1 to %n step %c1 iter_args(%o = %zo, %p = %p0, %kn = %c0, %vn = %c0) -> (!o, !p, index, index) {
        // CHECK-NEXT: %[[K:.*]] = warp.await
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: %[[SP:.*]] = warp.mma_async wgmma %{{.*}}, %[[K]], %{{.*}} transpose_b
        // CHECK-NOT: warp.wait
        %s = warp.mma wgmma %qt, %kt, %zs transpose_b : !q, !t, !s
        warp.release %kt : !t
        // CHECK: %[[V:.*]] = warp.await
        %vt = warp.await %V[%vn] : !ring -> !t
        %vn1 = arith.addi %vn, %c1 : index
        // CHECK: %[[A:.*]] = warp.convert %[[P]]
        %a = warp.convert %p : !p -> !a
        // CHECK-NEXT: %[[OP:.*]] = warp.mma_async wgmma %[[A]], %[[V]], %[[O]]
        %o1 = warp.mma wgmma %a, %vt, %o : !a, !t, !o
        warp.release %vt : !t
        // CHECK-NEXT: %[[S:.*]] = warp.wait %[[SP]]
        // CHECK-NEXT: warp.release %[[K]]
        // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[S]]
        %e = math.exp2 %s : !s
        // CHECK-NEXT: %[[O1:.*]] = warp.wait %[[OP]]
        // CHECK-NEXT: warp.release %[[V]]
        // CHECK-NEXT: %[[P1:.*]] = warp.cast truncf %[[E]]
        %p1 = warp.cast truncf %e : !s to !p
        // CHECK-NEXT: arith.mulf %[[O1]]
        %o2 = arith.mulf %o1, %scale : !o
        scf.yield %o2, %p1, %kn1, %vn1 : !o, !p, index, index
      }
      warp.release %qt : !q
    }
  }
  return
}

// Two sets of operands: the second product's is made while the first one runs,
// the third's, which is handed on as the first's, while the second runs.
// CHECK-LABEL: @two_sets
func.func @two_sets(%n: index, %q: !view, %v: !view, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @two_sets blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %qt = warp.alloc : !q
    %vt = warp.alloc : !t
    warp.copy %q[%b, %h, %x, %c0] to %qt : !view, !q
    warp.copy %v[%b, %h, %x, %c0] to %vt : !view, !t
    %zs = warp.splat %zero : !s
    %zo = warp.splat %zero : !o
    %p0 = warp.cast truncf %zs : !s to !p
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[P:.*]] = %{{.*}}) ->
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %p = %p0) -> (!o, !p) {
      // CHECK: %[[SP:.*]] = warp.mma_async
      %s = warp.mma wgmma %qt, %vt, %zs transpose_b : !q, !t, !s
      // CHECK-NEXT: %[[A:.*]] = warp.convert %[[P]]
      %a = warp.convert %p : !p -> !a
      // CHECK-NEXT: %[[OP:.*]] = warp.mma_async wgmma %[[A]]
      %o1 = warp.mma wgmma %a, %vt, %o : !a, !t, !o
      // CHECK-NEXT: %[[S:.*]] = warp.wait %[[SP]]
      // CHECK-NEXT: %[[P1:.*]] = warp.cast truncf %[[S]]
      %p1 = warp.cast truncf %s : !s to !p
      // CHECK-NEXT: %[[SP1:.*]] = warp.mma_async
      %s1 = warp.mma wgmma %qt, %vt, %zs transpose_b : !q, !t, !s
      // CHECK-NEXT: %[[A1:.*]] = warp.convert %[[P1]]
      %a1 = warp.convert %p1 : !p -> !a
      // CHECK-NEXT: %[[O1:.*]] = warp.wait %[[OP]]
      // CHECK-NEXT: %[[OP1:.*]] = warp.mma_async wgmma %[[A1]], %{{.*}}, %[[O1]]
      %o2 = warp.mma wgmma %a1, %vt, %o1 : !a, !t, !o
      // CHECK-NEXT: %[[S1:.*]] = warp.wait %[[SP1]]
      // CHECK-NEXT: %[[P2:.*]] = warp.cast truncf %[[S1]]
      %p2 = warp.cast truncf %s1 : !s to !p
      // CHECK-NEXT: %[[O2:.*]] = warp.wait %[[OP1]]
      // CHECK-NEXT: scf.yield %[[O2]], %[[P2]]
      scf.yield %o2, %p2 : !o, !p
    }
    // One set, and the next operand comes from a branch.
    // CHECK: scf.for
    %d:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r#0, %p = %r#1) -> (!o, !p) {
      // CHECK: %[[SP:.*]] = warp.mma_async
      %s = warp.mma wgmma %qt, %vt, %zs transpose_b : !q, !t, !s
      %a = warp.convert %p : !p -> !a
      // CHECK: %[[OP:.*]] = warp.mma_async
      %o1 = warp.mma wgmma %a, %vt, %o : !a, !t, !o
      // CHECK-NEXT: %[[S:.*]] = warp.wait %[[SP]]
      // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[S]]
      %e = math.exp2 %s : !s
      // CHECK-NEXT: %[[O1:.*]] = warp.wait %[[OP]]
      // CHECK-NEXT: scf.if
      %p1 = scf.if %c -> !p {
        %p2 = warp.cast truncf %e : !s to !p
        scf.yield %p2 : !p
      } else {
        scf.yield %p0 : !p
      }
      scf.yield %o1, %p1 : !o, !p
    }
  }
  return
}

// One role: what another warp may copy once this one has released the slot is
// not read any more.
// CHECK-LABEL: @one_role
func.func @one_role(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @one_role blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %K = warp.ring : !ring
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] : !view, !ring
    // CHECK: %[[K:.*]] = warp.await
    %kt = warp.await %K[%c0] : !ring -> !t
    // CHECK-NEXT: %[[SP:.*]] = warp.mma_async
    %s = warp.mma wgmma %kt, %kt, %zs transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
    // CHECK-NEXT: arith.addi
    %next = arith.addi %x, %x : index
    // CHECK-NEXT: warp.wait %[[SP]]
    // CHECK-NEXT: warp.release %[[K]]
    warp.release %kt : !t
    %e = math.exp2 %s : !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// Without rings: the copy into the slot of a product waits for it, that into
// another does not.
// CHECK-LABEL: @copies
func.func @copies(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @copies blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %vs = warp.alloc : !t
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    // CHECK: %[[SP:.*]] = warp.mma_async
    %s = warp.mma wgmma %ks, %ks, %zs transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
    // CHECK-NEXT: warp.copy
    warp.copy %k[%b, %h, %x, %c0] to %vs : !view, !t
    // CHECK-NEXT: warp.wait %[[SP]]
    // CHECK-NEXT: warp.copy
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %e = math.exp2 %s : !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// A mask that is made while the product runs would hold registers: it stands
// after the wait. What is used before stays.
// CHECK-LABEL: @mask
func.func @mask(%n: index, %k: !view, %row: i32, %out: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @mask blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    %rows = warp.splat %row : !warp.frag<64x64xi32, acc, 4>
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    // CHECK: %[[SP:.*]] = warp.mma_async
    %s = warp.mma wgmma %ks, %ks, %zs transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
    %columns = warp.coords %row, 1 : !warp.frag<1x64xi32, acc, 4>
    %stretched = warp.broadcast %columns : !warp.frag<1x64xi32, acc, 4> -> !warp.frag<64x64xi32, acc, 4>
    %visible = arith.cmpi sle, %stretched, %rows : !warp.frag<64x64xi32, acc, 4>
    // CHECK-NEXT: %[[E:.*]] = math.exp2
    %e = math.exp2 %zs : !warp.frag<64x64xf32, acc, 4>
    // CHECK-NEXT: warp.store %[[E]]
    warp.store %e, %out[%x, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x?xf32>
    // CHECK-NEXT: %[[S:.*]] = warp.wait %[[SP]]
    // CHECK-NEXT: warp.coords
    // CHECK-NEXT: warp.broadcast
    // CHECK-NEXT: %[[M:.*]] = arith.cmpi
    // CHECK-NEXT: warp.select %[[M]], %[[S]]
    %masked = warp.select %visible, %s, %zs : !warp.frag<64x64xi1, acc, 4>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// A row that takes 32 registers and more is read after the wait, as long as its
// slot is not given back before; a shorter one arrives beside the product.
// CHECK-LABEL: @rows
func.func @rows(%n: index, %k: !view, %line: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @rows blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@math) : !warp.ring<1, 128x128xbf16, panels<128>>
    %Long = warp.ring fills(@load) drains(@math) : !warp.ring<1, 1x128xf32>
    %Early = warp.ring fills(@load) drains(@math) : !warp.ring<1, 1x128xf32>
    %Short = warp.ring fills(@load) drains(@math) : !warp.ring<1, 1x64xf32>
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by tma : !view, !warp.ring<1, 128x128xbf16, panels<128>>
      warp.copy_async %line[%x] to %Long[%c0] by tma : memref<?xf32>, !warp.ring<1, 1x128xf32>
      warp.copy_async %line[%x] to %Early[%c0] by tma : memref<?xf32>, !warp.ring<1, 1x128xf32>
      warp.copy_async %line[%x] to %Short[%c0] by tma : memref<?xf32>, !warp.ring<1, 1x64xf32>
    }
    warp.role @math compute warps(4) {
      %zs = warp.splat %zero : !warp.frag<128x128xf32, acc, 4>
      %ks = warp.await %K[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      %ls = warp.await %Long[%c0] : !warp.ring<1, 1x128xf32> -> !warp.slot<1x128xf32>
      %es = warp.await %Early[%c0] : !warp.ring<1, 1x128xf32> -> !warp.slot<1x128xf32>
      %ss = warp.await %Short[%c0] : !warp.ring<1, 1x64xf32> -> !warp.slot<1x64xf32>
      // CHECK: %[[SP:.*]] = warp.mma_async
      %s = warp.mma wgmma %ks, %ks, %zs transpose_b : !warp.slot<128x128xbf16, panels<128>>, !warp.slot<128x128xbf16, panels<128>>, !warp.frag<128x128xf32, acc, 4>
      %long = warp.load_frag %ls : !warp.slot<1x128xf32> -> !warp.frag<1x128xf32, acc, 4>
      // CHECK-NEXT: warp.load_frag %{{.*}} : <1x128xf32>
      %early = warp.load_frag %es : !warp.slot<1x128xf32> -> !warp.frag<1x128xf32, acc, 4>
      // CHECK-NEXT: warp.release
      warp.release %es : !warp.slot<1x128xf32>
      // CHECK-NEXT: warp.load_frag %{{.*}} : <1x64xf32>
      %short = warp.load_frag %ss : !warp.slot<1x64xf32> -> !warp.frag<1x64xf32, acc, 4>
      // CHECK-NEXT: warp.wait %[[SP]]
      // CHECK-NEXT: %[[LONG:.*]] = warp.load_frag %{{.*}} : <1x128xf32>
      // CHECK-NEXT: warp.broadcast %[[LONG]]
      %rows = warp.broadcast %long : !warp.frag<1x128xf32, acc, 4> -> !warp.frag<128x128xf32, acc, 4>
      %d = arith.subf %s, %rows : !warp.frag<128x128xf32, acc, 4>
      warp.release %ls : !warp.slot<1x128xf32>
      warp.release %ss : !warp.slot<1x64xf32>
      warp.release %ks : !warp.slot<128x128xbf16, panels<128>>
    }
  }
  return
}

// A tile that lanes read is no operand: it arrives beside a product that reads
// registers.
// CHECK-LABEL: @tile_of_lanes
func.func @tile_of_lanes(%n: index, %k: !view, %bias: memref<?x?xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @tile_of_lanes blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@math) : !warp.ring<1, 128x128xbf16, panels<128>>
    %B = warp.ring fills(@load) drains(@math) : !warp.ring<1, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by tma : !view, !warp.ring<1, 128x128xbf16, panels<128>>
      warp.copy_async %bias[%x, %c0] to %B[%c0] by tma : memref<?x?xbf16>, !warp.ring<1, 64x128xbf16, panels<128>>
    }
    warp.role @math compute warps(4) {
      %zs = warp.splat %zero : !warp.frag<64x128xf32, acc, 4>
      %p = warp.splat %zero : !warp.frag<64x128xf32, acc, 4>
      %q = warp.cast truncf %p : !warp.frag<64x128xf32, acc, 4> to !warp.frag<64x128xbf16, acc, 4>
      %qa = warp.convert %q : !warp.frag<64x128xbf16, acc, 4> -> !warp.frag<64x128xbf16, a, 4>
      %ks = warp.await %K[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      %bs = warp.await %B[%c0] : !warp.ring<1, 64x128xbf16, panels<128>> -> !warp.slot<64x128xbf16, panels<128>>
      // CHECK: %[[SP:.*]] = warp.mma_async
      %s = warp.mma wgmma %qa, %ks, %zs transpose_b : !warp.frag<64x128xbf16, a, 4>, !warp.slot<128x128xbf16, panels<128>>, !warp.frag<64x128xf32, acc, 4>
      // CHECK-NEXT: %[[T:.*]] = warp.load_frag
      // CHECK-NEXT: warp.wait %[[SP]]
      // CHECK-NEXT: warp.cast extf %[[T]]
      %t = warp.load_frag %bs : !warp.slot<64x128xbf16, panels<128>> -> !warp.frag<64x128xbf16, acc, 4>
      %w = warp.cast extf %t : !warp.frag<64x128xbf16, acc, 4> to !warp.frag<64x128xf32, acc, 4>
      %d = arith.addf %s, %w : !warp.frag<64x128xf32, acc, 4>
      warp.release %bs : !warp.slot<64x128xbf16, panels<128>>
      warp.release %ks : !warp.slot<128x128xbf16, panels<128>>
    }
  }
  return
}

// A use in a branch is a use of the branch.
// CHECK-LABEL: @branch
func.func @branch(%n: index, %k: !view, %c: i1) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @branch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    // CHECK: %[[SP:.*]] = warp.mma_async
    %s = warp.mma wgmma %ks, %ks, %zs transpose_b : !t, !t, !warp.frag<64x64xf32, acc, 4>
    // CHECK-NEXT: scf.if
    scf.if %c {
      %e = math.exp2 %zs : !warp.frag<64x64xf32, acc, 4>
    }
    // CHECK: warp.wait %[[SP]]
    // CHECK-NEXT: scf.if
    scf.if %c {
      %e = math.exp2 %s : !warp.frag<64x64xf32, acc, 4>
    }
  }
  return
}

// What is transposed stays so.
// CHECK-LABEL: @transposed
func.func @transposed(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @transposed blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    // CHECK: warp.mma_async wgmma %{{.*}} transpose_a transpose_b :
    %s = warp.mma wgmma %ks, %ks, %zs transpose_a transpose_b : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// Slots without panels are read by other instructions.
// CHECK-LABEL: @pitched
// CHECK-NOT: mma_async
func.func @pitched(%n: index) {
  %zero = arith.constant 0.0 : f32
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="no product is of an atom that can be waited for later"
  warp.kernel @pitched blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !warp.slot<64x128xbf16>
    %zs = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    // CHECK: warp.mma mma_sync %
    %s = warp.mma mma_sync %ks, %ks, %zs transpose_b : !warp.slot<64x128xbf16>, !warp.slot<64x128xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

!numbers = memref<?x4xi64>
!cols = !warp.frag<1x64xi32, acc, 4>
!row = !warp.frag<1x64xi64, acc, 4>
!many = !warp.frag<64x64xi64, acc, 4>
!s64 = !warp.frag<64x64xf32, acc, 4>
!truths = !warp.frag<64x64xi1, acc, 4>

// Of four rows of 64 bits two are gathered beside the product. The others
// follow what joins the comparisons of those, which stands as early as it can.
// CHECK-LABEL: @many_rows
func.func @many_rows(%n: index, %k: !view, %t: !numbers, %x0: i32, %p: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @many_rows blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) registers(24) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) registers(160) {
      %zero = arith.constant 0.0 : f32
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %zs = warp.splat %zero : !s64
      %own = warp.splat %p : !many
      %cols = warp.coords %x0, 1 : !cols
      // CHECK: scf.for
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %sum = %zs) -> (index, !s64) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: warp.mma_async
        %s = warp.mma wgmma %kt, %kt, %zs transpose_b : !t, !t, !s64
        warp.release %kt : !t
        // CHECK-COUNT-2: warp.gather
        // CHECK-NOT: warp.gather
        // CHECK: warp.wait
        %g0 = warp.gather %t[%cols, %c0_i32] : !numbers, (!cols, i32) -> !row
        %w0 = warp.broadcast %g0 : !row -> !many
        %e0 = arith.cmpi eq, %w0, %own : !many
        %g1 = warp.gather %t[%cols, %c1_i32] : !numbers, (!cols, i32) -> !row
        %w1 = warp.broadcast %g1 : !row -> !many
        %e1 = arith.cmpi eq, %w1, %own : !many
        // CHECK: arith.ori
        // CHECK-NEXT: warp.gather %{{.*}}[%{{.*}}, %c2_i32]
        // CHECK: warp.gather
        // CHECK: arith.ori
        // CHECK: arith.ori
        %g2 = warp.gather %t[%cols, %c2_i32] : !numbers, (!cols, i32) -> !row
        %w2 = warp.broadcast %g2 : !row -> !many
        %e2 = arith.cmpi eq, %w2, %own : !many
        %g3 = warp.gather %t[%cols, %c3_i32] : !numbers, (!cols, i32) -> !row
        %w3 = warp.broadcast %g3 : !row -> !many
        %e3 = arith.cmpi eq, %w3, %own : !many
        %m1 = arith.ori %e0, %e1 : !truths
        %m2 = arith.ori %m1, %e2 : !truths
        %m3 = arith.ori %m2, %e3 : !truths
        %shown = warp.select %m3, %s, %zs : !truths, !s64
        %sum1 = arith.addf %sum, %shown : !s64
        scf.yield %kn1, %sum1 : index, !s64
      }
    }
  }
  return
}

// CHECK-LABEL: @enough_registers
func.func @enough_registers(%n: index, %k: !view, %t: !numbers, %x0: i32, %p: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @enough_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) registers(24) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %zero = arith.constant 0.0 : f32
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %zs = warp.splat %zero : !s64
      %own = warp.splat %p : !many
      %cols = warp.coords %x0, 1 : !cols
      // CHECK: scf.for
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %sum = %zs) -> (index, !s64) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: warp.mma_async
        %s = warp.mma wgmma %kt, %kt, %zs transpose_b : !t, !t, !s64
        warp.release %kt : !t
        // CHECK-COUNT-4: warp.gather
        // CHECK: warp.wait
        %g0 = warp.gather %t[%cols, %c0_i32] : !numbers, (!cols, i32) -> !row
        %w0 = warp.broadcast %g0 : !row -> !many
        %e0 = arith.cmpi eq, %w0, %own : !many
        %g1 = warp.gather %t[%cols, %c1_i32] : !numbers, (!cols, i32) -> !row
        %w1 = warp.broadcast %g1 : !row -> !many
        %e1 = arith.cmpi eq, %w1, %own : !many
        %m1 = arith.ori %e0, %e1 : !truths
        %g2 = warp.gather %t[%cols, %c2_i32] : !numbers, (!cols, i32) -> !row
        %w2 = warp.broadcast %g2 : !row -> !many
        %e2 = arith.cmpi eq, %w2, %own : !many
        %m2 = arith.ori %m1, %e2 : !truths
        %g3 = warp.gather %t[%cols, %c3_i32] : !numbers, (!cols, i32) -> !row
        %w3 = warp.broadcast %g3 : !row -> !many
        %e3 = arith.cmpi eq, %w3, %own : !many
        %m3 = arith.ori %m2, %e3 : !truths
        %shown = warp.select %m3, %s, %zs : !truths, !s64
        %sum1 = arith.addf %sum, %shown : !s64
        scf.yield %kn1, %sum1 : index, !s64
      }
    }
  }
  return
}
