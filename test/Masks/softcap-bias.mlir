// A bias inside a soft cap, under a causal window.
// mask: (j <= i) & (i - j < 30)
// score: 3 * np.tanh((x + at(c[0], j)) / 3)
// capture: normal : sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %bias: tensor<?xf32>) {
      %cap = arith.constant 3.0 : f32
      %t = attn.capture_load %bias[%j] : tensor<?xf32>
      %s = arith.addf %x, %t : f32
      %u = arith.divf %s, %cap : f32
      %w = math.tanh %u : f32
      %y = arith.mulf %w, %cap : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %bias: tensor<?xf32>) {
      %c30 = arith.constant 30 : i32
      %d = arith.subi %i, %j : i32
      %m = arith.cmpi ult, %d, %c30 : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
