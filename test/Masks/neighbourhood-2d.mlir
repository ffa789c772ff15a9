// Positions of an image twelve wide, at a distance of three at most in both
// directions.
// mask: (abs(i // 12 - j // 12) <= 3) & (abs(i % 12 - j % 12) <= 3)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %three = arith.constant 3 : i32
      %c12 = arith.constant 12 : i32
      %iy = arith.divui %i, %c12 : i32
      %ix = arith.remui %i, %c12 : i32
      %jy = arith.divui %j, %c12 : i32
      %jx = arith.remui %j, %c12 : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %ay = math.absi %dy : i32
      %ax = math.absi %dx : i32
      %my = arith.cmpi sle, %ay, %three : i32
      %mx = arith.cmpi sle, %ax, %three : i32
      %m = arith.andi %my, %mx : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
