// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @load_c1(%k: memref<?x80xbf16>, %i: index) {
  // expected-error @below {{got 1 indices, expected one per dimension of 'memref<?x80xbf16>'}}
  %t = tile.load %k[%i] : memref<?x80xbf16>, vector<64x80xbf16>
  return
}

// -----

func.func @load_c2(%k: memref<?x80xbf16>, %i: index) {
  // expected-error @below {{vector element type 'f16' differs from the memref's 'bf16'}}
  %t = tile.load %k[%i, %i] : memref<?x80xbf16>, vector<64x80xf16>
  return
}

// -----

func.func @load_c3_rank(%k: memref<?xbf16>, %i: index) {
  // expected-error @below {{vector rank 2 exceeds the memref's rank 1}}
  %t = tile.load %k[%i] : memref<?xbf16>, vector<64x80xbf16>
  return
}

// -----

func.func @load_c3_scalable(%k: memref<?xbf16>, %i: index) {
  // expected-error @below {{got scalable vector type 'vector<[4]xbf16>', expected fixed sizes}}
  %t = tile.load %k[%i] : memref<?xbf16>, vector<[4]xbf16>
  return
}

// -----

func.func @store_c1(%t: vector<4xf32>, %o: memref<?x80xf32>, %i: index) {
  // expected-error @below {{got 3 indices, expected one per dimension of 'memref<?x80xf32>'}}
  tile.store %t, %o[%i, %i, %i] : vector<4xf32>, memref<?x80xf32>
  return
}

// -----

func.func @store_c2(%t: vector<4xf32>, %o: memref<?x80xf16>, %i: index) {
  // expected-error @below {{vector element type 'f32' differs from the memref's 'f16'}}
  tile.store %t, %o[%i, %i] : vector<4xf32>, memref<?x80xf16>
  return
}

// -----

func.func @store_c3(%t: vector<4x4x4xf32>, %o: memref<?x80xf32>, %i: index) {
  // expected-error @below {{vector rank 3 exceeds the memref's rank 2}}
  tile.store %t, %o[%i, %i] : vector<4x4x4xf32>, memref<?x80xf32>
  return
}

// -----

func.func @gather_c1(%t: memref<?x?xf32>, %i: i32) {
  // expected-error @below {{got 1 indices, expected one per dimension of 'memref<?x?xf32>'}}
  %r = tile.gather %t[%i] : memref<?x?xf32>, (i32) -> vector<4x4xf32>
  return
}

// -----

func.func @gather_c2(%t: memref<?xf32>, %i: i32) {
  // expected-error @below {{result element type 'f16' differs from the memref's 'f32'}}
  %r = tile.gather %t[%i] : memref<?xf32>, (i32) -> vector<4x4xf16>
  return
}

// -----

func.func @gather_c3_scalar(%t: memref<?xf32>, %i: i64) {
  // expected-error @below {{index 0 has type 'i64', expected i32 or a vector of i32 that stretches to 'vector<4x4xf32>'}}
  %r = tile.gather %t[%i] : memref<?xf32>, (i64) -> vector<4x4xf32>
  return
}

// -----

func.func @gather_c3_shape(%t: memref<?xf32>, %i: vector<4x3xi32>) {
  // expected-error @below {{index 0 has type 'vector<4x3xi32>', expected i32 or a vector of i32 that stretches to 'vector<4x4xf32>'}}
  %r = tile.gather %t[%i] : memref<?xf32>, (vector<4x3xi32>) -> vector<4x4xf32>
  return
}

// -----

func.func @coords_c1(%b: i32) {
  // expected-error @below {{axis 2 is not a dimension of 'vector<128x1xi32>'}}
  %r = tile.coords %b, 2 : vector<128x1xi32>
  return
}

// -----

func.func @coords_c2(%b: i32) {
  // expected-error @below {{dimension 0 of 'vector<128x64xi32>' has size 128, expected 1: only axis 1 is counted along}}
  %r = tile.coords %b, 1 : vector<128x64xi32>
  return
}

// -----

func.func @softmax_c1(%s: vector<16x32xf32>, %m: vector<8x1xf32>) {
  // expected-error @below {{row statistics have type 'vector<8x1xf32>', expected one per row: 'vector<16x1xf32>'}}
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %m
    : vector<16x32xf32>, vector<8x1xf32>
  return
}

// -----

func.func @softmax_c2(%s: vector<16x32xf32>, %m: vector<16x1xf32>) {
  // expected-error @below {{scale is -1.000000e+00 : f32, expected a positive finite number}}
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %m {scale = -1.0 : f32}
    : vector<16x32xf32>, vector<16x1xf32>
  return
}

// -----

