// RUN: attn-opt %s --warp-deepen-rings | FileCheck %s
// RUN: attn-opt %s --warp-deepen-rings=shared-limit=90000 --remarks-filter=warp-deepen-rings 2>&1 | FileCheck %s --check-prefix=TIGHT
// RUN: attn-opt %s --warp-deepen-rings=steps=true | FileCheck %s --check-prefix=STEPS
// RUN: attn-opt %s --warp-deepen-rings="steps=true shared-limit=60000" --remarks-filter=warp-deepen-rings -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!one = !warp.ring<1, 128x128xbf16, panels<128>>
!two = !warp.ring<2, 64x128xbf16, panels<128>>
!step = !warp.ring<1, 64x128xbf16, panels<128>>
!q = !warp.slot<128x128xbf16, panels<128>>
!k = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!exchange = !warp.ring<1, 128x64xbf16, panels<128>>
!d = !warp.frag<128x64xbf16, acc, 8>
!dt = !warp.slot<128x64xbf16, panels<128>>

// The queries' ring is refilled for each tile; the keys' keeps its stages.
// CHECK-LABEL: @resident
// CHECK: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 128x128xbf16, panels<128>>
// CHECK-NEXT: warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// CHECK: warp.copy_async {{.*}} to %[[Q]]{{.*}}, <2, 128x128xbf16, panels<128>>
// CHECK: warp.await %[[Q]]{{.*}} : <2, 128x128xbf16, panels<128>> -> <128x128xbf16, panels<128>>
// TIGHT: remark: [Missed] deepen-rings {{.*}}a second slot would make it 98368 bytes of shared memory of 90000
func.func @resident(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @resident blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) resident {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    %K = warp.ring fills(@load) drains(@softmax) : !two
    %blocks = gpu.grid_dim x
    warp.role @load copy warps(4) {
      %end = scf.for %t = %x to %n step %blocks iter_args(%i = %c0) -> (index) {
        warp.copy_async %q[%b, %h, %t, %c0] to %Q[%i] by tma : !view, !one
        warp.copy_async %k[%b, %h, %t, %c0] to %K[%i] by tma : !view, !two
        %next = arith.addi %i, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !s
      %end = scf.for %t = %x to %n step %blocks iter_args(%i = %c0) -> (index) {
        %qt = warp.await %Q[%i] : !one -> !q
        %kt = warp.await %K[%i] : !two -> !k
        %s = warp.mma wgmma %qt, %kt, %z transpose_b : !q, !k, !s
        warp.release %qt : !q
        warp.release %kt : !k
        %next = arith.addi %i, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// A block that ends with its tile loads no queries ahead.
// CHECK-LABEL: @grid
// CHECK: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
// STEPS-LABEL: @grid
// STEPS: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
func.func @grid(%n: index, %q: !view) {
  %c0 = arith.constant 0 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="no step refills a ring of one slot"
  warp.kernel @grid blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !one
    }
    warp.role @softmax compute warps(8) {
      %qt = warp.await %Q[%c0] : !one -> !q
      warp.release %qt : !q
    }
  }
  return
}

// With `steps` the keys, which each step refills, get a second slot, and the
// queries, which a tile loads once, leave the memory to others.
// CHECK-LABEL: @steps(
// CHECK: warp.ring fills(@load) drains(@softmax) : <2, 128x128xbf16, panels<128>>
// CHECK-NEXT: warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// STEPS-LABEL: @steps(
// STEPS: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
// STEPS-NEXT: %[[K:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// STEPS: warp.copy_async {{.*}} to %[[K]]{{.*}}, <2, 64x128xbf16, panels<128>>
// STEPS: warp.await %[[K]]{{.*}} : <2, 64x128xbf16, panels<128>> -> <64x128xbf16, panels<128>>
func.func @steps(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a second slot would make it 65584 bytes of shared memory of 60000"
  warp.kernel @steps blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) resident {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    %K = warp.ring fills(@load) drains(@softmax) : !step
    %blocks = gpu.grid_dim x
    warp.role @load copy warps(4) {
      %end:3 = scf.while (%t = %x, %i = %c0, %j = %c0) : (index, index, index) -> (index, index, index) {
        %more = arith.cmpi ult, %t, %n : index
        scf.condition(%more) %t, %i, %j : index, index, index
      } do {
      ^bb0(%t: index, %i: index, %j: index):
        warp.copy_async %q[%b, %h, %t, %c0] to %Q[%i] by tma : !view, !one
        %i1 = arith.addi %i, %c1 : index
        %last = scf.for %s = %c0 to %n step %c1 iter_args(%js = %j) -> (index) {
          warp.copy_async %k[%b, %h, %s, %c0] to %K[%js] by tma : !view, !step
          %j1 = arith.addi %js, %c1 : index
          scf.yield %j1 : index
        }
        %t1 = arith.addi %t, %blocks : index
        scf.yield %t1, %i1, %last : index, index, index
      }
    }
    warp.role @softmax compute warps(8) {
      %end:3 = scf.while (%t = %x, %i = %c0, %j = %c0) : (index, index, index) -> (index, index, index) {
        %more = arith.cmpi ult, %t, %n : index
        scf.condition(%more) %t, %i, %j : index, index, index
      } do {
      ^bb0(%t: index, %i: index, %j: index):
        %qt = warp.await %Q[%i] : !one -> !q
        %i1 = arith.addi %i, %c1 : index
        %last = scf.for %s = %c0 to %n step %c1 iter_args(%js = %j) -> (index) {
          %kt = warp.await %K[%js] : !step -> !k
          %j1 = arith.addi %js, %c1 : index
          warp.release %kt : !k
          scf.yield %j1 : index
        }
        warp.release %qt : !q
        %t1 = arith.addi %t, %blocks : index
        scf.yield %t1, %i1, %last : index, index, index
      }
    }
  }
  return
}

// So it is in a block that ends with its tile. What groups exchange in a step
// nobody loads ahead.
// CHECK-LABEL: @steps_of_grid
// CHECK-COUNT-3: warp.ring {{.*}} : <1,
// STEPS-LABEL: @steps_of_grid
// STEPS: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
// STEPS-NEXT: warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// STEPS-NEXT: warp.ring fills(@softmax) drains(@softmax) : <1, 128x64xbf16, panels<128>>
func.func @steps_of_grid(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @steps_of_grid blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    %K = warp.ring fills(@load) drains(@softmax) : !step
    %D = warp.ring fills(@softmax) drains(@softmax) : !exchange
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !one
      %last = scf.for %s = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %s, %c0] to %K[%j] by tma : !view, !step
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : bf16
      %d = warp.splat %zero : !d
      %qt = warp.await %Q[%c0] : !one -> !q
      %last = scf.for %s = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %kt = warp.await %K[%j] : !step -> !k
        warp.store_frag %d to %D[%j] : !d, !exchange
        %dt = warp.await %D[%j] : !exchange -> !dt
        %j1 = arith.addi %j, %c1 : index
        warp.release %dt : !dt
        warp.release %kt : !k
        scf.yield %j1 : index
      }
      warp.release %qt : !q
    }
  }
  return
}
