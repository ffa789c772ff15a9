// Causal, and a bias of each key for who speaks at the query.
// mask: j <= i
// score: x + at(c[1], h, at(c[0], i), j)
// capture: integers 0 7 : sq
// capture: normal : h 7 sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?xi32>, %c1: tensor<?x7x?xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?xi32>, %t1: tensor<?x7x?xf32>) {
      %n = attn.capture_load %t0[%i] : tensor<?xi32>
      %f = attn.capture_load %t1[%h, %n, %j] : tensor<?x7x?xf32>
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %t0: tensor<?xi32>, %t1: tensor<?x7x?xf32>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, tensor<?x7x?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
