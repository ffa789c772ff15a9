// Sorted documents whose numbers end before the positions do, and start below 0.
// mask: at(c[0], i) == at(c[0], j)
// capture: sorted -2 1 : l/2

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ids: tensor<?xi32>) {
      %r = attn.capture_load %ids[%i] : tensor<?xi32>
      %s = attn.capture_load %ids[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %r, %s : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
