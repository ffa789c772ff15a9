// A bias of each query for every two keys.
// score: x + at(c[0], h, i, j // 2)
// capture: normal : h sq 96
// longest: 192

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x96xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t0: tensor<?x?x96xf32>) {
      %c2 = arith.constant 2 : i32
      %n = arith.floordivsi %j, %c2 : i32
      %f = attn.capture_load %t0[%h, %i, %n] : tensor<?x?x96xf32>
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?x96xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
