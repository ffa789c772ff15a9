// RUN: attn-opt %s --convert-tile-to-warp | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
#registers = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, q_in_registers = true>
!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!rows = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: @kernel(
// CHECK-SAME: %[[Q:.*]]: memref<{{.*}}xbf16{{.*}}, %[[K:.*]]: memref<{{.*}}, %[[V:.*]]: memref<{{.*}}, %[[O:.*]]: memref<{{.*}}xbf16{{.*}}, %[[LSE:.*]]: memref<{{.*}}xf32{{.*}}, %[[NB:.*]]: index, %[[NH:.*]]: index, %[[NX:.*]]: index, %[[N:.*]]: index)
func.func @kernel(%q: !view, %k: !view, %v: !view, %out: !view, %lse: !rows,
                  %nb: index, %nh: index, %nx: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // The query block is x, the fastest block number.
  // CHECK: warp.kernel @{{.*}} blocks(%[[X:.*]], %[[H:.*]], %[[B:.*]]) in (%[[NX]], %[[NH]], %[[NB]]) warps(4) stages(1) {
  tile.kernel @kernel plan(#plan) grid(%b, %h, %x) in (%nb, %nh, %nx) {
    // CHECK-NEXT: %[[QS:.*]] = warp.alloc : <64x64xbf16>
    // CHECK-NEXT: %[[KS:.*]] = warp.alloc : <32x64xbf16>
    // CHECK-NEXT: %[[VS:.*]] = warp.alloc : <32x64xbf16>
    // CHECK-NEXT: warp.copy %[[Q]][%[[B]], %[[H]], %[[X]], %{{.*}}] to %[[QS]]
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xbf16>
    // CHECK: %[[ZO:.*]] = warp.splat %{{.*}} : <64x64xf32, acc, 4>
    // CHECK: %[[ZS:.*]] = warp.splat %{{.*}} : <64x32xf32, acc, 4>
    %zo = arith.constant dense<0.0> : vector<64x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %zl = arith.constant dense<0.0> : vector<64x1xf32>
    %neutral = arith.constant dense<0.0> : vector<64xf32>
    // CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%[[OA:.*]] = %[[ZO]], %[[L:.*]] = %{{.*}}) -> (!warp.frag<64x64xf32, acc, 4>, !warp.frag<64x1xf32, acc, 4>)
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%o = %zo, %l = %zl) -> (vector<64x64xf32>, vector<64x1xf32>) {
      // CHECK-NEXT: warp.copy %[[K]][%[[B]], %[[H]], %[[J]], %{{.*}}] to %[[KS]]
      %kt = tile.load %k[%b, %h, %j, %c0] : !view, vector<32x64xbf16>
      // CHECK-NEXT: %[[S:.*]] = warp.mma mma_sync %[[QS]], %[[KS]], %[[ZS]] transpose_b
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xbf16>, vector<32x64xbf16> into vector<64x32xf32>
      // CHECK-NEXT: %[[P:.*]] = math.exp2 %[[S]] : !warp.frag<64x32xf32, acc, 4>
      %p = math.exp2 %s : vector<64x32xf32>
      // CHECK-NEXT: %[[SUM:.*]] = warp.reduce <add> %[[P]] : <64x32xf32, acc, 4> -> <64x1xf32, acc, 4>
      %sum = vector.multi_reduction <add>, %p, %neutral [1] : vector<64x32xf32> to vector<64xf32>
      %column = vector.shape_cast %sum : vector<64xf32> to vector<64x1xf32>
      // CHECK-NEXT: %[[L2:.*]] = arith.addf %[[L]], %[[SUM]] : !warp.frag<64x1xf32, acc, 4>
      %l2 = arith.addf %l, %column : vector<64x1xf32>
      // CHECK-NEXT: warp.copy %[[V]][%[[B]], %[[H]], %[[J]], %{{.*}}] to %[[VS]]
      %vt = tile.load %v[%b, %h, %j, %c0] : !view, vector<32x64xbf16>
      // CHECK-NEXT: %[[PT:.*]] = warp.cast truncf %[[P]]
      %pt = arith.truncf %p : vector<64x32xf32> to vector<64x32xbf16>
      // CHECK-NEXT: %[[PA:.*]] = warp.convert %[[PT]] : <64x32xbf16, acc, 4> -> <64x32xbf16, a, 4>
      // CHECK-NEXT: %[[O2:.*]] = warp.mma mma_sync %[[PA]], %[[VS]], %[[OA]] : !warp.frag
      %o2 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %pt, %vt, %o : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
      // CHECK-NEXT: scf.yield %[[O2]], %[[L2]]
      scf.yield %o2, %l2 : vector<64x64xf32>, vector<64x1xf32>
    }
    // CHECK: %[[OT:.*]] = warp.cast truncf
    %ot = arith.truncf %r#0 : vector<64x64xf32> to vector<64x64xbf16>
    // CHECK: warp.store %[[OT]], %[[O]][%[[B]], %[[H]], %[[X]], %{{.*}}] : <64x64xbf16, acc, 4>
    tile.store %ot, %out[%b, %h, %x, %c0] : vector<64x64xbf16>, !view
    %flat = vector.shape_cast %r#1 : vector<64x1xf32> to vector<64xf32>
    // CHECK: warp.store %{{.*}}, %[[LSE]][%[[B]], %[[H]], %[[X]]] rows : <64x1xf32, acc, 4>
    tile.store %flat, %lse[%b, %h, %x] : vector<64xf32>, !rows
  }
  // CHECK: return
  return
}

