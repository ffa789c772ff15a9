// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize | FileCheck %s

!q = tensor<2x8x5x64xf16>
!k = tensor<2x2x7x64xf16>
!v = tensor<2x2x7x32xf16>
!o = tensor<2x8x5x32xf16>
!l = tensor<2x8x5xf32>

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>

// The whole walk once: everything in f64, results too.
// CHECK-LABEL: func.func @definition
// CHECK-SAME: -> (tensor<2x8x5x32xf64>, tensor<2x8x5xf64>)
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f64
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2], [3], [4]] output_shape [2, 2, 4, 5, 64]
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[K]], #[[S]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK: arith.extf %{{.*}} : f16 to f64
// CHECK: arith.mulf %{{.*}} : f64
// CHECK: arith.addf %{{.*}} : f64
// CHECK: linalg.generic
// CHECK: arith.mulf %{{.*}}, %[[SCALE]] : f64
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: arith.cmpf oeq, %{{.*}}, %[[LOWEST]] : f64
// CHECK: linalg.generic
// CHECK: math.exp %{{.*}} : f64
// CHECK: linalg.generic
// CHECK: arith.addf %{{.*}} : f64
// CHECK: linalg.generic
// CHECK: arith.divf %{{.*}} : f64
// CHECK: linalg.generic {indexing_maps = [#[[S]], #[[K]], #[[Q]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK: linalg.generic
// CHECK: math.log
// CHECK-NOT: truncf
// CHECK: return %{{.*}}, %{{.*}} : tensor<2x8x5x32xf64>, tensor<2x8x5xf64>
func.func @definition(%q: !q, %k: !k, %v: !v) -> (!o, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !k, !v) -> (!o, !l)
  return %o, %lse : !o, !l
}

// The regions see positions with the query head h = k * 4 + g; f32 becomes f64,
// f16 stays what the program says, roundings go through f32.
// CHECK-LABEL: func.func @regions
// CHECK-SAME: %[[BIAS:[^:]*]]: tensor<?xf32>, %[[HALF:[^:]*]]: f16, %[[N:[^:]*]]: i32
// CHECK-DAG: %[[C:.*]] = arith.constant 0.10000000149011612 : f64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK: arith.mulf
// CHECK: %[[X:.*]] = arith.mulf %{{.*}} : f64
// CHECK: %[[KV:.*]] = linalg.index 1
// CHECK: arith.muli %[[KV]], %c4
// CHECK: %[[DIM:.*]] = tensor.dim %[[BIAS]]
// CHECK: arith.cmpi slt, %{{.*}}, %[[DIM]] : index
// CHECK: %[[LOADED:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK: tensor.extract %[[BIAS]]
// CHECK: } else {
// CHECK: scf.yield %[[ZERO]]
// CHECK: %[[B:.*]] = arith.extf %[[LOADED]] : f32 to f64
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[B]] : f64
// CHECK: %[[Y32:.*]] = arith.truncf %[[Y]] : f64 to f32
// CHECK: %[[Y16:.*]] = arith.truncf %[[Y32]] : f32 to f16
// CHECK: %[[SUM:.*]] = arith.addf %[[Y16]], %[[HALF]] : f16
// CHECK: %[[WIDE:.*]] = arith.extf %[[SUM]] : f16 to f64
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: %[[FLOAT:.*]] = arith.extf %[[BITS]] : f32 to f64
// CHECK: %[[P:.*]] = arith.mulf %[[WIDE]], %[[FLOAT]] : f64
// CHECK: %[[R:.*]] = arith.mulf %[[P]], %[[C]] : f64
// CHECK: %[[VISIBLE:.*]] = arith.cmpi slt
// CHECK: arith.select %[[VISIBLE]], %[[R]], %[[LOWEST]] : f64
func.func @regions(%bias: tensor<?xf32>, %half: f16, %n: i32,
                   %q: !q, %k: !k, %v: !v) -> (!o, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias, %half, %n)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>,
          %c: f16, %m: i32) {
      %s = attn.capture_load %t[%h] : tensor<?xf32>
      %y = arith.addf %x, %s : f32
      %y16 = arith.truncf %y : f32 to f16
      %z16 = arith.addf %y16, %c : f16
      %z = arith.extf %z16 : f16 to f32
      %bits = arith.bitcast %m : i32 to f32
      %p = arith.mulf %z, %bits : f32
      %tenth = arith.constant 0.1 : f32
      %r = arith.mulf %p, %tenth : f32
      attn.yield %r : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>, %c: f16,
         %m: i32) {
      %visible = arith.cmpi slt, %j, %m : i32
      attn.yield %visible : i1
    }
    : (!q, !k, !v, tensor<?xf32>, f16, i32) -> (!o, !l)
  return %o, %lse : !o, !l
}

