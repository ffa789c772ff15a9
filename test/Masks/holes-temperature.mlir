// Squares of 16 by 16 that a captured map leaves out; a temperature per query,
// which reads 0 behind the last one: scores there are no numbers.
// mask: at(c[0], h, i // 16, j // 16) != 9
// score: x / at(c[1], i)
// capture: integers 0 9 : h sq/16 sk/16
// capture: uniform 0.5 2 : sq

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xi32>, %c1: tensor<?xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %map: tensor<?x?x?xi32>, %temperature: tensor<?xf32>) {
      %t = attn.capture_load %temperature[%i] : tensor<?xf32>
      %y = arith.divf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %map: tensor<?x?x?xi32>, %temperature: tensor<?xf32>) {
      %c9 = arith.constant 9 : i32
      %c16 = arith.constant 16 : i32
      %r = arith.divui %i, %c16 : i32
      %s = arith.divui %j, %c16 : i32
      %e = attn.capture_load %map[%h, %r, %s] : tensor<?x?x?xi32>
      %m = arith.cmpi ne, %e, %c9 : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x?xi32>, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
