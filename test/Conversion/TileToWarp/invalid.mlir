// RUN: attn-opt %s --convert-tile-to-warp -split-input-file -verify-diagnostics

func.func @plan_of_another_room(%n: index) {
  // expected-error@+1 {{'tile.kernel' op has a plan for cpu, expected one for a GPU}}
  tile.kernel @k plan(#attn.plan<target = cpu, block_q = 64, block_k = 32>) grid(%b, %h, %x) in (%n, %n, %n) {
  }
  return
}

// -----

func.func @online_softmax(%n: index) {
  tile.kernel @online_softmax plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64x32xf32>
    %m = arith.constant dense<0.0> : vector<64x1xf32>
    // expected-error@+1 {{convert-tile-to-warp needs tile-flat, got a tile.online_softmax; run it after tile-expand-softmax}}
    %p, %m2, %l2, %c = tile.online_softmax %s, %m, %m : vector<64x32xf32>, vector<64x1xf32>
  }
  return
}

// -----

func.func @other_vector_op(%n: index) {
  tile.kernel @other_vector_op plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64x24xf32>
    // expected-error@+1 {{'vector.transpose' op has 'vector<24x64xf32>', which does not spread over 4 warps: got 24 rows, expected a multiple of 16 rows x 4 warps}}
    %t = vector.transpose %s, [1, 0] : vector<64x24xf32> to vector<24x64xf32>
  }
  return
}

// -----

func.func @other_vector_op_that_fits(%n: index) {
  tile.kernel @other_vector_op_that_fits plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error@+1 {{'vector.transpose' op is not part of the flat tile form}}
    %t = vector.transpose %s, [1, 0] : vector<64x64xf32> to vector<64x64xf32>
  }
  return
}

// -----

func.func @region(%n: index) {
  tile.kernel @region plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'scf.while' op is not part of the flat tile form}}
    scf.while : () -> () {
      %f = arith.constant false
      scf.condition(%f)
    } do {
      scf.yield
    }
  }
  return
}

// -----

func.func @rank(%n: index) {
  tile.kernel @rank plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'arith.constant' op has 'vector<2x64x32xf32>', expected rank 2 (or 1) of integers or floats}}
    %c = arith.constant dense<0.0> : vector<2x64x32xf32>
  }
  return
}

// -----

func.func @index_elements(%n: index) {
  tile.kernel @index_elements plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'arith.constant' op has 'vector<64x32xindex>', expected rank 2 (or 1) of integers or floats}}
    %c = arith.constant dense<0> : vector<64x32xindex>
  }
  return
}

// -----

func.func @four_columns(%n: index) {
  tile.kernel @four_columns plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'arith.constant' op has 'vector<64x4xf32>', which does not spread over 4 warps}}
    %c = arith.constant dense<0.0> : vector<64x4xf32>
  }
  return
}

// -----

func.func @constant(%n: index) {
  tile.kernel @constant plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'arith.constant' op has different elements, expected a splat}}
    %c = arith.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]> : vector<1x8xf32>
  }
  return
}

// -----

func.func @load_as_value(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  tile.kernel @load_as_value plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'tile.load' op is used by something else than vector.contract's lhs or rhs}}
    %t = tile.load %v[%x, %x] : memref<?x?xbf16, strided<[?, 1]>>, vector<64x64xbf16>
    // expected-note@+1 {{used here}}
    %u = arith.extf %t : vector<64x64xbf16> to vector<64x64xf32>
  }
  return
}

// -----

func.func @load_rank(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  tile.kernel @load_rank plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'tile.load' op loads 'vector<64xbf16>', expected rank 2}}
    %t = tile.load %v[%x, %x] : memref<?x?xbf16, strided<[?, 1]>>, vector<64xbf16>
  }
  return
}

// -----

func.func @load_elements(%n: index, %v: memref<?x?xi8>) {
  tile.kernel @load_elements plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'tile.load' op loads elements of 'i8', expected f16, bf16 or f32}}
    %t = tile.load %v[%x, %x] : memref<?x?xi8>, vector<64x64xi8>
  }
  return
}

// -----

