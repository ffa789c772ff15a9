// A window of its own for each head.
// mask: abs(i - j) < c[0][h]
// capture: integers 1 60 : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi16>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %widths: tensor<?xi16>) {
      %narrow = attn.capture_load %widths[%h] : tensor<?xi16>
      %width = arith.extsi %narrow : i16 to i32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %m = arith.cmpi slt, %a, %width : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
