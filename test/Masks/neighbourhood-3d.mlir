// Positions of a volume, eight wide and six high, at a distance of one, two
// and three at most.
// mask: (abs(i // 48 - j // 48) <= 1) & (abs(i // 8 % 6 - j // 8 % 6) <= 2) & (abs(i % 8 - j % 8) <= 3)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %c6 = arith.constant 6 : i32
      %c8 = arith.constant 8 : i32
      %c48 = arith.constant 48 : i32
      %iz = arith.divsi %i, %c48 : i32
      %jz = arith.divsi %j, %c48 : i32
      %irow = arith.divsi %i, %c8 : i32
      %jrow = arith.divsi %j, %c8 : i32
      %iy = arith.remsi %irow, %c6 : i32
      %jy = arith.remsi %jrow, %c6 : i32
      %ix = arith.remsi %i, %c8 : i32
      %jx = arith.remsi %j, %c8 : i32
      %dz = arith.subi %iz, %jz : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %az = math.absi %dz : i32
      %ay = math.absi %dy : i32
      %ax = math.absi %dx : i32
      %mz = arith.cmpi sle, %az, %one : i32
      %my = arith.cmpi sle, %ay, %two : i32
      %mx = arith.cmpi sle, %ax, %three : i32
      %mzy = arith.andi %mz, %my : i1
      %m = arith.andi %mzy, %mx : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
