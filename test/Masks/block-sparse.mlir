// Blocks of 16 by 16, by a captured map per head.
// mask: at(c[0], h, i // 16, j // 16)
// capture: integers 0 1 : h sq/16 sk/16

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xi1>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %map: tensor<?x?x?xi1>) {
      %c16 = arith.constant 16 : i32
      %r = arith.divui %i, %c16 : i32
      %s = arith.divui %j, %c16 : i32
      %m = attn.capture_load %map[%h, %r, %s] : tensor<?x?x?xi1>
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x?xi1>) -> (!t, !l)
  return %o, %lse : !t, !l
}
