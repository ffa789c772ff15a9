// Packed sequences by their offsets, causal inside each.
// mask: (upto(c[0], i) == upto(c[0], j)) & (j <= i)
// capture: offsets : 7

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %offsets: tensor<?xi32>) {
      %r = attn.capture_search %offsets[], %i : tensor<?xi32>
      %s = attn.capture_search %offsets[], %j : tensor<?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %same, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
