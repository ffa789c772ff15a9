// The first four keys and the last 32: streaming attention.
// mask: (j <= i) & ((j < 4) | (i - j < 32))

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %c32 = arith.constant 32 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %d, %c32 : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %either = arith.ori %first, %near : i1
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %either, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
