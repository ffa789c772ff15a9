// RUN: attn-opt %s --warp-double-buffer | FileCheck %s
// RUN: attn-opt %s --warp-double-buffer --remarks-filter=warp-double-buffer -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --warp-double-buffer=selective --remarks-filter=warp-double-buffer -o /dev/null 2>&1 | FileCheck %s --check-prefix=SELECTIVE
// What follows takes the loops of two steps: two items of each ring in a body.
// RUN: attn-opt %s --warp-double-buffer --warp-specialize --warp-make-async --warp-insert-turns | FileCheck %s --check-prefix=ROLES

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!q = !warp.slot<128x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!p = !warp.frag<128x64xbf16, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>

// CHECK-LABEL: @overlapped
// ROLES-LABEL: @overlapped
func.func @overlapped(%n: index, %q: !view, %k: !view, %v: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // SELECTIVE: {{^}}{{.*}}:[[@LINE+2]]:{{.*}}Remark="steps of less than 128 keys or 128 columns of values, or with a mask or a score function, do not gain"
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}}loops=1
  warp.kernel @overlapped blocks(%x, %h, %b) in (%n, %n, %n) warps(8) stages(2) {
    %Q = warp.alloc : !q
    %K = warp.alloc : !t
    %V = warp.alloc : !t
    %zero = arith.constant 0.0 : f32
    %zs = warp.splat %zero : !s
    %zo = warp.splat %zero : !o
    %point = arith.constant 0.5 : f32
    %half = warp.splat %point : !o
    %p0 = warp.cast truncf %zs : !s to !p
    warp.copy %q[%b, %h, %x, %c0] to %Q : !view, !q
    // CHECK: %[[TWO:.*]] = arith.muli %c1{{.*}}, %c2
    // CHECK: scf.for %[[I:.*]] = %c1{{.*}} to %[[EVEN:.*]] step %[[TWO]] iter_args(%[[O:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) ->
    // CHECK: warp.copy %{{.*}}[%{{.*}}, %{{.*}}, %[[I]], %{{.*}}]
    // CHECK: warp.mma wgmma %{{.*}} transpose_b
    // CHECK: %[[A:.*]] = warp.convert %[[P]]
    // CHECK: %[[O1:.*]] = warp.mma wgmma %[[A]], %{{.*}}, %[[O]]
    // CHECK: %[[P1:.*]] = warp.cast truncf
    // CHECK: %[[O1S:.*]] = arith.mulf %[[O1]]
    // CHECK: %[[J:.*]] = arith.addi %[[I]], %{{.*}}
    // CHECK: warp.copy %{{.*}}[%{{.*}}, %{{.*}}, %[[J]], %{{.*}}]
    // CHECK: warp.mma wgmma %{{.*}} transpose_b
    // CHECK: %[[A1:.*]] = warp.convert %[[P1]]
    // CHECK: %[[O2:.*]] = warp.mma wgmma %[[A1]], %{{.*}}, %[[O1S]]
    // CHECK: %[[P2:.*]] = warp.cast truncf
    // CHECK-NEXT: %[[O2S:.*]] = arith.mulf %[[O2]]
    // CHECK-NEXT: scf.yield %[[O2S]], %[[P2]]
    // CHECK: scf.for %{{.*}} = %[[EVEN]] to %{{.*}} step %c1{{(_[0-9]+)?}} iter_args
    // CHECK: warp.store

    // ROLES: warp.role @load copy
    // ROLES: scf.for
    // ROLES-COUNT-4: warp.copy_async
    // ROLES: scf.for
    // ROLES-COUNT-2: warp.copy_async
    // ROLES: warp.role @softmax compute
    // ROLES: scf.for
    // ROLES: %[[T:.*]]:3 = warp.turn
    // ROLES: warp.wait %[[T]]#0
    // ROLES: warp.cast
    // ROLES: warp.wait %[[T]]#2
    // ROLES: %[[T:.*]]:3 = warp.turn
    // ROLES: warp.wait %[[T]]#0
    // ROLES: warp.cast
    // ROLES: warp.wait %[[T]]#2
    // The odd step has one set of registers.
    // ROLES: scf.for
    // ROLES: %[[T:.*]]:3 = warp.turn
    // ROLES: warp.wait %[[T]]#0
    // ROLES: warp.wait %[[T]]#2
    // ROLES: warp.cast
    %r:2 = scf.for %i = %c1 to %n step %c1 iter_args(%o = %zo, %p = %p0) -> (!o, !p) {
      warp.copy %k[%b, %h, %i, %c0] to %K : !view, !t
      %s = warp.mma wgmma %Q, %K, %zs transpose_b : !q, !t, !s
      warp.copy %v[%b, %h, %i, %c0] to %V : !view, !t
      %a = warp.convert %p : !p -> !a
      %o1 = warp.mma wgmma %a, %V, %o : !a, !t, !o
      %e = math.exp2 %s : !s
      %p1 = warp.cast truncf %e : !s to !p
      %o2 = arith.mulf %o1, %half : !o
      scf.yield %o2, %p1 : !o, !p
    }
    %rounded = warp.cast truncf %r#0 : !o to !warp.frag<128x128xbf16, acc, 8>
    warp.store %rounded, %out[%b, %h, %x, %c0] : !warp.frag<128x128xbf16, acc, 8>, !view
  }
  return
}

