// The 17 nearest keys; the window stays inside at both ends.
// mask: (j >= np.maximum(np.minimum(i - 8, sk - 17), 0)) & (j < np.maximum(np.minimum(i - 8, sk - 17), 0) + 17)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %dim = arith.constant 2 : index
  %keys = tensor.dim %k, %dim : !t
  %c0 = arith.index_cast %keys : index to i32
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %length: i32) {
      %zero = arith.constant 0 : i32
      %c8 = arith.constant 8 : i32
      %c17 = arith.constant 17 : i32
      %last = arith.subi %length, %c17 : i32
      %centred = arith.subi %i, %c8 : i32
      %lower = arith.minsi %centred, %last : i32
      %first = arith.maxsi %lower, %zero : i32
      %end = arith.addi %first, %c17 : i32
      %above = arith.cmpi sge, %j, %first : i32
      %below = arith.cmpi slt, %j, %end : i32
      %m = arith.andi %above, %below : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
