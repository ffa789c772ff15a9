// Causal by captured positions of queries and keys.
// mask: at(c[0], j) <= at(c[0], i)
// capture: permutation : l

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %positions: tensor<?xi32>) {
      %r = attn.capture_load %positions[%i] : tensor<?xi32>
      %s = attn.capture_load %positions[%j] : tensor<?xi32>
      %m = arith.cmpi sle, %s, %r : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