// CHECK-LABEL: @query_in_registers(
func.func @query_in_registers(%q: !view, %k: !view, %out: !view, %n: index) {
  %c0 = arith.constant 0 : index
  tile.kernel @query_in_registers plan(#registers) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: %[[QS:.*]] = warp.alloc : <64x64xbf16>
    // CHECK: warp.copy %{{.*}} to %[[QS]]
    // CHECK-NEXT: %[[QF:.*]] = warp.load_frag %[[QS]] : <64x64xbf16> -> <64x64xbf16, a, 4>
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xbf16>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xbf16>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    // CHECK: warp.mma mma_sync %[[QF]], %{{.*}} transpose_b : !warp.frag<64x64xbf16, a, 4>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xbf16>, vector<32x64xbf16> into vector<64x32xf32>
    %st = arith.truncf %s : vector<64x32xf32> to vector<64x32xbf16>
    tile.store %st, %out[%b, %h, %x, %c0] : vector<64x32xbf16>, !view
  }
  return
}

// Score and mask regions: coordinates, gathers, comparisons, casts.
// CHECK-LABEL: @elementwise(
func.func @elementwise(%table: memref<?x?xf32>, %out: memref<?x?xf32>,
                       %n: index, %f: f32) {
  %c0 = arith.constant 0 : i32
  tile.kernel @elementwise plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: %[[ROWS:.*]] = warp.coords %{{.*}}, 0 : <64x1xi32, acc, 4>
    %rows = tile.coords %c0, 0 : vector<64x1xi32>
    // CHECK: %[[COLS:.*]] = warp.coords %{{.*}}, 1 : <1x32xi32, acc, 4>
    %cols = tile.coords %c0, 1 : vector<1x32xi32>
    // CHECK: %[[G:.*]] = warp.gather %{{.*}}[%[[ROWS]], %[[COLS]]] : memref<?x?xf32>, (!warp.frag<64x1xi32, acc, 4>, !warp.frag<1x32xi32, acc, 4>) -> !warp.frag<64x32xf32, acc, 4>
    %g = tile.gather %table[%rows, %cols] : memref<?x?xf32>, (vector<64x1xi32>, vector<1x32xi32>) -> vector<64x32xf32>
    // CHECK: %[[RB:.*]] = warp.broadcast %[[ROWS]] : <64x1xi32, acc, 4> -> <64x32xi32, acc, 4>
    %rb = vector.broadcast %rows : vector<64x1xi32> to vector<64x32xi32>
    %cb = vector.broadcast %cols : vector<1x32xi32> to vector<64x32xi32>
    // CHECK: %[[D:.*]] = arith.subi %[[RB]], %{{.*}} : !warp.frag<64x32xi32, acc, 4>
    %d = arith.subi %rb, %cb : vector<64x32xi32>
    // CHECK: %[[DF:.*]] = warp.cast sitofp %[[D]] : <64x32xi32, acc, 4> to <64x32xf32, acc, 4>
    %df = arith.sitofp %d : vector<64x32xi32> to vector<64x32xf32>
    // CHECK: %[[FS:.*]] = warp.splat %{{.*}} : <64x32xf32, acc, 4>
    %fs = vector.broadcast %f : f32 to vector<64x32xf32>
    // CHECK: %[[Y:.*]] = math.fma %[[DF]], %[[FS]], %[[G]] : !warp.frag<64x32xf32, acc, 4>
    %y = math.fma %df, %fs, %g : vector<64x32xf32>
    // CHECK: %[[C:.*]] = arith.cmpi sle, %{{.*}}, %[[RB]] : !warp.frag<64x32xi32, acc, 4>
    %c = arith.cmpi sle, %cb, %rb : vector<64x32xi32>
    // CHECK: %[[T:.*]] = arith.mulf %{{.*}} fastmath<contract> : !warp.frag<64x32xf32, acc, 4>
    %t = arith.mulf %y, %y fastmath<contract> : vector<64x32xf32>
    // CHECK: warp.select %[[C]], %[[Y]], %[[T]] : <64x32xi1, acc, 4>, <64x32xf32, acc, 4>
    %z = arith.select %c, %y, %t : vector<64x32xi1>, vector<64x32xf32>
    // A selection by a scalar is upstream's.
    // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : !warp.frag<64x32xf32, acc, 4>
    %p = arith.cmpf olt, %f, %f : f32
    %w = arith.select %p, %z, %y : vector<64x32xf32>
    // CHECK: scf.if %{{.*}} -> (!warp.frag<64x32xf32, acc, 4>)
    %u = scf.if %p -> vector<64x32xf32> {
      scf.yield %w : vector<64x32xf32>
    } else {
      scf.yield %y : vector<64x32xf32>
    }
    // An accumulator that is not neutral joins.
    // CHECK: %[[M0:.*]] = warp.splat %{{.*}} : <64x1xf32, acc, 4>
    %m0 = arith.constant dense<1.0> : vector<64xf32>
    // CHECK: %[[M:.*]] = warp.reduce <max>
    // CHECK: %[[M1:.*]] = arith.maxnumf %[[M0]], %[[M]] : !warp.frag<64x1xf32, acc, 4>
    %m1 = vector.multi_reduction <maxnumf>, %u, %m0 [1] : vector<64x32xf32> to vector<64xf32>
    %m = vector.shape_cast %m1 : vector<64xf32> to vector<64x1xf32>
    // CHECK: warp.broadcast %[[M1]]
    %mb = vector.broadcast %m : vector<64x1xf32> to vector<64x32xf32>
    tile.store %mb, %out[%x, %x] : vector<64x32xf32>, memref<?x?xf32>
  }
  return
}

