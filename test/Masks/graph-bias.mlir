// A bias for the length of the shortest path between two nodes; some have none.
// score: x + at(c[1], h, at(c[0], i, j))
// capture: integers -3 153 : sq sk
// capture: normal : h 150

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?x?xi32>, %c1: tensor<?x150xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x?xi32>, %t1: tensor<?x150xf32>) {
      %n = attn.capture_load %t0[%i, %j] : tensor<?x?xi32>
      %f = attn.capture_load %t1[%h, %n] : tensor<?x150xf32>
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?xi32>, tensor<?x150xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
