// RUN: attn-opt %s --convert-tile-to-loops --split-input-file --verify-diagnostics

func.func @constant(%o: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{only splat constants can be lowered to loops}}
  %c = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
  tile.store %c, %o[%c0] : vector<2xf32>, memref<2xf32>
  return
}

// -----

func.func @unknown(%m: memref<2xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = tile.load %m[%c0] : memref<2xf32>, vector<2xf32>
  // expected-error @below {{'vector.extract' on vectors cannot be lowered to loops}}
  %c = vector.extract %v[0] : f32 from vector<2xf32>
  return %c : f32
}

// -----

// expected-error @below {{vector arguments of 'func.func' cannot be lowered to loops}}
func.func @argument(%v: vector<2xf32>) {
  return
}

// -----

func.func @product(%a: memref<4x4xf32>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %x = tile.load %a[%c0, %c0] : memref<4x4xf32>, vector<4x4xf32>
  %y = tile.load %b[%c0] : memref<4xf32>, vector<4xf32>
  // expected-error @below {{only a matrix product that adds, of rank-2 vectors, can be lowered to loops}}
  %s = vector.contract {
    indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m)>],
    iterator_types = ["parallel", "reduction"]} %x, %y, %zero
    : vector<4x4xf32>, vector<4xf32> into vector<4xf32>
  tile.store %s, %b[%c0] : vector<4xf32>, memref<4xf32>
  return
}

// -----

func.func @carrier(%a: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tile.load %a[%c0] : memref<4xf32>, vector<4xf32>
  // expected-error @below {{'scf.while' on vectors cannot be lowered to loops}}
  %r = scf.while (%v = %x) : (vector<4xf32>) -> vector<4xf32> {
    %false = arith.constant false
    scf.condition(%false) %v : vector<4xf32>
  } do {
  ^bb0(%v: vector<4xf32>):
    scf.yield %v : vector<4xf32>
  }
  tile.store %r, %a[%c0] : vector<4xf32>, memref<4xf32>
  return
}