// A constant before the grid is copied into the kernel.
// CHECK-LABEL: @constant_outside(
func.func @constant_outside(%out: memref<?x?xf32>, %n: index) {
  %c = arith.constant dense<2.0> : vector<64x32xf32>
  tile.kernel @constant_outside plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: warp.kernel
    // CHECK: %[[C:.*]] = warp.splat %{{.*}} : <64x32xf32, acc, 4>
    // CHECK: warp.store %[[C]]
    tile.store %c, %out[%x, %x] : vector<64x32xf32>, memref<?x?xf32>
  }
  return
}

// CHECK-LABEL: @no_kernel
// CHECK: vector.broadcast
func.func @no_kernel(%f: f32) -> vector<3xf32> {
  %0 = vector.broadcast %f : f32 to vector<3xf32>
  return %0 : vector<3xf32>
}

// Kernels in order, each by its own plan and under its own name.
// CHECK-LABEL: @two_grids(
func.func @two_grids(%out: memref<?x?xf32>, %n: index) {
  %c = arith.constant dense<2.0> : vector<64x32xf32>
  %one = arith.constant dense<1> : vector<16x8xi32>
  %memory = memref.alloc(%n) : memref<?x8xi32>
  // CHECK: %[[MEMORY:.*]] = memref.alloc
  // CHECK: warp.kernel @prepare {{.*}} warps(1)
  tile.kernel @prepare plan(#attn.plan<target = sm_80, block_q = 16, block_k = 8>) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: warp.store %{{.*}}, %[[MEMORY]]{{.*}} <16x8xi32, acc, 1>
    tile.store %one, %memory[%x, %x] : vector<16x8xi32>, memref<?x8xi32>
  }
  // CHECK: warp.kernel @compute {{.*}} warps(4)
  tile.kernel @compute plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    tile.store %c, %out[%x, %x] : vector<64x32xf32>, memref<?x?xf32>
  }
  memref.dealloc %memory : memref<?x8xi32>
  return
}

// Searches for rows, and for one value.
// CHECK-LABEL: @search(
func.func @search(%table: memref<?x?xi32>, %out: memref<?x?xi32>, %n: index) {
  %c0 = arith.constant 0 : i32
  tile.kernel @search plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: %[[ROWS:.*]] = warp.coords %{{.*}}, 0 : <64x1xi32, acc, 4>
    %rows = tile.coords %c0, 0 : vector<64x1xi32>
    // CHECK: %[[ONE:.*]] = warp.search %{{.*}}[%{{.*}}], %{{.*}} : memref<?x?xi32>, i32, (i32) -> i32
    %one = tile.search %table[%c0], %c0 : memref<?x?xi32>, i32, (i32) -> i32
    // CHECK: warp.search %{{.*}}[%[[ONE]]], %[[ROWS]] : memref<?x?xi32>, !warp.frag<64x1xi32, acc, 4>, (i32) -> !warp.frag<64x1xi32, acc, 4>
    %found = tile.search %table[%one], %rows : memref<?x?xi32>, vector<64x1xi32>, (i32) -> vector<64x1xi32>
    tile.store %found, %out[%x, %x] : vector<64x1xi32>, memref<?x?xi32>
  }
  return
}

