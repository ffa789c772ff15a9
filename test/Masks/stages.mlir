// Keys of stages that are not after the query's, which is numbered elsewhere.
// mask: at(c[0], b, j) <= c[1][i]
// capture: sorted -3 3 : b l
// capture: integers -4 4 : sq

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi32>, %c1: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %stages: tensor<?x?xi32>, %last: tensor<?xi32>) {
      %s = attn.capture_load %stages[%b, %j] : tensor<?x?xi32>
      %e = attn.capture_load %last[%i] : tensor<?xi32>
      %m = arith.cmpi sge, %e, %s : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi32>, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
