// A search for a value of both positions.
// mask: upto(c[0], i + j) % 2 == 1
// capture: offsets : 21

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %marks: tensor<?xi32>) {
      %odd = arith.constant 1 : i32
      %sum = arith.addi %i, %j : i32
      %r = attn.capture_search %marks[], %sum : tensor<?xi32>
      %bit = arith.andi %r, %odd : i32
      %m = arith.cmpi eq, %bit, %odd : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
