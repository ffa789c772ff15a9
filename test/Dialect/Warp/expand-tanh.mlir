// RUN: attn-opt %s --warp-expand-tanh | attn-opt | FileCheck %s
// RUN: attn-opt %s --warp-expand-tanh --remarks-filter=warp-expand-tanh -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --warp-expand-tanh --warp-assign-resources --canonicalize --convert-warp-to-gpu=chip=sm_90a | FileCheck %s --check-prefix=GPU

!s = !warp.frag<64x16xf32, acc, 4>
!r = !warp.frag<64x1xf32, acc, 4>
!h = !warp.frag<64x16xf16, acc, 4>
!view = memref<?x?x?x16xf32, strided<[?, ?, ?, 1], offset: ?>>

// The factor is 0.25 / 0.4. All numbers of a warp are tested by one bit each.
// REMARK: [Passed] expand-tanh | Category:warp-expand-tanh{{.*}}tanh=1
// CHECK-LABEL: warp.kernel @known_factor
// GPU-LABEL: gpu.func @known_factor
func.func @known_factor(%n: index, %out: !view) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %quarter = arith.constant 0.25 : f32
  warp.kernel @known_factor blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ones = warp.splat %one : !s
    // CHECK: %[[S:.*]] = math.exp2
    %s = math.exp2 %ones : !s
    %quarters = warp.splat %quarter : !s
    // CHECK: %[[C:.*]] = arith.constant 6.250000e-01 : f32
    // CHECK: %[[K:.*]] = warp.splat %[[C]] : <64x16xf32, acc, 4>
    // CHECK-NEXT: %[[W:.*]] = arith.mulf %[[S]], %[[K]]
    // CHECK-NEXT: %[[BITS:.*]] = warp.cast bitcast %[[W]] : <64x16xf32, acc, 4> to <64x16xi32, acc, 4>
    // CHECK: arith.constant 1073741824 : i32
    // CHECK: %[[BIT:.*]] = arith.andi %[[BITS]], %{{.*}} : !warp.frag<64x16xi32, acc, 4>
    // CHECK: %[[FAR:.*]] = arith.cmpi ne, %[[BIT]], %{{.*}} : !warp.frag<64x16xi32, acc, 4>
    // CHECK-NEXT: %[[ANY:.*]] = warp.any %[[FAR]] : <64x16xi1, acc, 4>
    // CHECK-NEXT: %[[Y:.*]] = scf.if %[[ANY]] -> (!warp.frag<64x16xf32, acc, 4>) {
    // CHECK-NEXT:   arith.constant 4.000000e-01 : f32
    // CHECK-NEXT:   warp.splat
    // CHECK-NEXT:   %[[X:.*]] = arith.mulf %[[W]]
    // CHECK-NEXT:   math.tanh %[[X]] fastmath<afn>
    // CHECK-NEXT:   scf.yield
    // CHECK-NEXT: } else {
    // CHECK-NEXT:   %[[SQUARE:.*]] = arith.mulf %[[W]], %[[W]]
    // CHECK-COUNT-4: math.fma %{{.*}}, %[[SQUARE]], %{{.*}} : !warp.frag<64x16xf32, acc, 4>
    // CHECK-NEXT:   %[[P:.*]] = arith.mulf %[[W]]
    // CHECK-NEXT:   scf.yield %[[P]]
    // CHECK-NEXT: }
    // CHECK-NEXT: warp.store %[[Y]]
    // GPU: nvvm.vote.sync any
    // GPU: scf.if
    // GPU-COUNT-8: nvvm.ex2.approx
    // GPU: else
    // GPU-NOT: ex2
    %x0 = arith.mulf %s, %quarters : !s
    %y0 = math.tanh %x0 fastmath<afn> : !s
    warp.store %y0, %out[%b, %h, %c0, %c0] : !s, !view
  }
  return
}

// What is known at launch is scaled before the loop.
// REMARK: [Passed] expand-tanh | Category:warp-expand-tanh{{.*}}tanh=1
// CHECK-LABEL: warp.kernel @factor_of_launch
// GPU-LABEL: gpu.func @factor_of_launch
func.func @factor_of_launch(%n: index, %scale: f32, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  warp.kernel @factor_of_launch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ones = warp.splat %one : !s
    // CHECK: %[[S:.*]] = math.exp2
    // CHECK: %[[TWOANDAHALF:.*]] = arith.constant 2.500000e+00 : f32
    // CHECK: %[[SCALAR:.*]] = arith.mulf %arg1, %[[TWOANDAHALF]] : f32
    // CHECK: %[[K:.*]] = warp.splat %[[SCALAR]] : <64x16xf32, acc, 4>
    // CHECK: scf.for
    // CHECK-NEXT: %[[W:.*]] = arith.mulf %[[S]], %[[K]]
    // CHECK-NEXT: warp.cast bitcast %[[W]]
    %s = math.exp2 %ones : !s
    %scales = warp.splat %scale : !s
    scf.for %i = %c0 to %n step %c1 {
      %x0 = arith.mulf %scales, %s : !s
      %y0 = math.tanh %x0 fastmath<afn> : !s
      warp.store %y0, %out[%b, %h, %i, %c0] : !s, !view
    }
  }
  return
}

// No factor, or not one for all numbers: a multiplication more.
// REMARK: [Passed] expand-tanh | Category:warp-expand-tanh{{.*}}tanh=2
// CHECK-LABEL: warp.kernel @no_factor
func.func @no_factor(%n: index, %out: !view) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  warp.kernel @no_factor blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ones = warp.splat %one : !s
    // CHECK: %[[S:.*]] = math.exp2
    // CHECK: arith.constant 2.500000e+00 : f32
    // CHECK-NEXT: %[[K:.*]] = warp.splat
    // CHECK-NEXT: %[[W:.*]] = arith.mulf %[[S]], %[[K]]
    // CHECK-NEXT: warp.cast bitcast %[[W]]
    // CHECK: %[[Y:.*]] = scf.if
    %s = math.exp2 %ones : !s
    %y0 = math.tanh %s fastmath<afn> : !s
    // CHECK: %[[X:.*]] = arith.mulf %[[Y]], %[[S]]
    // CHECK-NEXT: arith.constant 2.500000e+00 : f32
    // CHECK-NEXT: %[[K:.*]] = warp.splat
    // CHECK-NEXT: %[[W:.*]] = arith.mulf %[[X]], %[[K]]
    // CHECK-NEXT: warp.cast bitcast %[[W]]
    %x1 = arith.mulf %y0, %s : !s
    %y1 = math.tanh %x1 fastmath<afn> : !s
    warp.store %y1, %out[%b, %h, %c0, %c0] : !s, !view
  }
  return
}

// All digits are wanted, or it is no tile of f32.
// REMARK: [Missed] expand-tanh | Category:warp-expand-tanh{{.*}}no tanh of a tile may be approximate
// CHECK-LABEL: warp.kernel @others
// CHECK-COUNT-3: math.tanh
// CHECK-NOT: warp.any
func.func @others(%n: index) {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 1.0 : f16
  warp.kernel @others blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.splat %one : !s
    %y0 = math.tanh %s : !s
    %row = warp.splat %one : !r
    %y1 = math.tanh %row fastmath<afn> : !r
    %narrow = warp.splat %half : !h
    %y2 = math.tanh %narrow fastmath<afn> : !h
  }
  return
}
