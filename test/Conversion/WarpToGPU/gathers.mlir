// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!bias = !warp.frag<64x8xf32, acc, 4>

// Outside: the address of element 0 is read, the value is 0. Nothing is read
// of an empty memref.
// CHECK-LABEL: gpu.func @gather
// CHECK: %[[SOME:.*]] = arith.andi
// CHECK: scf.if %[[SOME]] -> (f32, f32, f32, f32)
// CHECK: %[[IN:.*]] = arith.andi
// CHECK: %[[AT:.*]] = arith.select %[[IN]], %{{.*}}, %c0_i64
// CHECK: %[[X:.*]] = llvm.load
// CHECK: arith.select %[[IN]], %[[X]], %cst
// CHECK: else
// CHECK: scf.yield %cst, %cst, %cst, %cst
func.func @gather(%bias: memref<?x?xf32, strided<[?, ?], offset: ?>>, %m: memref<?x8xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base = arith.constant 3 : i32
  warp.kernel @gather blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !warp.frag<64x1xi32, acc, 4>
    %c = warp.coords %base, 1 : !warp.frag<1x8xi32, acc, 4>
    %b = warp.gather %bias[%r, %c] : memref<?x?xf32, strided<[?, ?], offset: ?>>, (!warp.frag<64x1xi32, acc, 4>, !warp.frag<1x8xi32, acc, 4>) -> !bias
    warp.store %b, %m[%i, %c0] : !bias, memref<?x8xf32, strided<[?, 1]>>
  }
  return
}

// Columns that are not behind one another in memory are steps from one address.
// CHECK-LABEL: gpu.func @gather_steps
// CHECK: scf.if
// CHECK: llvm.load
// CHECK-NEXT: %[[STEP:.*]] = arith.muli %[[STRIDE:.*]], %c4_i64 : i64
// CHECK: arith.addi %[[ORIGIN:.*]], %[[STEP]]
// CHECK: arith.muli %[[STRIDE]], %c32_i64 : i64
// CHECK: } else {
// CHECK: arith.select
func.func @gather_steps(%columns: memref<?x?xf32, strided<[?, 1], offset: ?>>, %m: memref<16x32xf32>, %row: i32, %column: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @gather_steps blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(1) shared(0) {
    %r = warp.coords %row, 0 : !warp.frag<16x1xi32, acc, 1>
    %c = warp.coords %column, 1 : !warp.frag<1x32xi32, acc, 1>
    %f = warp.gather %columns[%c, %r] : memref<?x?xf32, strided<[?, 1], offset: ?>>, (!warp.frag<1x32xi32, acc, 1>, !warp.frag<16x1xi32, acc, 1>) -> !warp.frag<16x32xf32, acc, 1>
    warp.store %f, %m[%c0, %c0] : !warp.frag<16x32xf32, acc, 1>, memref<16x32xf32>
  }
  return
}

// Elements of which nothing is known, many of them in a lane: one test of the
// largest index, and loads as they are; else each is tested.
// CHECK-LABEL: gpu.func @of_numbers
// CHECK-COUNT-16: llvm.load
// CHECK-COUNT-15: arith.maxui
// CHECK: %[[WIDE:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: %[[ALL:.*]] = arith.cmpi ult, %[[WIDE]], %{{.*}} : i64
// CHECK: scf.if %[[ALL]]
// CHECK-NOT: arith.select
// CHECK-COUNT-16: llvm.load
// CHECK-NOT: arith.select
// CHECK: } else {
// CHECK: arith.select
// CHECK: llvm.load
func.func @of_numbers(%numbers: memref<?x?xi32>, %table: memref<?xf32>, %out: memref<?x?xf32>, %at: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @of_numbers blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %rows = warp.coords %at, 0 : !warp.frag<64x1xi32, acc, 4>
    %columns = warp.coords %at, 1 : !warp.frag<1x32xi32, acc, 4>
    %n = warp.gather %numbers[%rows, %columns] {inside} : memref<?x?xi32>, (!warp.frag<64x1xi32, acc, 4>, !warp.frag<1x32xi32, acc, 4>) -> !warp.frag<64x32xi32, acc, 4>
    %x = warp.gather %table[%n] : memref<?xf32>, (!warp.frag<64x32xi32, acc, 4>) -> !warp.frag<64x32xf32, acc, 4>
    warp.store %x, %out[%c0, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<?x?xf32>
  }
  return
}
