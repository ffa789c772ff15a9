// Each batch entry has its own number of keys.
// mask: j < c[0][b]
// capture: integers 0 sk : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %lengths: tensor<?xi32>) {
      %length = attn.capture_load %lengths[%b] : tensor<?xi32>
      %m = arith.cmpi slt, %j, %length : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
