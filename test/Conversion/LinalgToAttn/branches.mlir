// RUN: attn-opt %s --attn-raise | FileCheck %s
// RUN: attn-opt %s --attn-validate-raise="samples=2 cpu=%cpu" -o /dev/null

// A branch in an element is a choice, as importers of StableHLO write what is
// joined: the sink here.

!t = tensor<2x3x6x8xf32>

// CHECK-LABEL: func @sink
// CHECK: attn.attention {{.*}} sink
// CHECK-NOT: math.exp
// CHECK: return
func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<3xf32>) -> !t {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %c6 = arith.constant 6 : index
  %es = tensor.empty() : tensor<2x3x6x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
                                        affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : !t, !t) outs(%zs : tensor<2x3x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> tensor<2x3x6x6xf32>
  %en = tensor.empty() : tensor<2x3x6x7xf32>
  %joined = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%en : tensor<2x3x6x7xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %isKey = arith.cmpi ult, %j, %c6 : index
    %y = scf.if %isKey -> (f32) {
      %x = tensor.extract %s[%b, %h, %i, %j] : tensor<2x3x6x6xf32>
      scf.yield %x : f32
    } else {
      %x = tensor.extract %sink[%h] : tensor<3xf32>
      scf.yield %x : f32
    }
    linalg.yield %y : f32
  } -> tensor<2x3x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x3x6x7xf32>) outs(%en : tensor<2x3x6x7xf32>) -> tensor<2x3x6x7xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 0] [2, 3, 6, 6] [1, 1, 1, 1] : tensor<2x3x6x7xf32> to tensor<2x3x6x6xf32>
  %eo = tensor.empty() : !t
  %zo = linalg.fill ins(%zero : f32) outs(%eo : !t) -> !t
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>,
                                        affine_map<(b, h, i, d, j) -> (b, h, i, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<2x3x6x6xf32>, !t) outs(%zo : !t) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> !t
  return %o : !t
}

// A branch that does more than give a number stays.
// CHECK-LABEL: func @printed
// CHECK-NOT: attn.attention
// CHECK: return
func.func private @note(f32) -> f32
func.func @printed(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>, %seen: tensor<6x6xi1>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<6x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %hidden = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                            iterator_types = ["parallel", "parallel"]}
      ins(%s, %seen : tensor<6x6xf32>, tensor<6x6xi1>) outs(%es : tensor<6x6xf32>) {
  ^bb0(%x: f32, %c: i1, %out: f32):
    %y = scf.if %c -> (f32) {
      scf.yield %x : f32
    } else {
      %n = func.call @note(%x) : (f32) -> f32
      scf.yield %n : f32
    }
    linalg.yield %y : f32
  } -> tensor<6x6xf32>
  %w = linalg.softmax dimension(1) ins(%hidden : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}

// The logarithm of the sum beside a softmax, with a maximum of its own and a
// guard, is a result of attention.
// CHECK-LABEL: func @logarithm
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention
// CHECK-NOT: math.
// CHECK: return
func.func @logarithm(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %es = tensor.empty() : tensor<6x6xf32>
  %er = tensor.empty() : tensor<6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %top = linalg.reduce { arith.maximumf } ins(%s : tensor<6x6xf32>) outs(%lows : tensor<6xf32>) dimensions = [1]
  %proper = linalg.map ins(%top : tensor<6xf32>) outs(%er : tensor<6xf32>) (%m: f32, %init: f32) {
    %a = math.absf %m : f32
    %c = arith.cmpf one, %a, %high : f32
    %y = arith.select %c, %m, %zero : f32
    linalg.yield %y : f32
  }
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %proper : tensor<6x6xf32>, tensor<6xf32>) outs(%es : tensor<6x6xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<6x6xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<6x6xf32>) outs(%zr : tensor<6xf32>) dimensions = [1]
  %lse = linalg.map ins(%sum, %proper : tensor<6xf32>, tensor<6xf32>) outs(%er : tensor<6xf32>) (%t: f32, %m: f32, %init: f32) {
    %l = math.log %t : f32
    %y = arith.addf %l, %m : f32
    linalg.yield %y : f32
  }
  return %o, %lse : tensor<6x8xf32>, tensor<6xf32>
}

