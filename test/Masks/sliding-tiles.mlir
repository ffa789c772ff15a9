// Rows of four tiles of 128 tokens: a tile sees those beside it, in its own row and
// in the next ones.
// mask: (np.abs(i // 512 - j // 512) <= 1) & (np.abs(i // 128 % 4 - j // 128 % 4) <= 1)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %c4 = arith.constant 4 : i32
      %c128 = arith.constant 128 : i32
      %c512 = arith.constant 512 : i32
      %irow = arith.divsi %i, %c512 : i32
      %jrow = arith.divsi %j, %c512 : i32
      %itile = arith.divsi %i, %c128 : i32
      %jtile = arith.divsi %j, %c128 : i32
      %ix = arith.remsi %itile, %c4 : i32
      %jx = arith.remsi %jtile, %c4 : i32
      %dy = arith.subi %irow, %jrow : i32
      %dx = arith.subi %ix, %jx : i32
      %ay = math.absi %dy : i32
      %ax = math.absi %dx : i32
      %my = arith.cmpi sle, %ay, %one : i32
      %mx = arith.cmpi sle, %ax, %one : i32
      %m = arith.andi %my, %mx : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
