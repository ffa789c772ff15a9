// RUN: attn-opt %s --attn-outline --split-input-file | FileCheck %s
// A second run changes nothing.
// RUN: attn-opt %s --attn-outline --split-input-file > %t.once
// RUN: attn-opt %s --attn-outline --attn-outline --split-input-file | diff %t.once -

// Projections stay in the caller. The function takes the transposes, and heads
// are heads; that what follows the result's transpose is one dimension concerns
// nobody but the caller.

// CHECK-LABEL: func.func @layer(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[H:.*]] = tensor.expand_shape %[[P]]
// CHECK-NOT: linalg.transpose
// CHECK: %[[R:.*]]:2 = call @layer_attention_0(%[[H]], %[[H]], %[[H]]) : (tensor<2x32x4x64xf32>, tensor<2x32x4x64xf32>, tensor<2x32x4x64xf32>) -> (tensor<2x32x4x64xf32>, tensor<2x4x32xf32>)
// CHECK-NEXT: %[[C:.*]] = tensor.collapse_shape %[[R]]#0
// CHECK-NEXT: return %[[C]]
// CHECK: func.func private @layer_attention_0(
// CHECK-SAME: %[[Q:.*]]: tensor<2x32x4x64xf32>, %[[K:.*]]: tensor<2x32x4x64xf32>, %[[V:.*]]: tensor<2x32x4x64xf32>)
// CHECK: %[[QT:.*]] = linalg.transpose ins(%[[Q]] :
// CHECK: %[[KT:.*]] = linalg.transpose ins(%[[K]] :
// CHECK: %[[VT:.*]] = linalg.transpose ins(%[[V]] :
// CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %[[QT]], %[[KT]], %[[VT]] {variants = [#attn.causal]}
// CHECK: %[[OT:.*]] = linalg.transpose ins(%[[O]] :
// CHECK: return %[[OT]], %[[L]]
func.func @layer(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<2x32x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%f : tensor<64x256xf32>) -> tensor<64x256xf32>
  %h = tensor.expand_shape %p [[0, 1], [2, 3]] output_shape [2, 32, 4, 64] : tensor<64x256xf32> into tensor<2x32x4x64xf32>
  %e1 = tensor.empty() : tensor<2x4x32x64xf32>
  %t = linalg.transpose ins(%h : tensor<2x32x4x64xf32>) outs(%e1 : tensor<2x4x32x64xf32>) permutation = [0, 2, 1, 3]
  %o, %lse = attn.attention %t, %t, %t {variants = [#attn.causal]}
    : (tensor<2x4x32x64xf32>, tensor<2x4x32x64xf32>, tensor<2x4x32x64xf32>)
      -> (tensor<2x4x32x64xf32>, tensor<2x4x32xf32>)
  %e2 = tensor.empty() : tensor<2x32x4x64xf32>
  %u = linalg.transpose ins(%o : tensor<2x4x32x64xf32>) outs(%e2 : tensor<2x32x4x64xf32>) permutation = [0, 2, 1, 3]
  %c = tensor.collapse_shape %u [[0], [1], [2, 3]] : tensor<2x32x4x64xf32> into tensor<2x32x256xf32>
  return %c : tensor<2x32x256xf32>
}

// -----

// Equal attentions are one function, whoever calls it; another one has the next
// number that no symbol has.

!t = tensor<1x4x32x64xf32>
!l = tensor<1x4x32xf32>
// CHECK-LABEL: func.func @layers(
// CHECK: %[[A:.*]]:2 = call @layers_attention_0(%{{.*}}, %[[K:.*]], %[[V:[a-z0-9]*]])
// CHECK: %[[B:.*]]:2 = call @layers_attention_0(%[[A]]#0, %[[K]], %[[V]])
// CHECK: %[[C:.*]]:2 = call @layers_attention_2(%[[B]]#0, %[[K]], %[[V]])
// CHECK: return %[[C]]#0, %[[A]]#1
// CHECK: func.func private @layers_attention_0(
// CHECK: attn.attention %{{.*}} :
// CHECK: func.func private @layers_attention_2(
// CHECK: attn.attention %{{.*}} {scale = 5.000000e-01 : f64} :
func.func @layers(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %a, %la = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  %b, %lb = attn.attention %a, %k, %v : (!t, !t, !t) -> (!t, !l)
  %c, %lc = attn.attention %b, %k, %v {scale = 0.5} : (!t, !t, !t) -> (!t, !l)
  return %c, %la : !t, !l
}
func.func private @layers_attention_1()
// CHECK-LABEL: func.func @other(
// CHECK: call @layers_attention_0(
// CHECK-NOT: func.func private @other_attention
func.func @other(%q: !t) -> (!t, !t) {
  %a, %la = attn.attention %q, %q, %q : (!t, !t, !t) -> (!t, !l)
  return %a, %q : !t, !t
}

// -----

// Operands in their order. Captures are called as they were.

!t = tensor<1x4x?x64xf16>
!l = tensor<1x4x?xf32>
// CHECK-LABEL: func.func @operands(
// CHECK-SAME: %[[SEED:.*]]: i32, %[[X:.*]]: tensor<1x4x?x64xf16>, %[[BIAS:.*]]: tensor<?xf32>, %[[SINK:.*]]: tensor<4xf32>, %[[N:.*]]: i32)
// CHECK: %[[OFFSET:.*]] = arith.addi
// CHECK: %[[Q:.*]] = tensor.cast %[[X]]
// CHECK: %[[LENGTHS:.*]] = arith.constant dense<[3, 5]> : tensor<2xi32>
// CHECK: call @operands_attention_0(%[[Q]], %[[X]], %[[X]], %[[SINK]], %[[SEED]], %[[OFFSET]], %[[BIAS]], %[[LENGTHS]], %[[N]])
// CHECK: func.func private @operands_attention_0(
// CHECK-SAME: %[[FQ:[a-z0-9]*]]: tensor<1x4x16x64xf16>, %[[FK:[a-z0-9]*]]: tensor<1x4x?x64xf16>, %[[FV:[a-z0-9]*]]: tensor<1x4x?x64xf16>, %[[FS:[a-z0-9]*]]: tensor<4xf32>, %[[F0:[a-z0-9]*]]: i32, %[[F1:[a-z0-9]*]]: i32, %[[FB:[a-z0-9]*]]: tensor<?xf32>, %[[FL:[a-z0-9]*]]: tensor<2xi32>, %[[FN:[a-z0-9]*]]: i32)
// CHECK-NEXT: attn.attention %[[FQ]], %[[FK]], %[[FV]] sink(%[[FS]]) dropout(%[[F0]], %[[F1]]) captures(%[[FB]], %[[FL]], %[[FN]], %[[FN]])
func.func @operands(%seed: i32, %x: !t, %bias: tensor<?xf32>, %sink: tensor<4xf32>, %n: i32) -> (tensor<1x4x16x64xf16>) {
  %offset = arith.addi %seed, %n : i32
  %q = tensor.cast %x : !t to tensor<1x4x16x64xf16>
  %lengths = arith.constant dense<[3, 5]> : tensor<2xi32>
  %o, %lse = attn.attention %q, %x, %x sink(%sink) dropout(%seed, %offset) captures(%bias, %lengths, %n, %n) {dropout_p = 0.5}
    score(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>, %u: tensor<2xi32>, %c: i32, %d: i32) {
      %r = attn.capture_load %t[%j] : tensor<?xf32>
      attn.yield %r : f32
    }
    : (tensor<1x4x16x64xf16>, !t, !t, tensor<4xf32>, i32, i32, tensor<?xf32>, tensor<2xi32>, i32, i32) -> (tensor<1x4x16x64xf16>, tensor<1x4x16xf32>)
  return %o : tensor<1x4x16x64xf16>
}

// -----

// Sizes of what the function sees, and code over them, are its own; another
// scalar is an argument, as is code over one.

!t = tensor<?x?x4x64xf32>
!h = tensor<?x4x?x64xf32>
// CHECK-LABEL: func.func @sizes(
// CHECK-SAME: %[[QS:.*]]: tensor<?x?x4x64xf32>, %[[KS:.*]]: tensor<?x?x4x64xf32>, %[[M:.*]]: tensor<?x?xi32>)
// CHECK: %[[D:.*]] = tensor.dim %[[M]]
// CHECK: %[[N:.*]] = arith.index_cast %[[D]]
// CHECK-NOT: arith.subi
// CHECK: call @sizes_attention_0(%[[QS]], %[[KS]], %[[KS]], %[[N]])
// CHECK: func.func private @sizes_attention_0(
// CHECK: %[[Q:.*]] = linalg.transpose ins(%{{.*}} permutation = [0, 2, 1, 3]
// CHECK: %[[K:.*]] = linalg.transpose ins(%{{.*}} permutation = [0, 2, 1, 3]
// CHECK: %[[V:.*]] = linalg.transpose ins(%{{.*}} permutation = [0, 2, 1, 3]
// CHECK: %[[SK:.*]] = tensor.dim %[[K]], %c2
// CHECK: %[[B:.*]] = arith.index_cast %[[SK]]
// CHECK: %[[SQ:.*]] = tensor.dim %[[Q]], %c2
// CHECK: %[[A:.*]] = arith.index_cast %[[SQ]]
// CHECK: %[[C:.*]] = arith.subi %[[B]], %[[A]]
// CHECK: attn.attention %[[Q]], %[[K]], %[[V]] captures(%[[C]], %{{.*}})
func.func @sizes(%qs: !t, %ks: !t, %m: tensor<?x?xi32>) -> (!h, !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %qs, %c0 : !t
  %dq = tensor.dim %qs, %c1 : !t
  %dk = tensor.dim %ks, %c1 : !t
  %dm = tensor.dim %m, %c1 : tensor<?x?xi32>
  %sq = arith.index_cast %dq : index to i32
  %sk = arith.index_cast %dk : index to i32
  %n = arith.index_cast %dm : index to i32
  %shift = arith.subi %sk, %sq : i32
  %e0 = tensor.empty(%b, %dq) : !h
  %q = linalg.transpose ins(%qs : !t) outs(%e0 : !h) permutation = [0, 2, 1, 3]
  %e1 = tensor.empty(%b, %dk) : !h
  %k = linalg.transpose ins(%ks : !t) outs(%e1 : !h) permutation = [0, 2, 1, 3]
  %o, %lse = attn.attention %q, %k, %k captures(%shift, %n)
    mask(%bb: i32, %hh: i32, %i: i32, %j: i32, %s: i32, %t: i32) {
      %y = arith.addi %i, %s : i32
      %below = arith.cmpi sle, %j, %y : i32
      %in = arith.cmpi slt, %j, %t : i32
      %both = arith.andi %below, %in : i1
      attn.yield %both : i1
    }
    : (!h, !h, !h, i32, i32) -> (!h, tensor<?x4x?xf32>)
  return %o, %qs : !h, !t
}

// -----

// A result that is also read as it is keeps its transposes in the caller, with
// the slices that kernels have no strides for.

!t = tensor<2x4x32x64xf32>
// CHECK-LABEL: func.func @in_the_caller(
// CHECK: tensor.extract_slice
// CHECK: %[[R:.*]]:2 = call @in_the_caller_attention_0(
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[R]]#0
// CHECK: return %[[R]]#0, %[[T]]
// CHECK: func.func private @in_the_caller_attention_0(
// CHECK-NOT: linalg.transpose
func.func @in_the_caller(%packed: tensor<2x12x32x64xf32>) -> (!t, tensor<2x32x4x64xf32>) {
  %q = tensor.extract_slice %packed[0, 0, 0, 0] [2, 4, 32, 64] [1, 1, 1, 1] : tensor<2x12x32x64xf32> to !t
  %k = tensor.extract_slice %packed[0, 4, 0, 0] [2, 4, 32, 64] [1, 1, 1, 1] : tensor<2x12x32x64xf32> to !t
  %v = tensor.extract_slice %packed[0, 8, 0, 0] [2, 4, 32, 64] [1, 1, 1, 1] : tensor<2x12x32x64xf32> to !t
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, tensor<2x4x32xf32>)
  %e = tensor.empty() : tensor<2x32x4x64xf32>
  %u = linalg.transpose ins(%o : !t) outs(%e : tensor<2x32x4x64xf32>) permutation = [0, 2, 1, 3]
  return %o, %u : !t, tensor<2x32x4x64xf32>
}

