// Causal inside documents, by numbers that are promised to grow.
// mask: (at(c[0], b, i) == at(c[0], b, j)) & (j <= i)
// capture: ids 5 : b l

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ids: tensor<?x?xi32>) {
      %r = attn.capture_load %ids[%b, %i] : tensor<?x?xi32>
      %s = attn.capture_load %ids[%b, %j] : tensor<?x?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %same, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