func.func @load_columns(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  tile.kernel @load_columns plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'tile.load' op does not fit shared memory: got 40 columns, expected a multiple of 16}}
    %t = tile.load %v[%x, %x] : memref<?x?xbf16, strided<[?, 1]>>, vector<64x40xbf16>
  }
  return
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @contract_transposed_ieee(%n: index)
    attributes {attn.numerics = #attn.numerics<f32_products = ieee>} {
  tile.kernel @contract_transposed_ieee plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = arith.constant dense<0.0> : vector<64x64xf32>
    %r = arith.constant dense<0.0> : vector<64x64xf32>
    %a = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error@+1 {{'vector.contract' op has a transposed lhs of f32, expected one by tensor cores, not an ieee product}}
    %s = vector.contract {indexing_maps = [#km, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %l, %r, %a : vector<64x64xf32>, vector<64x64xf32> into vector<64x64xf32>
  }
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>
func.func @contract_maps(%n: index) {
  tile.kernel @contract_maps plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = arith.constant dense<0.0> : vector<64x64xbf16>
    %r = arith.constant dense<0.0> : vector<64x64xbf16>
    %a = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error@+1 {{'vector.contract' op expects maps (m,n,k) -> (m,k) or (k,m), (k,n) or (n,k), (m,n)}}
    %s = vector.contract {indexing_maps = [#mk, #nk, #nm], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %l, %r, %a : vector<64x64xbf16>, vector<64x64xbf16> into vector<64x64xf32>
  }
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @contract_kind(%n: index) {
  tile.kernel @contract_kind plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = arith.constant dense<0.0> : vector<64x64xf32>
    %r = arith.constant dense<0.0> : vector<64x64xf32>
    %a = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error@+1 {{'vector.contract' op expects a sum in f32 of operands of one type}}
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<maxnumf>} %l, %r, %a : vector<64x64xf32>, vector<64x64xf32> into vector<64x64xf32>
  }
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @contract_lhs(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  tile.kernel @contract_lhs plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = arith.constant dense<0.0> : vector<64x24xbf16>
    %a = arith.constant dense<0.0> : vector<64x64xf32>
    // expected-error@+1 {{'tile.load' op does not fit shared memory: got 24 columns, expected a multiple of 16}}
    %r = tile.load %v[%x, %x] : memref<?x?xbf16, strided<[?, 1]>>, vector<64x24xbf16>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %l, %r, %a : vector<64x24xbf16>, vector<64x24xbf16> into vector<64x64xf32>
  }
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#kn = affine_map<(m, n, k) -> (k, n)>
func.func @contract_lhs_columns(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  tile.kernel @contract_lhs_columns plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = arith.constant dense<0.0> : vector<64x8xbf16>
    %a = arith.constant dense<0.0> : vector<64x64xf32>
    %r = tile.load %v[%x, %x] : memref<?x?xbf16, strided<[?, 1]>>, vector<8x64xbf16>
    // expected-error@+1 {{'vector.contract' op lhs 'vector<64x8xbf16>' does not spread over 4 warps: got 8 columns, expected a multiple of 16}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %l, %r, %a : vector<64x8xbf16>, vector<8x64xbf16> into vector<64x64xf32>
  }
  return
}

// -----

func.func @reduction(%n: index) {
  tile.kernel @reduction plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64x64xf32>
    %a = arith.constant dense<0.0> : vector<64xf32>
    // expected-error@+1 {{'vector.multi_reduction' op expects <add> or <maxnumf> of f32 over dimension 1}}
    %r = vector.multi_reduction <maximumf>, %s, %a [1] : vector<64x64xf32> to vector<64xf32>
  }
  return
}

// -----

func.func @extreme_of_warps(%n: index) {
  tile.kernel @extreme_of_warps plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0> : vector<64x1xi32>
    %a = arith.constant 0 : i32
    // expected-error@+1 {{'vector.multi_reduction' op is of elements of 4 warps, expected a kernel of one}}
    %r = vector.multi_reduction <minsi>, %s, %a [0, 1] : vector<64x1xi32> to i32
  }
  return
}

// -----

func.func @reduction_over_rows(%n: index) {
  tile.kernel @reduction_over_rows plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64x64xf32>
    %a = arith.constant dense<0.0> : vector<64xf32>
    // expected-error@+1 {{'vector.multi_reduction' op expects <add> or <maxnumf> of f32 over dimension 1}}
    %r = vector.multi_reduction <add>, %s, %a [0] : vector<64x64xf32> to vector<64xf32>
  }
  return
}

// -----

func.func @shape_cast_of_a_row(%n: index) {
  tile.kernel @shape_cast_of_a_row plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<1x64xf32>
    // expected-error@+1 {{'vector.shape_cast' op casts 'vector<1x64xf32>' to 'vector<64xf32>', expected Mx1 to M or M to Mx1}}
    %r = vector.shape_cast %s : vector<1x64xf32> to vector<64xf32>
  }
  return
}

// -----

func.func @broadcast_of_rank_1(%n: index) {
  tile.kernel @broadcast_of_rank_1 plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %s = arith.constant dense<0.0> : vector<64xf32>
    // expected-error@+1 {{'vector.broadcast' op stretches 'vector<64xf32>', expected rank 2}}
    %r = vector.broadcast %s : vector<64xf32> to vector<64x64xf32>
  }
  return
}

// -----

func.func @vector_from_outside(%n: index, %s: vector<64x64xf32>) {
  tile.kernel @vector_from_outside plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // expected-error@+1 {{'arith.negf' op uses a vector that is computed before the kernel, expected a constant}}
    %0 = arith.negf %s : vector<64x64xf32>
  }
  return
}