// -----

// What a kernel can be made of as it stands stays as it is: reshapes of
// arguments and results, and scalar code.

// CHECK-LABEL: func.func @alone(
// CHECK: attn.attention
// CHECK-NOT: call
// CHECK-NOT: func.func private
func.func @alone(%x: tensor<8x32x64xf32>, %k: tensor<2x4x32x64xf32>, %n: i32) -> tensor<8x32x64xf32> {
  %q = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [2, 4, 32, 64] : tensor<8x32x64xf32> into tensor<2x4x32x64xf32>
  %c = arith.addi %n, %n : i32
  %o, %lse = attn.attention %q, %k, %k captures(%c)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: i32) {
      %m = arith.cmpi slt, %j, %s : i32
      attn.yield %m : i1
    }
    : (tensor<2x4x32x64xf32>, tensor<2x4x32x64xf32>, tensor<2x4x32x64xf32>, i32) -> (tensor<2x4x32x64xf32>, tensor<2x4x32xf32>)
  %r = tensor.collapse_shape %o [[0, 1], [2], [3]] : tensor<2x4x32x64xf32> into tensor<8x32x64xf32>
  return %r : tensor<8x32x64xf32>
}

// CHECK-LABEL: func.func @no_attention(
// CHECK-NEXT: return
func.func @no_attention(%n: i32) -> i32 {
  return %n : i32
}

