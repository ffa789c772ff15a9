// Pieces of the loop, in which the score function is constant or is not, hide nothing:
// the first block is computed as the piece is that has most to do.
// RUN: attn-run --target=cpu %s --check --enable-pass=tile-overlap-products | FileCheck %s
// RUN: attn-run --target=cpu %s --check --enable-pass=tile-overlap-products,tile-lazy-max | FileCheck %s
// CHECK: check     PASS
func.func @clamped_bias(%q: tensor<1x1x96x16xbf16>, %k: tensor<1x1x96x16xbf16>, %v: tensor<1x1x96x16xbf16>, %table: tensor<2x6xf32>) -> (tensor<1x1x96x16xbf16>, tensor<1x1x96xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 16>}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<2x6xf32>) {
        %d = arith.subi %i, %j : i32
        %c3 = arith.constant 3 : i32
        %c-2 = arith.constant -2 : i32
        %a = arith.maxsi %d, %c-2 : i32
        %c = arith.minsi %a, %c3 : i32
        %c2 = arith.constant 2 : i32
        %n = arith.addi %c, %c2 : i32
        %zero = arith.constant 0 : i32
        %e = attn.capture_load %t[%zero, %n] : tensor<2x6xf32>
        %y = arith.addf %x, %e : f32
        attn.yield %y : f32
      }
    : (tensor<1x1x96x16xbf16>, tensor<1x1x96x16xbf16>, tensor<1x1x96x16xbf16>, tensor<2x6xf32>) -> (tensor<1x1x96x16xbf16>, tensor<1x1x96xf32>)
  return %o, %lse : tensor<1x1x96x16xbf16>, tensor<1x1x96xf32>
}
