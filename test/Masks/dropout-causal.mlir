// Dropout, causal, with a soft cap.
// mask: j <= i
// score: 2 * np.tanh(x / 2)
// dropout: 0.5

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %seed: i32, %offset: i32)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v dropout(%seed, %offset) {dropout_p = 0.5 : f64}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %cap = arith.constant 2.0 : f32
      %s = arith.divf %x, %cap : f32
      %t = math.tanh %s : f32
      %y = arith.mulf %t, %cap : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
