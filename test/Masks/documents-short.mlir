// Sorted documents of the first positions, whose numbers start below 0. The other
// positions belong to none and see nothing, although after the end, where an
// index reads 0, there may be a document of that number.
// mask: (i < c[1]) & (j < c[1]) & (at(c[0], i) == at(c[0], j))
// capture: sorted -2 1 : l/2
// capture: integers l/2 l/2

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>, %c1: i32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ids: tensor<?xi32>, %n: i32) {
      %r = attn.capture_load %ids[%i] : tensor<?xi32>
      %s = attn.capture_load %ids[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %left = arith.cmpi slt, %i, %n : i32
      %right = arith.cmpi slt, %j, %n : i32
      %both = arith.andi %left, %right : i1
      %m = arith.andi %both, %same : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
