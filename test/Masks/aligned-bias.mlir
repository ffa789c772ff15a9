// Biases of each query and key, of a head and of a batch entry, whose rows are aligned
// where lengths are; causal.
// score: x + at(c[0], h, i, j) + at(c[1], b, i, j)
// mask: j <= i
// capture: normal : h sq sk
// capture: normal : b sq sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xbf16> {attn.aligned},
                     %c1: tensor<?x?x?xf16> {attn.aligned})
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x?x?xbf16>, %t1: tensor<?x?x?xf16>) {
      %t = attn.capture_load %t0[%h, %i, %j] : tensor<?x?x?xbf16>
      %u = attn.capture_load %t1[%b, %i, %j] : tensor<?x?x?xf16>
      %tw = arith.extf %t : bf16 to f32
      %uw = arith.extf %u : f16 to f32
      %n = arith.addf %tw, %uw : f32
      %y = arith.addf %x, %n : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %t0: tensor<?x?x?xbf16>, %t1: tensor<?x?x?xf16>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x?xbf16>, tensor<?x?x?xf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
