// RUN: attn-opt %s --warp-start-early | attn-opt | FileCheck %s
// RUN: attn-opt %s --warp-start-early --remarks-filter=warp-start-early -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --warp-start-early --convert-warp-to-gpu=chip=sm_90a | FileCheck %s --check-prefix=GPU

!view = memref<?x?x?x64xf32>
!f = !warp.frag<64x64xf32, acc, 4>

// @left and @right read what @first wrote, and neither what the other one
// writes; @last reads that of @left alone, and is not before @right's end, as it
// writes what that read.
// CHECK-LABEL: func.func @group(
// CHECK: warp.kernel @first {{.*}} warps(4) {
// CHECK: warp.kernel @left {{.*}} warps(4) starts(early) {
// CHECK: warp.kernel @right {{.*}} warps(4) starts(beside) {
// CHECK: warp.kernel @last {{.*}} warps(4) starts(early) {
// REMARK-DAG: [Passed] start-early | Category:warp-start-early{{.*}}beside=1
// REMARK-DAG: [Passed] start-early | Category:warp-start-early{{.*}}beside=0

// GPU-LABEL: gpu.func @first(
// GPU-NOT: griddepcontrol wait
// GPU: nvvm.griddepcontrol launch_dependents
// GPU-NOT: griddepcontrol
// GPU: gpu.return
// What a block of @right does not wait for is complete when @left's are there.
// GPU-LABEL: gpu.func @left(
// GPU: nvvm.griddepcontrol wait
// GPU-NEXT: nvvm.memory.barrier <gpu>
// GPU-NEXT: nvvm.griddepcontrol launch_dependents
// GPU-NOT: griddepcontrol
// GPU: gpu.return
// GPU-LABEL: gpu.func @right(
// GPU: nvvm.griddepcontrol launch_dependents
// GPU-NEXT: nvvm.memory.barrier <gpu>
// GPU: nvvm.griddepcontrol wait
// GPU-NEXT: gpu.return
// GPU-LABEL: gpu.func @last(
// GPU: nvvm.griddepcontrol wait
// GPU-NOT: griddepcontrol
// GPU: gpu.return
// GPU-LABEL: func.func @group(
// GPU: gpu.launch_func @group_kernels::@first
// GPU-NOT: warp.early
// GPU: gpu.launch_func @group_kernels::@left
// GPU-SAME: {warp.early}
// GPU: gpu.launch_func @group_kernels::@right
// GPU-SAME: {warp.early}
// GPU: gpu.launch_func @group_kernels::@last
// GPU-SAME: {warp.early}
func.func @group(%nx: index, %a: !view, %b: !view, %c: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @first blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %f = warp.splat %zero : !f
    warp.store %f, %a[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @left blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %n = memref.load %a[%z, %y, %x, %c0] : !view
    %f = warp.splat %n : !f
    warp.store %f, %b[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @right blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %n = memref.load %a[%z, %y, %x, %c0] : !view
    %f = warp.splat %n : !f
    warp.store %f, %c[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @last blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %n = memref.load %b[%z, %y, %x, %c0] : !view
    %f = warp.splat %n : !f
    warp.store %f, %a[%z, %y, %x, %c0] : !f, !view
  }
  return
}

// Beside both kernels before it, or it waits: @third touches nothing of @second,
// but reads what @first writes.
// CHECK-LABEL: func.func @three(
// CHECK: warp.kernel @first {{.*}} warps(4) {
// CHECK: warp.kernel @second {{.*}} warps(4) starts(beside) {
// CHECK: warp.kernel @third {{.*}} warps(4) starts(early) {
func.func @three(%nx: index, %a: !view, %b: !view, %c: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @first blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %f = warp.splat %zero : !f
    warp.store %f, %a[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @second blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %f = warp.splat %zero : !f
    warp.store %f, %b[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @third blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(4) {
    %n = memref.load %a[%z, %y, %x, %c0] : !view
    %f = warp.splat %n : !f
    warp.store %f, %c[%z, %y, %x, %c0] : !f, !view
  }
  return
}