func.func @softmax_c3(%s: vector<16x32xf32>, %m: vector<16x1xf32>) {
  // expected-error @below {{is exact, but exp2 rounds its argument once more}}
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %m {exact, exp2}
    : vector<16x32xf32>, vector<16x1xf32>
  return
}

// -----

func.func @softmax_c4(%s: vector<16x32xf32>, %m: vector<16x1xf32>) {
  // expected-error @below {{is bounded without exp2: only exp2 depends on it}}
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %m {bounded}
    : vector<16x32xf32>, vector<16x1xf32>
  return
}

// -----

func.func @gather_c4(%m: memref<?xf32>, %r: vector<16x1xi32>) {
  // expected-error @below {{is sorted, expected a memref of integers of rank 1 or more, got 'memref<?xf32>'}}
  %g = tile.gather %m[%r] {sorted} : memref<?xf32>, (vector<16x1xi32>) -> vector<16x1xf32>
  return
}

// -----

func.func @gather_c6(%m: memref<?xf32>, %r: vector<16x1xi32>, %c: vector<1x16xi32>, %n: memref<?x?xf32>) {
  %g = tile.gather %n[%r, %c] {aligned, inside} : memref<?x?xf32>, (vector<16x1xi32>, vector<1x16xi32>) -> vector<16x16xf32>
  // expected-error @below {{is aligned, expected it to be inside, and of rank 2}}
  %h = tile.gather %n[%r, %c] {aligned} : memref<?x?xf32>, (vector<16x1xi32>, vector<1x16xi32>) -> vector<16x16xf32>
  return
}

// -----

func.func @search_c1(%m: memref<?x?xi32>, %r: i32) {
  // expected-error @below {{got 0 leading indices, expected 1 for 'memref<?x?xi32>'}}
  %g = tile.search %m[], %r : memref<?x?xi32>, i32, () -> i32
  return
}

// -----

func.func @search_c2(%m: memref<?xi64>, %r: i32) {
  // expected-error @below {{expected a memref of i32 of rank 1 or more, got 'memref<?xi64>'}}
  %g = tile.search %m[], %r : memref<?xi64>, i32, () -> i32
  return
}

// -----

func.func @search_c3(%m: memref<?xi32>, %r: vector<8x1xi32>) {
  // expected-error @below {{operand 1 has type 'vector<8x1xi32>', expected i32 or a vector of i32 that stretches to 'vector<16x1xi32>'}}
  %g = tile.search %m[], %r : memref<?xi32>, vector<8x1xi32>, () -> vector<16x1xi32>
  return
}

// -----

func.func @search_c4(%m: memref<?xi32>, %r: vector<8x1xi32>) {
  // expected-error @below {{operand 1 has type 'vector<8x1xi32>', expected i32}}
  %g = tile.search %m[], %r : memref<?xi32>, vector<8x1xi32>, () -> i32
  return
}

// -----

func.func @idle_c1(%n: index, %c: i1) {
  tile.kernel @exit plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    scf.if %c {
      // expected-error @below {{must stand directly in a tile.kernel}}
      tile.exit_if %c
    }
  }
  return
}

// -----

func.func @share_blocks_c1(%n: index, %c: i1) {
  tile.kernel @inner plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    scf.if %c {
      // expected-error @below {{must stand directly in a tile.kernel}}
      tile.share_blocks %b of 8
    }
  }
  return
}

// -----

func.func @share_blocks_c1_one(%n: index) {
  tile.kernel @twice plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-note @below {{first one is here}}
    tile.share_blocks %b of 8
    // expected-error @below {{is the second one of its kernel, expected one}}
    tile.share_blocks %h of 8
  }
  return
}

// -----

func.func @share_blocks_c2(%n: index) {
  tile.kernel @none plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error @below {{is of 0 shares, expected at least 1}}
    tile.share_blocks %b of 0
  }
  return
}

// -----

func.func @group_bounds_c1(%lo: index, %hi: index) {
  // expected-error @below {{is of 0 rows, expected at least 1}}
  %r:2 = tile.group_bounds [%lo, %hi) of 0 {
  ^bb0(%row: index):
    tile.yield %lo, %row : index, index
  }
  return
}

// -----

func.func @group_bounds_c2_argument(%lo: index, %hi: index) {
  // expected-error @below {{region is a function of ('i32'), expected ('index')}}
  %r:2 = tile.group_bounds [%lo, %hi) of 64 {
  ^bb0(%row: i32):
    tile.yield %lo, %hi : index, index
  }
  return
}

// -----

