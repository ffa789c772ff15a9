// RUN: attn-opt %s --warp-defer-sum | FileCheck %s

!s = !warp.frag<64x32xf32, acc, 4>
!row = !warp.frag<64x1xf32, acc, 4>

// CHECK-LABEL: @chain(
// CHECK-SAME: %[[P:.*]]: !warp.frag<64x32xf32, acc, 4>, %[[C:.*]]: !warp.frag<64x1xf32, acc, 4>,
func.func @chain(%p: !s, %c: !row, %n: index, %m: index,
                 %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @chain blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    // CHECK: %[[L0:.*]] = warp.splat %{{.*}} : <64x4xf32, acc, 4>
    // CHECK: %[[FIRST:.*]]:2 = scf.for {{.*}} iter_args(%[[L:.*]] = %[[L0]], %[[M:.*]] = %[[C]]) -> (!warp.frag<64x4xf32, acc, 4>, !warp.frag<64x1xf32, acc, 4>)
    %first:2 = scf.for %j = %c0 to %m step %c1 iter_args(%l = %l0, %mx = %c) -> (!row, !row) {
      // CHECK: %[[SUM:.*]] = warp.reduce <add> %[[P]] : <64x32xf32, acc, 4> -> <64x4xf32, acc, 4>
      %sum = warp.reduce <add> %p : !s -> !row
      // CHECK: %[[C4:.*]] = warp.broadcast %[[C]] : <64x1xf32, acc, 4> -> <64x4xf32, acc, 4>
      // CHECK: %[[L2:.*]] = math.fma %[[L]], %[[C4]], %[[SUM]] : !warp.frag<64x4xf32, acc, 4>
      %l2 = math.fma %l, %c, %sum : !row
      // CHECK: scf.yield %[[L2]], %[[M]]
      scf.yield %l2, %mx : !row, !row
    }
    // CHECK-NOT: warp.reduce
    // CHECK: %[[SECOND:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]]#0, %{{.*}} = %[[FIRST]]#1)
    %second:2 = scf.for %j = %m to %n step %c1 iter_args(%l = %first#0, %mx = %first#1) -> (!row, !row) {
      %sum = warp.reduce <add> %p : !s -> !row
      %l2 = math.fma %l, %c, %sum : !row
      scf.yield %l2, %mx : !row, !row
    }
    // CHECK: %[[TOTAL:.*]] = warp.reduce <add> %[[SECOND]]#0 : <64x4xf32, acc, 4> -> <64x1xf32, acc, 4>
    // CHECK: warp.store %[[TOTAL]]
    warp.store %second#0, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// A first step before the loop is deferred with it.
// CHECK-LABEL: @first_step(
// CHECK-SAME: %[[P:.*]]: !warp.frag<64x32xf32, acc, 4>, %[[C:.*]]: !warp.frag<64x1xf32, acc, 4>,
func.func @first_step(%p: !s, %c: !row, %n: index, %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @first_step blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    // CHECK-NOT: 64x32xf32, acc, 4> -> <64x1xf32
    // CHECK: %[[SUM:.*]] = warp.reduce <add> %[[P]] : <64x32xf32, acc, 4> -> <64x4xf32, acc, 4>
    // CHECK: %[[Z:.*]] = warp.splat %{{.*}} : <64x4xf32, acc, 4>
    // CHECK: %[[C4:.*]] = warp.broadcast %[[C]]
    // CHECK: %[[L1:.*]] = math.fma %[[Z]], %[[C4]], %[[SUM]]
    %sum0 = warp.reduce <add> %p : !s -> !row
    %l1 = math.fma %l0, %c, %sum0 : !row
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[L1]]) -> (!warp.frag<64x4xf32, acc, 4>)
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %l1) -> (!row) {
      %sum = warp.reduce <add> %p : !s -> !row
      %l2 = math.fma %l, %c, %sum : !row
      scf.yield %l2 : !row
    }
    // CHECK: warp.reduce <add> %{{.*}} : <64x4xf32, acc, 4> -> <64x1xf32, acc, 4>
    warp.store %r, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// A step that is done again if a sum is too large: each lane looks at its part.
