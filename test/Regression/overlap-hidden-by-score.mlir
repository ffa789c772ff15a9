// The score function hides keys, too. With lengths that are multiples of a block
// only the mask's first loop had a mask of its own, and tile-overlap-products took the score
// function's in the other one for it: the first block was computed without.
// RUN: attn-run --target=cpu %s --check --enable-pass=tile-overlap-products | FileCheck %s
// RUN: attn-run --target=cpu %s --check --enable-pass=tile-overlap-products,tile-lazy-max,tile-reverse-keys | FileCheck %s
// CHECK: check     PASS
func.func @hidden_by_score_too(%q: tensor<1x2x96x32xf32>, %k: tensor<1x2x64x32xf32>, %v: tensor<1x2x64x32xf32>) -> (tensor<1x2x96x32xf32>, tensor<1x2x96xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 16, block_k = 16>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %minus = arith.constant 0xFF800000 : f32
      %c5 = arith.constant 5 : i32
      %past = arith.cmpi sge, %j, %c5 : i32
      %y = arith.select %past, %x, %minus : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c9 = arith.constant 9 : i32
      %f = arith.subi %i, %c9 : i32
      %m = arith.cmpi sge, %j, %f : i32
      attn.yield %m : i1
    } : (tensor<1x2x96x32xf32>, tensor<1x2x64x32xf32>, tensor<1x2x64x32xf32>) -> (tensor<1x2x96x32xf32>, tensor<1x2x96xf32>)
  return %o, %lse : tensor<1x2x96x32xf32>, tensor<1x2x96xf32>
}