// Only the output is returned; only it changes.
// CHECK-LABEL: func.func @output_only
// CHECK-SAME: -> (tensor<2x8x5x32xf64>, i32)
func.func @output_only(%q: !q, %k: !k, %v: !v, %n: i32) -> (!o, i32) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !k, !v) -> (!o, !l)
  return %o, %n : !o, i32
}

// Calls follow; what they return is rounded for its users, in two steps where
// there would be a runtime function otherwise.
// CHECK-LABEL: func.func @caller
// CHECK-SAME: -> (tensor<2x8x5x32xf16>, i32)
// CHECK: %[[R:.*]]:2 = call @output_only(%{{.*}}) : (tensor<2x8x5x64xf16>, tensor<2x2x7x64xf16>, tensor<2x2x7x32xf16>, i32) -> (tensor<2x8x5x32xf64>, i32)
// CHECK: %[[ROUNDED:.*]] = linalg.generic
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: return %[[ROUNDED]], %[[R]]#1
func.func @caller(%q: !q, %k: !k, %v: !v, %n: i32) -> (!o, i32) {
  %r:2 = call @output_only(%q, %k, %v, %n) : (!q, !k, !v, i32) -> (!o, i32)
  return %r#0, %r#1 : !o, i32
}

// Every other use sees the type it had.
// CHECK-LABEL: func.func @other_use
// CHECK-SAME: -> tensor<2x8x5xf64>
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: tensor.extract %{{.*}} : tensor<2x8x5x32xf16>
func.func @other_use(%q: !q, %k: !k, %v: !v, %m: memref<f16>) -> !l {
  %c0 = arith.constant 0 : index
  %o, %lse = attn.attention %q, %k, %v : (!q, !k, !v) -> (!o, !l)
  %e = tensor.extract %o[%c0, %c0, %c0, %c0] : !o
  memref.store %e, %m[] : memref<f16>
  return %lse : !l
}

// Unknown sizes; what one tensor knows, all know.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: %[[QUERY:[^:]*]]: tensor<?x?x?x8xf32>, %[[KEY:[^:]*]]: tensor<?x2x?x8xf32>
// CHECK-SAME: -> (tensor<3x?x?x8xf64>, tensor<?x?x?xf64>)
// CHECK: %[[HEADS:.*]] = tensor.dim %[[QUERY]], %c1
// CHECK: %[[GROUP:.*]] = arith.divui %[[HEADS]], %c2
// CHECK: tensor.expand_shape %{{.*}} output_shape [%{{.*}}, 2, %[[GROUP]], %{{.*}}, 8]
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2], [3], [4]]
func.func @dynamic(%q: tensor<?x?x?x8xf32>, %k: tensor<?x2x?x8xf32>)
    -> (tensor<3x?x?x8xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x?x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
      -> (tensor<3x?x?x8xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<3x?x?x8xf32>, tensor<?x?x?xf32>
}

// Two unknown parts of one size are more than tensor.expand_shape can lower.
// CHECK-LABEL: func.func @dynamic_key_heads
// CHECK-SAME: %[[QUERY:[^:]*]]: tensor<?x8x?x8xf32>, %[[KEY:[^:]*]]: tensor<?x?x?x8xf32>
// CHECK: %[[HEADS:.*]] = tensor.dim %[[KEY]], %c1
// CHECK: %[[GROUP:.*]] = arith.divui %c8, %[[HEADS]]
// CHECK: %[[SHAPE:.*]] = tensor.from_elements %{{.*}}, %[[HEADS]], %[[GROUP]]
// CHECK: tensor.reshape %[[QUERY]](%[[SHAPE]])
func.func @dynamic_key_heads(%q: tensor<?x8x?x8xf32>, %k: tensor<?x?x?x8xf32>)
    -> tensor<?x?x?x8xf32> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x8x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>)
      -> (tensor<?x?x?x8xf32>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x8xf32>
}

// CHECK-LABEL: func.func @no_attention
// CHECK-NEXT: return
func.func @no_attention(%q: !q) -> !q {
  return %q : !q
}