// A row of numbers, one for each column of the scores, is read as a fragment.
// CHECK-LABEL: func.func @row(
// CHECK: %[[SLOT:.*]] = warp.alloc : <1x32xf32>
// CHECK: warp.copy %{{.*}} to %[[SLOT]] : memref<2x4x?xf32>, <1x32xf32>
// CHECK: %[[ROW:.*]] = warp.load_frag %[[SLOT]] : <1x32xf32> -> <1x32xf32, acc, 4>
// CHECK: warp.broadcast %[[ROW]] : <1x32xf32, acc, 4> -> <64x32xf32, acc, 4>
func.func @row(%lse: memref<2x4x?xf32>, %out: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @row plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>)
      grid(%b, %h, %x) in (%c1, %c1, %c1) {
    %row = tile.load %lse[%b, %h, %c0] : memref<2x4x?xf32>, vector<1x32xf32>
    %all = vector.broadcast %row : vector<1x32xf32> to vector<64x32xf32>
    tile.store %all, %out[%c0, %c0] : vector<64x32xf32>, memref<?x?xf32>
  }
  return
}

// A row that a branch of the loop reads is the loop's own, too: two loops have
// one slot for it.
// CHECK-LABEL: func.func @row_in_branch(
// CHECK: %[[ROW:.*]] = warp.alloc : <1x64xf32>
// CHECK-NOT: warp.alloc
// CHECK-COUNT-2: warp.copy %{{.*}} to %[[ROW]] :
func.func @row_in_branch(%lse: memref<?x?x?xf32>, %n: index, %take: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @row_in_branch plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %zero = arith.constant dense<0.0> : vector<1x64xf32>
    %first = scf.for %j = %c0 to %x step %c1 iter_args(%sum = %zero) -> (vector<1x64xf32>) {
      %row = tile.load %lse[%b, %h, %j] : memref<?x?x?xf32>, vector<1x64xf32>
      %next = scf.if %take -> (vector<1x64xf32>) {
        %added = arith.addf %sum, %row : vector<1x64xf32>
        scf.yield %added : vector<1x64xf32>
      } else {
        scf.yield %sum : vector<1x64xf32>
      }
      scf.yield %next : vector<1x64xf32>
    }
    %second = scf.for %j = %x to %n step %c1 iter_args(%sum = %first) -> (vector<1x64xf32>) {
      %row = tile.load %lse[%b, %h, %j] : memref<?x?x?xf32>, vector<1x64xf32>
      %next = scf.if %take -> (vector<1x64xf32>) {
        %added = arith.addf %sum, %row : vector<1x64xf32>
        scf.yield %added : vector<1x64xf32>
      } else {
        scf.yield %sum : vector<1x64xf32>
      }
      scf.yield %next : vector<1x64xf32>
    }
  }
  return
}

// A row that a loop within reads has a slot of its own: that loop loads the same
// kind of row, which would come to the same place.
// CHECK-LABEL: func.func @row_in_inner_loop(
// CHECK-COUNT-2: warp.alloc : <1x64xf32>
// CHECK: warp.copy %{{.*}} to %[[OUTER:.*]] :
// CHECK-NOT: warp.copy %{{.*}} to %[[OUTER]] :
// CHECK: warp.copy
func.func @row_in_inner_loop(%lse: memref<?x?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @row_in_inner_loop plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %zero = arith.constant dense<0.0> : vector<1x64xf32>
    %outer = scf.for %i = %c0 to %x step %c1 iter_args(%all = %zero) -> (vector<1x64xf32>) {
      %row = tile.load %lse[%b, %h, %i] : memref<?x?x?xf32>, vector<1x64xf32>
      %inner = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %all) -> (vector<1x64xf32>) {
        %other = tile.load %lse[%b, %h, %j] : memref<?x?x?xf32>, vector<1x64xf32>
        %both = arith.mulf %other, %row : vector<1x64xf32>
        %added = arith.addf %sum, %both : vector<1x64xf32>
        scf.yield %added : vector<1x64xf32>
      }
      scf.yield %inner : vector<1x64xf32>
    }
  }
  return
}