func.func @group_bounds_c2_yield(%lo: index, %hi: index) {
  // expected-error @below {{region does not yield 2 of 'index', one for each bound}}
  %r:2 = tile.group_bounds [%lo, %hi) of 64 {
  ^bb0(%row: index):
    tile.yield %row : index
  }
  return
}

// -----

func.func @group_bounds_c3(%lo: index) {
  // expected-error @below {{has 1 bounds, expected at least 2}}
  %r = tile.group_bounds [%lo) of 64 {
  ^bb0(%row: index):
    tile.yield %row : index
  }
  return
}

// -----

func.func @group_bounds_c2_effect(%m: memref<?xindex>, %lo: index, %hi: index) {
  // expected-error @below {{region holds 'memref.load', expected arithmetic}}
  %r:2 = tile.group_bounds [%lo, %hi) of 64 {
  ^bb0(%row: index):
    // expected-note @below {{is here}}
    %own = memref.load %m[%row] : memref<?xindex>
    tile.yield %lo, %own : index, index
  }
  return
}

// -----

// An attribute that nobody has.
func.func @misspelt(%s: vector<16x32xf32>, %m: vector<16x1xf32>) {
  // expected-error @below {{'tile.online_softmax' op has no attribute 'gaurd', did you mean 'guard'?}}
  %r:4 = tile.online_softmax %s, %m, %m {gaurd} : vector<16x32xf32>, vector<16x1xf32>
  return
}

// -----

func.func @gather_c5(%t: memref<?xf32>, %i: i32) {
  // expected-error @below {{gives a scalar outside of tile.scores}}
  %x = tile.gather %t[%i] : memref<?xf32>, (i32) -> f32
  return
}

// -----

