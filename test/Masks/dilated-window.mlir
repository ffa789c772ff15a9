// Every fourth key of a window.
// mask: (abs(i - j) <= 40) & (abs(i - j) % 4 == 0)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %three = arith.constant 3 : i32
      %c40 = arith.constant 40 : i32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %near = arith.cmpi sle, %a, %c40 : i32
      %r = arith.andi %a, %three : i32
      %hit = arith.cmpi eq, %r, %zero : i32
      %m = arith.andi %near, %hit : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