// CHECK-LABEL: @lazy(
// CHECK-SAME: %[[P:.*]]: !warp.frag<64x32xf32, acc, 4>, %[[C:.*]]: !warp.frag<64x1xf32, acc, 4>,
func.func @lazy(%p: !s, %c: !row, %n: index, %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %large = arith.constant 1024.0 : f32
  warp.kernel @lazy blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    %limit = warp.splat %large : !row
    // CHECK: scf.for {{.*}} iter_args(%[[L:.*]] = %{{.*}}) -> (!warp.frag<64x4xf32, acc, 4>)
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %l0) -> (!row) {
      // CHECK-NEXT: %[[SUM:.*]] = warp.reduce <add> %[[P]] : <64x32xf32, acc, 4> -> <64x4xf32, acc, 4>
      %sum = warp.reduce <add> %p : !s -> !row
      // CHECK-NEXT: %[[LIMIT:.*]] = warp.splat %{{.*}} : <64x4xf32, acc, 4>
      // CHECK-NEXT: %[[OVER:.*]] = arith.cmpf uge, %[[SUM]], %[[LIMIT]] : !warp.frag<64x4xf32, acc, 4>
      %over = arith.cmpf uge, %sum, %limit : !row
      // CHECK-NEXT: %[[REDO:.*]] = warp.any %[[OVER]] : <64x4xi1, acc, 4>
      %redo = warp.any %over : !warp.frag<64x1xi1, acc, 4>
      // CHECK-NEXT: %[[ADDED:.*]] = arith.addf %[[L]], %[[SUM]] : !warp.frag<64x4xf32, acc, 4>
      %added = arith.addf %l, %sum : !row
      // CHECK-NEXT: scf.if %[[REDO]] -> (!warp.frag<64x4xf32, acc, 4>)
      %l2 = scf.if %redo -> (!row) {
        // CHECK-NEXT: %[[SUM2:.*]] = warp.reduce <add> %[[P]] : <64x32xf32, acc, 4> -> <64x4xf32, acc, 4>
        %sum2 = warp.reduce <add> %p : !s -> !row
        // CHECK-NEXT: %[[C4:.*]] = warp.broadcast %[[C]]
        // CHECK-NEXT: math.fma %[[L]], %[[C4]], %[[SUM2]]
        %l1 = math.fma %l, %c, %sum2 : !row
        scf.yield %l1 : !row
      } else {
        // CHECK: scf.yield %[[ADDED]]
        scf.yield %added : !row
      }
      scf.yield %l2 : !row
    }
    // CHECK: %[[TOTAL:.*]] = warp.reduce <add> %{{.*}} : <64x4xf32, acc, 4> -> <64x1xf32, acc, 4>
    // CHECK-NEXT: arith.cmpf oeq, %[[TOTAL]]
    // CHECK-NEXT: warp.store %[[TOTAL]]
    %empty = arith.cmpf oeq, %r, %l0 : !row
    warp.store %r, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// Whether a sum is small is not known from its parts.
// CHECK-LABEL: @small(
// CHECK-NOT: 64x4
func.func @small(%p: !s, %n: index, %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @small blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %l0) -> (!row) {
      %sum = warp.reduce <add> %p : !s -> !row
      %under = arith.cmpf ult, %sum, %l0 : !row
      %any = warp.any %under : !warp.frag<64x1xi1, acc, 4>
      %added = arith.addf %l, %sum : !row
      scf.yield %added : !row
    }
    warp.store %r, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// A sum that does not start at zero stays.
// CHECK-LABEL: @starts_elsewhere(
// CHECK-NOT: 64x4
func.func @starts_elsewhere(%p: !s, %c: !row, %n: index, %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @starts_elsewhere blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%l = %c) -> (!row) {
      %sum = warp.reduce <add> %p : !s -> !row
      %l2 = math.fma %l, %c, %sum : !row
      scf.yield %l2 : !row
    }
    warp.store %r, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// A maximum is not linear, and a sum that the body looks at must be whole.
// CHECK-LABEL: @other_steps(
// CHECK-NOT: 64x4
func.func @other_steps(%p: !s, %c: !row, %n: index, %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @other_steps blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%l = %l0, %k = %l0) -> (!row, !row) {
      %max = warp.reduce <max> %p : !s -> !row
      %l2 = math.fma %l, %c, %max : !row
      %sum = warp.reduce <add> %p : !s -> !row
      %k2 = math.fma %k, %c, %sum : !row
      warp.store %k2, %lse[%x] rows : !row, memref<?xf32>
      scf.yield %l2, %k2 : !row, !row
    }
    warp.store %r#0, %lse[%x] rows : !row, memref<?xf32>
    warp.store %r#1, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}

// The second loop has another form: the total is taken before it.
// CHECK-LABEL: @chain_that_ends_early(
func.func @chain_that_ends_early(%p: !s, %c: !row, %n: index, %m: index,
                                 %lse: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @chain_that_ends_early blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %l0 = warp.splat %zero : !row
    // CHECK: %[[FIRST:.*]] = scf.for {{.*}} -> (!warp.frag<64x4xf32, acc, 4>)
    %first = scf.for %j = %c0 to %m step %c1 iter_args(%l = %l0) -> (!row) {
      %sum = warp.reduce <add> %p : !s -> !row
      %l2 = math.fma %l, %c, %sum : !row
      scf.yield %l2 : !row
    }
    // CHECK: %[[TOTAL:.*]] = warp.reduce <add> %[[FIRST]]
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[TOTAL]]) -> (!warp.frag<64x1xf32, acc, 4>)
    %second = scf.for %j = %m to %n step %c1 iter_args(%l = %first) -> (!row) {
      %l2 = arith.addf %l, %c : !row
      scf.yield %l2 : !row
    }
    warp.store %second, %lse[%x] rows : !row, memref<?xf32>
  }
  return
}