func.func @gather_c5_index(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>, %t: memref<?xf32>) {
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    // expected-error @below {{index 0 has type 'vector<16x1xi32>', expected i32 for a scalar result}}
    %bias = tile.gather %t[%i] : memref<?xf32>, (vector<16x1xi32>) -> f32
    tile.yield %bias : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @scores_c1(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>) {
  // expected-error @below {{coordinates have types 'vector<16x1xi32>' and 'vector<16x1xi32>', expected one per row and one per column of 'vector<16x32xf32>'}}
  %y = tile.scores %x at(%b, %b, %i, %i) : vector<16x32xf32>, vector<16x1xi32>, vector<16x1xi32>
  return
}

// -----

func.func @scores_c2_arguments(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  // expected-error @below {{mask region is a function of ('i32', 'i32'), expected ('i32', 'i32', 'i32', 'i32')}}
  %y = tile.scores %x at(%b, %b, %i, %j) mask {
  ^bb0(%query: i32, %key: i32):
    %m = arith.cmpi sle, %key, %query : i32
    tile.yield %m : i1
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @scores_c2_yield(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  // expected-error @below {{score region does not yield 'f32'}}
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    tile.yield %key : i32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @scores_c2_blocks(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  // expected-error @below {{score region has 2 blocks, expected 1}}
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    tile.yield %s : f32
  ^bb1:
    tile.yield %s : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @scores_c3_vector(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  // expected-error @below {{score region holds 'vector.extract', expected scalar code}}
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    // expected-note @below {{is here}}
    %e = vector.extract %x[0, 0] : f32 from vector<16x32xf32>
    tile.yield %e : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @scores_c3_memory(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>, %t: memref<f32>) {
  // expected-error @below {{score region holds 'memref.load', expected scalar code}}
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    // expected-note @below {{is here}}
    %e = memref.load %t[] : memref<f32>
    tile.yield %e : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// -----

func.func @kernel_c1(%n: index) {
  scf.for %i = %n to %n step %n {
    // expected-error @below {{'tile.kernel' op must stand in the entry block of a function}}
    tile.kernel @k plan(#attn.plan<target = cpu, block_q = 64, block_k = 64>) grid(%b, %h, %x) in (%n, %n, %n) {
    }
  }
  return
}

// -----

func.func @kernel_c2(%n: index) {
  // expected-note @below {{the other kernel is here}}
  tile.kernel @k plan(#attn.plan<target = cpu, block_q = 64, block_k = 64>) grid(%b, %h, %x) in (%n, %n, %n) {
  }
  // expected-error @below {{'tile.kernel' op has the name of another kernel, @k, expected one of its own}}
  tile.kernel @k plan(#attn.plan<target = cpu, block_q = 64, block_k = 64>) grid(%b, %h, %x) in (%n, %n, %n) {
  }
  return
}

// -----

func.func @kernel_numbers(%n: index) {
  // expected-error @below {{expected three block numbers, got 2}}
  tile.kernel @k plan(#attn.plan<target = cpu, block_q = 64, block_k = 64>) grid(%b, %h) in (%n, %n, %n) {
  }
  return
}

// -----

// expected-error@+1 {{unknown attribute 'tile.rows' of the tile dialect}}
func.func @attribute() attributes {tile.rows = 64} {
  return
}

// -----

// expected-error@+1 {{'tile.ieee' stands on a vector.contract of f32, got 'func.func'}}
func.func @ieee_function() attributes {tile.ieee} {
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @ieee_f16(%a: vector<8x16xf16>, %c: vector<8x8xf32>) -> vector<8x8xf32> {
  // expected-error@+1 {{'tile.ieee' stands on a vector.contract of f32, got 'vector.contract' of other elements}}
  %d = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, tile.ieee} %a, %a, %c : vector<8x16xf16>, vector<8x16xf16> into vector<8x8xf32>
  return %d : vector<8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @ieee_value(%a: vector<8x16xf32>, %c: vector<8x8xf32>) -> vector<8x8xf32> {
  // expected-error@+1 {{'tile.ieee' must be a unit, got true}}
  %d = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, tile.ieee = true} %a, %a, %c : vector<8x16xf32>, vector<8x16xf32> into vector<8x8xf32>
  return %d : vector<8x8xf32>
}

// -----

func.func @accumulate_f16(%o: memref<?x8xf16>, %t: vector<4x8xf16>, %i: index) {
  // expected-error@+1 {{'tile.store' op accumulates elements of 'f16', expected f32}}
  tile.store %t, %o[%i, %i] accumulate : vector<4x8xf16>, memref<?x8xf16>
  return
}

// -----

func.func @packed_into_too_few(%o: memref<?x16xf32>, %t: vector<4x8xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'tile.store' op packs 'vector<4x8xf32>' into the innermost dimension of 'memref<?x16xf32>', expected rank 2 and as many elements of f32}}
  tile.store %t, %o[%i, %c0] packed : vector<4x8xf32>, memref<?x16xf32>
  return
}

// -----

func.func @packed_from_the_middle(%o: memref<?x32xf32>, %i: index) {
  // expected-error@+1 {{'tile.load' op packs from an innermost index on that is not the constant 0}}
  %t = tile.load %o[%i, %i] packed : memref<?x32xf32>, vector<4x8xf32>
  return
}

// -----

func.func @load_c6_rows(%q: memref<?x?x64xf32>, %i: index) {
  // expected-error@+1 {{'tile.load' op takes 3 slices, expected a number that divides the 16 rows}}
  %t = tile.load %q[%i, %i, %i] slices 3 : memref<?x?x64xf32>, vector<16x64xf32>
  return
}

// -----

func.func @load_c6_rank(%q: memref<?x64xf32>, %i: index) {
  // expected-error@+1 {{'tile.load' op takes slices of 'memref<?x64xf32>', expected a dimension in front of those of 'vector<16x64xf32>'}}
  %t = tile.load %q[%i, %i] slices 2 : memref<?x64xf32>, vector<16x64xf32>
  return
}

// -----

func.func @load_c6_packed(%q: memref<?x?x1024xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'tile.load' op packs a tile of several slices, expected one}}
  %t = tile.load %q[%i, %i, %c0] packed slices 2 : memref<?x?x1024xf32>, vector<16x64xf32>
  return
}

// -----

func.func @store_c6_below(%q: memref<?x?x64xf32>, %t: vector<16x64xf32>, %i: index) {
  // expected-error@+1 {{'tile.store' op has 1 slice below an index, expected several}}
  tile.store %t, %q[%i, %i, %i] below(%i) : vector<16x64xf32>, memref<?x?x64xf32>
  return
}

// -----

func.func @store_c6_none(%q: memref<?x?x64xf32>, %t: vector<16x64xf32>, %i: index) {
  // expected-error@+1 {{'tile.store' op has 0 slices, expected several}}
  tile.store %t, %q[%i, %i, %i] slices 0 : vector<16x64xf32>, memref<?x?x64xf32>
  return
}

// -----

func.func @store_c5_slices(%q: memref<?x?x64xf32>, %t: vector<16x64xf32>, %i: index) {
  // expected-error@+1 {{'tile.store' op accumulates 2 slices, expected one}}
  tile.store %t, %q[%i, %i, %i] accumulate slices 2 : vector<16x64xf32>, memref<?x?x64xf32>
  return
}

// -----

func.func @scores_c1_heads(%x: vector<16x32xf32>, %b: i32, %h: vector<8x1xi32>, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  // expected-error@+1 {{'tile.scores' op has heads of 'vector<8x1xi32>', expected i32, or one for each of 'vector<16x1xi32>'}}
  %y = tile.scores %x at(%b, %h, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>, vector<8x1xi32>
  return
}
