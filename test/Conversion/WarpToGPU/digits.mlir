// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// Columns base + 0, 1, 8, 9, ... 57 of a row in an image of sixteen columns:
// quotient and remainder are those of the first one, plus a constant and a step
// that one test of the first tells. Where all rows of the image that there can be
// are in the table, an element lies at one address of two, plus a constant.
// CHECK-LABEL: gpu.func @gather_digits
// CHECK: %[[REST:.*]] = arith.andi %{{.*}}, %c15_i32 : i32
// CHECK: %[[LAST:.*]] = arith.cmpi uge, %[[REST]], %c15_i32
// CHECK: %[[HALF:.*]] = arith.cmpi uge, %[[REST]], %c8_i32
// CHECK: scf.if %{{.*}} -> ({{(f32, )+}}f32) {
// CHECK: %[[STEP:.*]] = arith.addi %{{.*}}, %c-64_i64
// CHECK: llvm.load
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST:.*]], %[[STEP]] : i64
// CHECK: %[[PLACE:.*]] = arith.select %[[LAST]], %[[NEXT]], %[[FIRST]] : i64
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[PLACE]]
// CHECK: llvm.getelementptr %[[POINTER]][4]
// CHECK-NEXT: llvm.load
// CHECK: %[[PLACE:.*]] = arith.select %[[HALF]], %[[NEXT]], %[[FIRST]] : i64
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[PLACE]]
// CHECK: llvm.getelementptr %[[POINTER]][32]
// CHECK-COUNT-14: llvm.load
// CHECK-NOT: llvm.load
// CHECK: } else {
// CHECK: gpu.return
func.func @gather_digits(%table: memref<?x?xf32, strided<[?, 1]>>, %m: memref<?x64xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : i32
  warp.kernel @gather_digits blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x64xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x64xi32, acc, 4>
    %row = arith.floordivsi %c, %size : !warp.frag<1x64xi32, acc, 4>
    %before = arith.muli %row, %size : !warp.frag<1x64xi32, acc, 4>
    %column = arith.subi %c, %before : !warp.frag<1x64xi32, acc, 4>
    %b = warp.gather %table[%row, %column] : memref<?x?xf32, strided<[?, 1]>>, (!warp.frag<1x64xi32, acc, 4>, !warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}

// Here one divisor is that of both, and all elements are known to be there.
// CHECK-LABEL: gpu.func @gather_flat
// CHECK: arith.select %{{.*}} : i64
// CHECK: gpu.return
func.func @gather_flat(%table: memref<10000xf32, strided<[1]>>, %m: memref<?x64xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : i32
  %c16 = arith.constant 16 : i32
  %most = arith.constant 2147483500 : i32
  warp.kernel @gather_flat blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x64xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x64xi32, acc, 4>
    %other = warp.splat %c12 : !warp.frag<1x64xi32, acc, 4>
    %row = arith.floordivsi %c, %size : !warp.frag<1x64xi32, acc, 4>
    %column_row = arith.floordivsi %c, %size : !warp.frag<1x64xi32, acc, 4>
    %before = arith.muli %column_row, %size : !warp.frag<1x64xi32, acc, 4>
    %column = arith.subi %c, %before : !warp.frag<1x64xi32, acc, 4>
    %first = arith.muli %row, %size : !warp.frag<1x64xi32, acc, 4>
    %twice = arith.addi %first, %first : !warp.frag<1x64xi32, acc, 4>
    %at = arith.addi %twice, %column : !warp.frag<1x64xi32, acc, 4>
    %b = warp.gather %table[%at] {inside} : memref<10000xf32, strided<[1]>>, (!warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}

// Not of quotients neither of whose divisors divides the other one, nor of what
// may wrap around.
// CHECK-LABEL: gpu.func @gather_two_images
// CHECK-NOT: arith.select %{{.*}} : i64
// CHECK: gpu.return
func.func @gather_two_images(%table: memref<10000xf32, strided<[1]>>, %m: memref<?x64xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : i32
  %c16 = arith.constant 16 : i32
  %most = arith.constant 2147483500 : i32
  warp.kernel @gather_two_images blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x64xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x64xi32, acc, 4>
    %other = warp.splat %c12 : !warp.frag<1x64xi32, acc, 4>
    %row = arith.floordivsi %c, %size : !warp.frag<1x64xi32, acc, 4>
    %column_row = arith.floordivsi %c, %other : !warp.frag<1x64xi32, acc, 4>
    %before = arith.muli %column_row, %other : !warp.frag<1x64xi32, acc, 4>
    %column = arith.subi %c, %before : !warp.frag<1x64xi32, acc, 4>
    %first = arith.muli %row, %size : !warp.frag<1x64xi32, acc, 4>
    %twice = arith.addi %first, %first : !warp.frag<1x64xi32, acc, 4>
    %at = arith.addi %twice, %column : !warp.frag<1x64xi32, acc, 4>
    %b = warp.gather %table[%at] {inside} : memref<10000xf32, strided<[1]>>, (!warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}

// CHECK-LABEL: gpu.func @gather_wrapped
// CHECK-NOT: arith.select %{{.*}} : i64
// CHECK: gpu.return
func.func @gather_wrapped(%table: memref<10000xf32, strided<[1]>>, %m: memref<?x64xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : i32
  %c16 = arith.constant 16 : i32
  %most = arith.constant 2147483500 : i32
  warp.kernel @gather_wrapped blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x64xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x64xi32, acc, 4>
    %other = warp.splat %c12 : !warp.frag<1x64xi32, acc, 4>
    %offset = warp.splat %most : !warp.frag<1x64xi32, acc, 4>
    %moved = arith.addi %c, %offset : !warp.frag<1x64xi32, acc, 4>
    %row = arith.floordivsi %moved, %size : !warp.frag<1x64xi32, acc, 4>
    %column_row = arith.floordivsi %moved, %size : !warp.frag<1x64xi32, acc, 4>
    %before = arith.muli %column_row, %size : !warp.frag<1x64xi32, acc, 4>
    %column = arith.subi %moved, %before : !warp.frag<1x64xi32, acc, 4>
    %first = arith.muli %row, %size : !warp.frag<1x64xi32, acc, 4>
    %twice = arith.addi %first, %first : !warp.frag<1x64xi32, acc, 4>
    %at = arith.addi %twice, %column : !warp.frag<1x64xi32, acc, 4>
    %b = warp.gather %table[%at] {inside} : memref<10000xf32, strided<[1]>>, (!warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}

// Of quotients alone there are five elements, and five loads.
// CHECK-LABEL: gpu.func @gather_quotients
// CHECK-COUNT-5: llvm.load
// CHECK-NOT: llvm.load
// CHECK: gpu.return
func.func @gather_quotients(%map: memref<100xf32, strided<[1]>>, %m: memref<?x64xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : i32
  warp.kernel @gather_quotients blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x64xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x64xi32, acc, 4>
    %block = arith.floordivsi %c, %size : !warp.frag<1x64xi32, acc, 4>
    %b = warp.gather %map[%block] : memref<100xf32, strided<[1]>>, (!warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}
