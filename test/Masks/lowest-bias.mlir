// A causal mask with padding on the left, as model libraries pass it: a bias of 0
// or the lowest number of float32, added. It hides some rows whole: the mean of all
// values.
// score: x + at(c[0], b, 0, i, j)
// capture: padded lowest : b 1 sq sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x1x?x?xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %bias: tensor<?x1x?x?xf32>) {
      %none = arith.constant 0 : i32
      %t = attn.capture_load %bias[%b, %none, %i, %j] : tensor<?x1x?x?xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x1x?x?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
