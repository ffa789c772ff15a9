// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!acc = !warp.frag<64x16xf32, acc, 4>
!int = !warp.frag<64x16xi32, acc, 4>
!rows = !warp.frag<64x1xi32, acc, 4>
!cols = !warp.frag<1x16xi32, acc, 4>
!out = memref<?x?xf32, strided<[?, 1]>>

// A row less a column: one difference for all elements, then constants: 0 and 1
// to 9 columns less, 8 rows more. It is converted once, and compared as it is.
// CHECK-LABEL: gpu.func @distance
// CHECK-SAME: %[[LIMIT:.*]]: i32,
// CHECK: %[[D:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK-NOT: arith.subi
// CHECK: %[[F:.*]] = arith.sitofp %[[D]] : i32 to f32
// CHECK-NOT: arith.sitofp
// CHECK: %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: arith.addf %[[F]], %[[MINUS]]
// CHECK: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
// CHECK: arith.addf %[[F]], %[[EIGHT]]
// CHECK-NOT: arith.sitofp
// CHECK: %[[REST:.*]] = llvm.intr.ssub.sat(%[[LIMIT]], %[[D]])
// CHECK-NOT: ssub.sat
// CHECK: arith.cmpi slt, %c-1_i32{{.*}}, %[[REST]]
// CHECK: arith.cmpi slt, %c8_i32{{.*}}, %[[REST]]
func.func @distance(%limit: i32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @distance blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %f = warp.cast sitofp %d : !int to !acc
    %l = warp.splat %limit : !int
    %m = arith.cmpi slt, %d, %l : !int
    %n = warp.cast uitofp %m : !warp.frag<64x16xi1, acc, 4> to !acc
    %s = arith.addf %f, %n : !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// Rows from memory may be anything: sums wrap around as they did, but what may
// wrap is not compared or converted in parts.
// CHECK-LABEL: gpu.func @memory
// CHECK: %[[ROW:.*]] = llvm.load
// CHECK: %[[D:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[D]], %{{.*}} : i32
// CHECK: arith.sitofp %[[D]] : i32 to f32
// CHECK: arith.sitofp %[[NEXT]] : i32 to f32
// CHECK-NOT: ssub.sat
func.func @memory(%limit: i32, %v: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @memory blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %g = warp.gather %v[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !cols
    %gb = warp.broadcast %g : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %gb, %cb : !int
    %f = warp.cast sitofp %d : !int to !acc
    %l = warp.splat %limit : !int
    %m = arith.cmpi slt, %d, %l : !int
    %n = warp.cast uitofp %m : !warp.frag<64x16xi1, acc, 4> to !acc
    %s = arith.addf %f, %n : !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// A position times a rate, plus something of the row: that of the lane's first
// column, plus constants times the rate; not without leave to reassociate.
// CHECK-LABEL: gpu.func @scaled
// CHECK-SAME: %[[RATE:[a-z0-9]+]]: f32,
// CHECK: %[[F:.*]] = arith.sitofp
// CHECK: %[[FIRST:.*]] = llvm.intr.fma(%[[F]], %[[RATE]], %[[ROW:.*]]) :
// CHECK: %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: llvm.intr.fma(%[[RATE]], %[[MINUS]], %[[FIRST]]) :
// CHECK: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
// CHECK: llvm.intr.fma(%[[RATE]], %[[EIGHT]], %[[FIRST]]) :
// CHECK-LABEL: gpu.func @exactly
// CHECK: %[[N:.*]] = arith.addf
// CHECK: llvm.intr.fma(%[[N]], %{{.*}}, %{{.*}}) :
func.func @scaled(%rate: f32, %row: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @scaled blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %f = warp.cast sitofp %d : !int to !acc
    %s = warp.splat %rate : !acc
    %t = warp.splat %row : !acc
    %x = math.fma %f, %s, %t fastmath<reassoc> : !acc
    warp.store %x, %o[%i, %i] : !acc, !out
  }
  return
}
func.func @exactly(%rate: f32, %row: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @exactly blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %f = warp.cast sitofp %d : !int to !acc
    %s = warp.splat %rate : !acc
    %t = warp.splat %row : !acc
    %x = math.fma %f, %s, %t : !acc
    warp.store %x, %o[%i, %i] : !acc, !out
  }
  return
}

// Sums that may leave 32 bits beside a lane's columns: compared as they stand.
// CHECK-LABEL: gpu.func @large_constants
// CHECK-NOT: ssub.sat
// CHECK: gpu.return
func.func @large_constants(%limit: i32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @large_constants blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %large = arith.constant 2147483584 : i32
    %c = warp.coords %base, 1 : !cols
    %cb = warp.broadcast %c : !cols -> !int
    %s = warp.splat %large : !int
    %d = arith.addi %cb, %s : !int
    %l = warp.splat %limit : !int
    %m = arith.cmpi slt, %d, %l : !int
    %n = warp.cast uitofp %m : !warp.frag<64x16xi1, acc, 4> to !acc
    warp.store %n, %o[%i, %i] : !acc, !out
  }
  return
}
