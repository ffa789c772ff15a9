// The last sixteen keys, and the last four of every earlier sixteen.
// mask: (j <= i) & ((i - j < 16) | (j % 16 >= 12))

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c12 = arith.constant 12 : i32
      %c16 = arith.constant 16 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %d, %c16 : i32
      %r = arith.remui %j, %c16 : i32
      %column = arith.cmpi uge, %r, %c12 : i32
      %either = arith.ori %near, %column : i1
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %either, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