// An argument has one shape for a kernel.
// CHECK-LABEL: func.func @seen_twice(
// CHECK: call @seen_twice_attention_0(%[[X:.*]], %[[X]], %[[X]])
func.func @seen_twice(%x: tensor<2x4x4x64xf32>) -> tensor<2x4x4x64xf32> {
  %e = tensor.empty() : tensor<2x4x4x64xf32>
  %t = linalg.transpose ins(%x : tensor<2x4x4x64xf32>) outs(%e : tensor<2x4x4x64xf32>) permutation = [0, 2, 1, 3]
  %o, %lse = attn.attention %x, %t, %t : (tensor<2x4x4x64xf32>, tensor<2x4x4x64xf32>, tensor<2x4x4x64xf32>) -> (tensor<2x4x4x64xf32>, tensor<2x4x4xf32>)
  return %o : tensor<2x4x4x64xf32>
}

// -----

// In a loop, too.
// CHECK-LABEL: func.func @loop(
// CHECK: scf.for
// CHECK: %[[R:.*]]:2 = func.call @loop_attention_0(
// CHECK: scf.yield %[[R]]#0
!t = tensor<2x4x32x64xf32>
func.func @loop(%x: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> !t {
    %o, %lse = attn.attention %y, %x, %x : (!t, !t, !t) -> (!t, tensor<2x4x32xf32>)
    scf.yield %o : !t
  }
  return %r : !t
}
