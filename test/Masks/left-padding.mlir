// Keys before the first real one are padding.
// mask: j >= c[0][b]
// capture: integers 0 sk : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %starts: tensor<?xi32>) {
      %start = attn.capture_load %starts[%b] : tensor<?xi32>
      %m = arith.cmpi sge, %j, %start : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
