// From a first to after a last key of each query.
// mask: (j >= at(c[0], i)) & (j < at(c[1], i))
// capture: integers 0 sk : sq
// capture: integers 0 sk : sq

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>, %c1: tensor<?xi32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %starts: tensor<?xi32>, %ends: tensor<?xi32>) {
      %start = attn.capture_load %starts[%i] : tensor<?xi32>
      %end = attn.capture_load %ends[%i] : tensor<?xi32>
      %above = arith.cmpi sge, %j, %start : i32
      %below = arith.cmpi slt, %j, %end : i32
      %m = arith.andi %above, %below : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
