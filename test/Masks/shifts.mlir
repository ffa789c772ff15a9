// Bits of numbers, shifted by what may be negative, or the width and more: 0 is
// left then, or the sign.
// mask: np.where((i - j >= 0) & (i - j < 32), (0x80000F35 >> np.clip(i - j, 0, 31)) & 1, 0) | (j % 7 == 0)
// score: x + np.where(i < 8, (3 << np.clip(i, 0, 7)) % 256 - 256 * (((3 << np.clip(i, 0, 7)) % 256) > 127), 0) / 64 + np.where((j >= i) & (j - i < 16), -300 >> np.clip(j - i, 0, 15), -1) / 256

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %three = arith.constant 3 : i8
      %most = arith.constant 100 : i32
      %near = arith.minsi %i, %most : i32
      %by = arith.trunci %near : i32 to i8
      %left = arith.shli %three, %by : i8
      %a = arith.sitofp %left : i8 to f32
      %c64 = arith.constant 0.015625 : f32
      %a64 = arith.mulf %a, %c64 : f32
      %number = arith.constant -300 : i16
      %d = arith.subi %j, %i : i32
      %far = arith.trunci %d : i32 to i16
      %right = arith.shrsi %number, %far : i16
      %e = arith.sitofp %right : i16 to f32
      %c256 = arith.constant 0.00390625 : f32
      %e256 = arith.mulf %e, %c256 : f32
      %sum = arith.addf %a64, %e256 : f32
      %y = arith.addf %x, %sum : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %bits = arith.constant 0x80000F35 : i32
      %one = arith.constant 1 : i32
      %seven = arith.constant 7 : i32
      %zero = arith.constant 0 : i32
      %d = arith.subi %i, %j : i32
      %shifted = arith.shrui %bits, %d : i32
      %bit = arith.andi %shifted, %one : i32
      %shown = arith.cmpi ne, %bit, %zero : i32
      %r = arith.remsi %j, %seven : i32
      %always = arith.cmpi eq, %r, %zero : i32
      %m = arith.ori %shown, %always : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
