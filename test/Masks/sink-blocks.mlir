// Few blocks of 64 rows and 32 keys show, by a captured table per head; where
// none does the sink alone is left.
// mask: at(c[0], h, i // 64, j // 32) == 3
// sink: normal : h
// capture: integers 0 4 : h sq/64 sk/32

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>, %c0: tensor<?x?x?xi32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?x?x?xi32>) {
      %c64 = arith.constant 64 : i32
      %c32 = arith.constant 32 : i32
      %c3 = arith.constant 3 : i32
      %r = arith.divui %i, %c64 : i32
      %s = arith.divui %j, %c32 : i32
      %e = attn.capture_load %table[%h, %r, %s] : tensor<?x?x?xi32>
      %m = arith.cmpi eq, %e, %c3 : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>, tensor<?x?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