// The sink joins the maximum and the sum; what is dropped, the probabilities.
// CHECK-LABEL: func.func @sink_and_dropout
// CHECK-SAME: %[[SINK:[^:]*]]: tensor<8xf32>, %[[SEED:[^:]*]]: i32, %[[OFFSET:[^:]*]]: i32
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: %[[HEAD:.*]] = arith.addi
// CHECK: tensor.extract %[[SINK]][%[[HEAD]]] : tensor<8xf32>
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: tensor.extract %[[SINK]]
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: arith.xori %{{.*}}, %[[SEED]] : i32
// CHECK: %[[KEEP:.*]] = arith.cmpi uge, %{{.*}}, %c1073741824_i32 : i32
// CHECK: %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK: arith.select %[[KEEP]], %[[SCALED]], %{{.*}} : f64
func.func @sink_and_dropout(%q: !q, %k: !k, %v: !v, %s: tensor<8xf32>, %seed: i32, %offset: i32) -> (!o, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%s) dropout(%seed, %offset) {dropout_p = 0.25}
    : (!q, !k, !v, tensor<8xf32>, i32, i32) -> (!o, !l)
  return %o, %lse : !o, !l
}

// A search counts, whether sorted or not.
// CHECK-LABEL: func.func @search
// CHECK-SAME: %[[T:[^:]*]]: tensor<2x?xi32>
// CHECK: %[[SIZE:.*]] = tensor.dim %[[T]], %c1
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %[[SIZE]], %c0
// CHECK: scf.for %[[N:.*]] = %c0 to %[[END]] step %c1 iter_args(%[[COUNT:.*]] = %c0_i32)
// CHECK: %[[E:.*]] = tensor.extract %[[T]][%{{.*}}, %[[N]]]
// CHECK: %[[LE:.*]] = arith.cmpi sle, %[[E]], %{{.*}} : i32
// CHECK: %[[MORE:.*]] = arith.extui %[[LE]] : i1 to i32
// CHECK: arith.addi %[[COUNT]], %[[MORE]] : i32
func.func @search(%q: !q, %k: !k, %v: !v, %t: tensor<2x?xi32>) -> !o {
  %o, %lse = attn.attention %q, %k, %v captures(%t)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<2x?xi32>) {
      %n = attn.capture_search %c[%b], %j : tensor<2x?xi32>
      %m = arith.cmpi sle, %n, %i : i32
      attn.yield %m : i1
    }
    : (!q, !k, !v, tensor<2x?xi32>) -> (!o, !l)
  return %o : !o
}

// What leads from positions to an integer or a choice is f32 here, too, and all
// else f64 (C32); x is f64 wherever it stands.
// CHECK-LABEL: func.func @decisions
// CHECK-SAME: %[[T:[^:]*]]: tensor<?xf32>
// CHECK: linalg.yield
// CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK: %[[R:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[WIDE:.*]] = arith.extf %[[R]] : f32 to f64
// CHECK: %[[SHARE:.*]] = arith.divf %[[R]], %{{.*}} : f32
// CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %{{.*}} : f32
// CHECK: %[[BACK64:.*]] = arith.extf %[[BACK]] : f32 to f64
// CHECK: arith.fptosi %[[BACK]] : f32 to i32
// CHECK: arith.mulf %[[WIDE]], %{{.*}} : f64
// CHECK: arith.cmpf olt, %[[X]], %[[BACK64]] : f64
func.func @decisions(%table: tensor<?xf32>, %q: !q, %k: !k, %v: !v) -> !o {
  %o, %lse = attn.attention %q, %k, %v captures(%table)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %d = arith.subi %i, %j : i32
      %r = arith.sitofp %d : i32 to f32
      %size = arith.constant 41.0 : f32
      %share = arith.divf %r, %size : f32
      %back = arith.mulf %share, %size : f32
      %bucket = arith.fptosi %back : f32 to i32
      %bias = attn.capture_load %t[%bucket] : tensor<?xf32>
      %rate = arith.constant 0.1 : f32
      %term = arith.mulf %r, %rate : f32
      %sum = arith.addf %term, %bias : f32
      %less = arith.cmpf olt, %x, %back : f32
      %y = arith.select %less, %sum, %x : f32
      attn.yield %y : f32
    }
    : (!q, !k, !v, tensor<?xf32>) -> (!o, !l)
  return %o : !o
}
