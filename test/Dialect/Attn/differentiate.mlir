// RUN: attn-opt %s --attn-differentiate --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-differentiate=lse-gradient=true --split-input-file | FileCheck %s --check-prefix=GRADIENT
// RUN: attn-opt %s --attn-differentiate=capture-gradients=false --split-input-file | FileCheck %s --check-prefix=CONSTANTS

!q = tensor<2x4x?x64xf16>
!k = tensor<2x2x?x64xf16>
!l = tensor<2x4x?xf32>

// The forward stays, with its plan; where it returns output and lse, there is
// no other.
// CHECK-LABEL: func.func @plain(
// CHECK: attn.attention
// CHECK-NOT: @plain_forward
// CHECK-LABEL: func.func @plain_backward(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x?x64xf16>, %[[K:.*]]: tensor<2x2x?x64xf16>, %[[V:.*]]: tensor<2x2x?x64xf16>, %[[O:.*]]: tensor<2x4x?x64xf16>, %[[LSE:.*]]: tensor<2x4x?xf32>, %[[DO:.*]]: tensor<2x4x?x64xf16>) -> (tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>) {
// CHECK-NEXT: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = attn.attention_backward %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]], %[[DO]] {numerics = #attn.numerics<fast_math = false>, scale = 5.000000e-01 : f64} : (
// CHECK-NEXT: return %[[DQ]], %[[DK]], %[[DV]]
// GRADIENT-LABEL: func.func @plain_backward(
// GRADIENT-SAME: %[[DLSE:[^:]*]]: tensor<2x4x?xf32>) ->
// GRADIENT: attn.attention_backward {{.*}} d_lse(%[[DLSE]])
func.func @plain(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v
    {scale = 0.5, numerics = #attn.numerics<fast_math = false>,
     plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>}
    : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// CHECK-LABEL: func.func @output_only(
// CHECK: return %{{.*}} : tensor<1x1x4x8xf32>
// CHECK-LABEL: func.func @output_only_forward(
// CHECK: %[[O:.*]], %[[LSE:.*]] = attn.attention
// CHECK: return %[[O]], %[[LSE]] : tensor<1x1x4x8xf32>, tensor<1x1x4xf32>
// CHECK-LABEL: func.func @output_only_backward(
func.func @output_only(%q: !q, %k: !q, %v: !q) -> (!q) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// Variants are written out; sink, dropout and the mask are those of the forward.
// CHECK-LABEL: func.func @variants_backward(
// CHECK: sink(%{{.*}}) dropout(%{{.*}}, %{{.*}}) {dropout_p = 1.000000e-01 : f64}
// CHECK: score(
// CHECK: math.tanh
// CHECK: mask(
// CHECK: arith.cmpi sle
// CHECK: pullback(%[[DY:.*]]: f32, %[[X:.*]]: f32,
// CHECK-NEXT: %[[RATE:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT: %[[RATIO:.*]] = arith.mulf %[[X]], %[[RATE]] : f32
// CHECK-NEXT: %[[TANH:.*]] = math.tanh %[[RATIO]] : f32
// CHECK-NEXT: %[[CAP:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT: %[[D0:.*]] = arith.mulf %[[DY]], %[[CAP]] : f32
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[TANH]], %[[TANH]] : f32
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: %[[SLOPE:.*]] = arith.subf %[[ONE]], %[[SQUARE]] : f32
// CHECK-NEXT: %[[D1:.*]] = arith.mulf %[[D0]], %[[SLOPE]] : f32
// CHECK-NEXT: %[[D2:.*]] = arith.mulf %[[D1]], %[[RATE]] : f32
// CHECK-NEXT: attn.yield %[[D2]] : f32
func.func @variants(%q: !q, %k: !q, %v: !q, %s: tensor<1xf32>, %a: i32) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%s) dropout(%a, %a)
    {dropout_p = 0.1, variants = [#attn.causal, #attn.softcap<2.0>]}
    : (!q, !q, !q, tensor<1xf32>, i32, i32) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// Captures of floats that are arguments have gradients, in f32 until the end;
// integers have none, nor what no argument has a say in.
// CHECK-LABEL: func.func @captures_backward(
// CHECK: captures(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {grad_captures = array<i64: 0, 2>}
// CHECK: pullback(%[[DY:.*]]: f32, %[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[BIAS:.*]]: tensor<?x?xf16>, %[[N:.*]]: i32, %[[FACTOR:.*]]: f16, %[[FIXED:.*]]: f32) {
// CHECK: %[[D:.*]] = arith.mulf %[[DY]], %[[FIXED]] : f32
// CHECK: %[[WIDE:.*]] = arith.extf %[[FACTOR]] : f16 to f32
// CHECK: %[[DB:.*]] = arith.mulf %[[D]], %[[WIDE]] : f32
// CHECK: %[[B:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[DF:.*]] = arith.mulf %[[D]], %[[B]] : f32
// CHECK: attn.capture_add %[[DB]], %[[BIAS]][%[[I]], %[[J]]] : tensor<?x?xf16>
// CHECK: attn.capture_add %[[DF]], %[[FACTOR]][] : f16
// CHECK: -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<?x?xf16>, tensor<f16>)
// With capture-gradients=false all of them are constants.
// CONSTANTS-LABEL: func.func @captures_backward(
// CONSTANTS-NOT: grad_captures
// CONSTANTS-NOT: attn.capture_add
// CONSTANTS-LABEL: func.func @no_pullback(
func.func @captures(%q: !q, %k: !q, %v: !q, %bias: tensor<?x?xf16>, %n: i32, %factor: f16) -> (!q, !l) {
  %fixed = arith.sitofp %n : i32 to f32
  %o, %lse = attn.attention %q, %k, %v captures(%bias, %n, %factor, %fixed)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf16>, %m: i32, %f: f16, %g: f32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xf16>
      %v16 = arith.mulf %u, %f : f16
      %w = arith.extf %v16 : f16 to f32
      %z = arith.mulf %w, %g : f32
      %y = arith.addf %x, %z : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, tensor<?x?xf16>, i32, f16, f32) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// Nobody asks for the gradient of the bias.
// CHECK-LABEL: func.func @one_constant_backward(
// CHECK: {grad_captures = array<i64: 1>}
// CHECK: pullback(
// CHECK-NOT: attn.capture_add
// CHECK: attn.capture_add %{{.*}}, %{{.*}}[] : f32
// CHECK-NOT: attn.capture_add
// CHECK: -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<f32>)
func.func @one_constant(%q: !q, %k: !q, %v: !q, %bias: tensor<?x?xf32> {attn.constant}, %factor: f32) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias, %factor)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>, %f: f32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %z = arith.mulf %u, %f : f32
      %y = arith.addf %x, %z : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, tensor<?x?xf32>, f32) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// A bias of integers goes back as it came: there is no pullback.
// CHECK-LABEL: func.func @no_pullback_backward(
// CHECK: score(
// CHECK-NOT: pullback
// CHECK: return
func.func @no_pullback(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %j, %i : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
