// Packed queries and keys with offsets of their own; causal, with the last
// query of a sequence at its last key.
// mask: (upto(c[0], i) == upto(c[1], j)) & (at(c[1], upto(c[0], i)) - j >= at(c[0], upto(c[0], i)) - i)
// capture: offsets sq : 5
// capture: offsets sk : 5

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>, %c1: tensor<?xi32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1) {sorted_captures = array<i64: 0, 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %queries: tensor<?xi32>, %keys: tensor<?xi32>) {
      %r = attn.capture_search %queries[], %i : tensor<?xi32>
      %s = attn.capture_search %keys[], %j : tensor<?xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %qend = attn.capture_load %queries[%r] : tensor<?xi32>
      %kend = attn.capture_load %keys[%r] : tensor<?xi32>
      %qleft = arith.subi %qend, %i : i32
      %kleft = arith.subi %kend, %j : i32
      %past = arith.cmpi sge, %kleft, %qleft : i32
      %m = arith.andi %same, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
