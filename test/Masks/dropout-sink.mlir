// Dropout and a sink: both leave lse as it is.
// mask: j <= i
// sink: normal : h
// dropout: 0.1

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>, %seed: i32, %offset: i32)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) dropout(%seed, %offset) {dropout_p = 0.1 : f64}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
