// A quarter of the weights dropped.
// dropout: 0.25

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %seed: i32, %offset: i32)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v dropout(%seed, %offset) {dropout_p = 0.25 : f64}
    : (!t, !t, !t, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
