// Eight global positions, and a window of sixteen to each side.
// mask: (abs(i - j) <= 16) | (j < 8) | (i < 8)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c8 = arith.constant 8 : i32
      %c16 = arith.constant 16 : i32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %near = arith.cmpi sle, %a, %c16 : i32
      %key = arith.cmpi slt, %j, %c8 : i32
      %query = arith.cmpi slt, %i, %c8 : i32
      %global = arith.ori %key, %query : i1
      %m = arith.ori %global, %near : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
