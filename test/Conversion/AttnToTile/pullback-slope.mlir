// RUN: attn-opt %s --split-input-file --attn-recompute --convert-attn-to-tile | FileCheck %s

// The slope of a score function that is no linear one is computed beside the
// score: where both products are there, the weight times the slope is all that is
// left of x. Nothing goes back where the score is -inf.
// CHECK-LABEL: func.func @square(
// CHECK: tile.kernel @square_d_query
// CHECK: %[[X:.*]] = vector.contract
// CHECK: %[[SCORES:.*]] = tile.scores
// CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %{{.*}} : vector<8x16xf32>
// CHECK: %[[TWICE:.*]] = arith.addf %[[SCALED]], %[[SCALED]]
// CHECK: %[[SLOPE:.*]] = arith.mulf %{{.*}}, %[[TWICE]]
// CHECK: %[[HIDDEN:.*]] = arith.cmpf oeq, %[[SCORES]], %{{.*}} : vector<8x16xf32>
// CHECK: %[[SHOWN:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %[[SLOPE]] : vector<8x16xi1>, vector<8x16xf32>
// CHECK: %[[DP:.*]] = vector.contract
// CHECK: %[[WEIGHTS:.*]] = math.exp2
// CHECK: %[[FACTOR:.*]] = arith.mulf %[[WEIGHTS]], %[[SHOWN]]
// CHECK: %[[EXCESS:.*]] = arith.subf %[[DP]]
// CHECK: %[[DX:.*]] = arith.mulf %[[FACTOR]], %[[EXCESS]]
// CHECK-NEXT: arith.truncf %[[DX]]
// CHECK: tile.kernel @square_d_key_value
// CHECK: %[[SHOWN2:.*]] = arith.select %{{.*}} : vector<8x16xi1>, vector<8x16xf32>
// CHECK: %[[WEIGHTS2:.*]] = math.exp2
// CHECK: arith.mulf %[[WEIGHTS2]], %[[SHOWN2]]
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @square(%q: !t, %k: !t, %o: !t, %l: !l, %d: !t) -> (!t, !t, !t) {
  %r:3 = attn.attention_backward %q, %k, %k, %o, %l, %d {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.mulf %x, %x : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %two = arith.addf %x, %x : f32
      %dx = arith.mulf %dy, %two : f32
      attn.yield %dx : f32
    }
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %r#0, %r#1, %r#2 : !t, !t, !t
}

// -----

// A factor that is not of x costs nothing where it is: a row's, or a constant.
// What is not seen to be a factor stays what it is.
// CHECK-LABEL: func.func @of_row(
// CHECK: tile.kernel @of_row_d_query
// CHECK: %[[ADJOINT:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<8x16xf32>
// CHECK: arith.mulf %[[ADJOINT]], %{{.*}} : vector<8x16xf32>
// CHECK: arith.cmpf oeq
// CHECK-NEXT: arith.select
// CHECK-LABEL: func.func @no_factor(
// CHECK: tile.kernel @no_factor_d_query
// CHECK: %[[BOTH:.*]] = arith.maximumf
// CHECK: arith.cmpf oeq
// CHECK-NEXT: arith.select %{{.*}}, %{{.*}}, %[[BOTH]]
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @of_row(%q: !t, %k: !t, %o: !t, %l: !l, %d: !t) -> (!t, !t, !t) {
  %r:3 = attn.attention_backward %q, %k, %k, %o, %l, %d {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %rate = arith.sitofp %i : i32 to f32
      %y = arith.mulf %x, %rate : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %rate = arith.sitofp %i : i32 to f32
      %dx = arith.mulf %dy, %rate : f32
      attn.yield %dx : f32
    }
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %r#0, %r#1, %r#2 : !t, !t, !t
}

func.func @no_factor(%q: !t, %k: !t, %o: !t, %l: !l, %d: !t) -> (!t, !t, !t) {
  %r:3 = attn.attention_backward %q, %k, %k, %o, %l, %d {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.mulf %x, %x : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.mulf %dy, %x : f32
      %two = arith.addf %one, %one : f32
      %dx = arith.maximumf %one, %two : f32
      attn.yield %dx : f32
    }
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %r#0, %r#1, %r#2 : !t, !t, !t
}