// The logarithm that the weights are made of, with a dimension that is kept, is
// one, too.
// CHECK-LABEL: func @logarithm_of_weights
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention
// CHECK-NOT: math.
// CHECK: return
func.func @logarithm_of_weights(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x6xf32>
  %er = tensor.empty() : tensor<6x1xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %lows = linalg.fill ins(%low : f32) outs(%er : tensor<6x1xf32>) -> tensor<6x1xf32>
  %top = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<6x6xf32>) outs(%lows : tensor<6x1xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.maximumf %acc, %x : f32
    linalg.yield %y : f32
  } -> tensor<6x1xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6x1xf32>) -> tensor<6x1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, 0)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%s, %top : tensor<6x6xf32>, tensor<6x1xf32>) outs(%zr : tensor<6x1xf32>) {
  ^bb0(%x: f32, %m: f32, %acc: f32):
    %d = arith.subf %x, %m : f32
    %p = math.exp %d : f32
    %y = arith.addf %acc, %p : f32
    linalg.yield %y : f32
  } -> tensor<6x1xf32>
  %lse = linalg.map ins(%sum, %top : tensor<6x1xf32>, tensor<6x1xf32>) outs(%er : tensor<6x1xf32>) (%t: f32, %m: f32, %init: f32) {
    %l = math.log %t : f32
    %y = arith.addf %l, %m : f32
    linalg.yield %y : f32
  }
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %lse : tensor<6x6xf32>, tensor<6x1xf32>) outs(%es : tensor<6x6xf32>) {
  ^bb0(%x: f32, %l: f32, %out: f32):
    %d = arith.subf %x, %l : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o, %lse : tensor<6x8xf32>, tensor<6x1xf32>
}

// One number behind the scores is a sink; integers made of quotients in f64, as
// importers of PyTorch write i // 4, are code.
// CHECK-LABEL: func @padded_and_chunked
// CHECK: attn.attention {{.*}} sink
// CHECK: mask
// CHECK-NOT: math.exp
// CHECK: return
func.func @padded_and_chunked(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %four = arith.constant 4.0 : f64
  %es = tensor.empty() : tensor<6x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %hidden = linalg.map ins(%s : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) (%x: f32, %init: f32) {
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.subi %i, %j : index
    %n64 = arith.index_cast %n : index to i64
    %f = arith.sitofp %n64 : i64 to f64
    %p = arith.divf %f, %four : f64
    %floor = math.floor %p : f64
    %g = arith.fptosi %floor : f64 to i64
    %minus = arith.constant -1 : i64
    %c = arith.cmpi eq, %g, %minus : i64
    %y = arith.select %c, %low, %x : f32
    linalg.yield %y : f32
  }
  %padded = tensor.pad %hidden low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x6xf32> to tensor<6x7xf32>
  %en = tensor.empty() : tensor<6x7xf32>
  %p = linalg.softmax dimension(1) ins(%padded : tensor<6x7xf32>) outs(%en : tensor<6x7xf32>) -> tensor<6x7xf32>
  %w = tensor.extract_slice %p[0, 0] [6, 6] [1, 1] : tensor<6x7xf32> to tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}

// Choices of the same two numbers are one, and those of truth values logic: a
// mask, of keys in front that are seen and of a triangle behind them.
// CHECK-LABEL: func @choices
// CHECK: attn.attention
// CHECK-NOT: score
// CHECK: mask(
// CHECK-NOT: arith.select
// CHECK: return
func.func @choices(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>, %seen: tensor<6xi1>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %true = arith.constant true
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %es = tensor.empty() : tensor<6x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %hidden = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                            iterator_types = ["parallel", "parallel"]}
      ins(%s, %seen : tensor<6x6xf32>, tensor<6xi1>) outs(%es : tensor<6x6xf32>) {
  ^bb0(%x: f32, %m: i1, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %front = arith.cmpi slt, %j, %c2 : index
    %behind = arith.cmpi sgt, %j, %i : index
    %triangle = arith.select %behind, %low, %zero : f32
    %bias = arith.select %front, %zero, %triangle : f32
    %y = arith.addf %x, %bias : f32
    %first = arith.cmpi slt, %i, %c3 : index
    %c = arith.select %first, %true, %m : i1
    %z = arith.select %c, %y, %low : f32
    linalg.yield %z : f32
  } -> tensor<6x6xf32>
  %w = linalg.softmax dimension(1) ins(%hidden : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}

// A mask as a float, where 0 becomes -inf and then 1 becomes 0.
// CHECK-LABEL: func @filled_twice
// CHECK: attn.attention
// CHECK-NOT: score
// CHECK: mask(
// CHECK: return
func.func @filled_twice(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : tensor<6x8xf32>, tensor<6x8xf32>) outs(%zs : tensor<6x6xf32>) -> tensor<6x6xf32>
  %hidden = linalg.map ins(%s : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) (%x: f32, %init: f32) {
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    %m = arith.uitofp %c : i1 to f32
    %isZero = arith.cmpf oeq, %m, %zero : f32
    %once = arith.select %isZero, %low, %m : f32
    %isOne = arith.cmpf oeq, %m, %one : f32
    %twice = arith.select %isOne, %zero, %once : f32
    %y = arith.addf %x, %twice : f32
    linalg.yield %y : f32
  }
  %w = linalg.softmax dimension(1) ins(%hidden : tensor<6x6xf32>) outs(%es : tensor<6x6xf32>) -> tensor<6x6xf32>
  %eo = tensor.empty() : tensor<6x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%w, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%zo : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}
