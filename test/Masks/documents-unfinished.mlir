// Sorted documents whose numbers end before the positions do, and start below 0:
// after their end positions read 0. Only data, which batch entries are shown,
// say that this matters, so no launch is refused.
// mask: (at(c[1], b) != 0) & (at(c[0], i) == at(c[0], j))
// capture: sorted -2 1 : l/2
// capture: integers 0 3 : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>, %c1: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ids: tensor<?xi32>, %shown: tensor<?xi32>) {
      %zero = arith.constant 0 : i32
      %r = attn.capture_load %ids[%i] : tensor<?xi32>
      %s = attn.capture_load %ids[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %entry = attn.capture_load %shown[%b] : tensor<?xi32>
      %is_shown = arith.cmpi ne, %entry, %zero : i32
      %m = arith.andi %is_shown, %same : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