// The product reads what the same step makes.
// CHECK-LABEL: @not_overlapped
// CHECK-NOT: arith.remsi
func.func @not_overlapped(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}}Remark="no loop of step 1 carries an operand of a product in registers"
  warp.kernel @not_overlapped blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.alloc : !t
    %zero = arith.constant 0.0 : f32
    %zs = warp.splat %zero : !s
    %zo = warp.splat %zero : !o
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo) -> (!o) {
      warp.copy %k[%b, %h, %i, %c0] to %K : !view, !t
      %p = warp.cast truncf %zs : !s to !p
      %a = warp.convert %p : !p -> !a
      %o1 = warp.mma wgmma %a, %K, %o : !a, !t, !o
      scf.yield %o1 : !o
    }
  }
  return
}

// 4 groups: 112 registers, of which the tiles would take 2 * 16 + 64.
// CHECK-LABEL: @too_large
// CHECK-NOT: arith.remsi
func.func @too_large(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}}Remark="a lane has 112 registers, two sets of operands and the results would take 96 of them and leave less than 32"
  warp.kernel @too_large blocks(%x, %h, %b) in (%n, %n, %n) warps(16) {
    %K = warp.alloc : !t
    %zero = arith.constant 0.0 : f32
    %zs = warp.splat %zero : !warp.frag<256x64xf32, acc, 16>
    %zo = warp.splat %zero : !warp.frag<256x128xf32, acc, 16>
    %p0 = warp.cast truncf %zs : !warp.frag<256x64xf32, acc, 16> to !warp.frag<256x64xbf16, acc, 16>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %p = %p0) -> (!warp.frag<256x128xf32, acc, 16>, !warp.frag<256x64xbf16, acc, 16>) {
      warp.copy %k[%b, %h, %i, %c0] to %K : !view, !t
      %a = warp.convert %p : !warp.frag<256x64xbf16, acc, 16> -> !warp.frag<256x64xbf16, a, 16>
      %o1 = warp.mma wgmma %a, %K, %o : !warp.frag<256x64xbf16, a, 16>, !t, !warp.frag<256x128xf32, acc, 16>
      %p1 = warp.cast truncf %zs : !warp.frag<256x64xf32, acc, 16> to !warp.frag<256x64xbf16, acc, 16>
      scf.yield %o1, %p1 : !warp.frag<256x128xf32, acc, 16>, !warp.frag<256x64xbf16, acc, 16>
    }
  }
  return
}

// 128 keys; the second loop has a mask, for which 40 registers do not do.
// CHECK-LABEL: @many_keys
// CHECK-COUNT-1: arith.remsi
// CHECK-NOT: arith.remsi
func.func @many_keys(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // SELECTIVE: {{^}}{{.*}}:[[@LINE+2]]:{{.*}}loops=1
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}}loops=1
  warp.kernel @many_keys blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %Q = warp.alloc : !q
    %K = warp.alloc : !q
    %zero = arith.constant 0.0 : f32
    %zo = warp.splat %zero : !o
    %p0 = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
    warp.copy %q[%b, %h, %x, %c0] to %Q : !view, !q
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %p = %p0) -> (!o, !warp.frag<128x128xbf16, acc, 8>) {
      warp.copy %k[%b, %h, %i, %c0] to %K : !view, !q
      %s = warp.mma wgmma %Q, %K, %zo transpose_b : !q, !q, !o
      %a = warp.convert %p : !warp.frag<128x128xbf16, acc, 8> -> !warp.frag<128x128xbf16, a, 8>
      %o1 = warp.mma wgmma %a, %K, %o : !warp.frag<128x128xbf16, a, 8>, !q, !o
      %e = math.exp2 %s : !o
      %p1 = warp.cast truncf %e : !o to !warp.frag<128x128xbf16, acc, 8>
      scf.yield %o1, %p1 : !o, !warp.frag<128x128xbf16, acc, 8>
    }
    %t:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r#0, %p = %r#1) -> (!o, !warp.frag<128x128xbf16, acc, 8>) {
      warp.copy %k[%b, %h, %i, %c0] to %K : !view, !q
      %s = warp.mma wgmma %Q, %K, %zo transpose_b : !q, !q, !o
      %a = warp.convert %p : !warp.frag<128x128xbf16, acc, 8> -> !warp.frag<128x128xbf16, a, 8>
      %o1 = warp.mma wgmma %a, %K, %o : !warp.frag<128x128xbf16, a, 8>, !q, !o
      %mask = arith.cmpf ogt, %s, %zo : !o
      %m = warp.select %mask, %s, %zo : !warp.frag<128x128xi1, acc, 8>, !o
      %e = math.exp2 %m : !o
      %p1 = warp.cast truncf %e : !o to !warp.frag<128x128xbf16, acc, 8>
      scf.yield %o1, %p1 : !o, !warp.frag<128x128xbf16, acc, 8>
    }
  }
  return
}
