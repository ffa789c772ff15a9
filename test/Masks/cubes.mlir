// A video in cubes of 80 tokens, three by three a frame: the frames, rows and
// columns of cubes around the own one. Blocks lie across cubes.
// mask: (abs(i // 720 - j // 720) <= 1) & (abs(i // 240 % 3 - j // 240 % 3) <= 1) & (abs(i // 80 % 3 - j // 80 % 3) <= 1)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %nine = arith.constant 9 : i32
      %size = arith.constant 80 : i32
      %ic = arith.divsi %i, %size : i32
      %jc = arith.divsi %j, %size : i32
      %iz = arith.divsi %ic, %nine : i32
      %jz = arith.divsi %jc, %nine : i32
      %ir = arith.divsi %ic, %three : i32
      %jr = arith.divsi %jc, %three : i32
      %iy = arith.remsi %ir, %three : i32
      %jy = arith.remsi %jr, %three : i32
      %ix = arith.remsi %ic, %three : i32
      %jx = arith.remsi %jc, %three : i32
      %dz = arith.subi %iz, %jz : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %az = math.absi %dz : i32
      %ay = math.absi %dy : i32
      %ax = math.absi %dx : i32
      %mz = arith.cmpi sle, %az, %one : i32
      %my = arith.cmpi sle, %ay, %one : i32
      %mx = arith.cmpi sle, %ax, %one : i32
      %myx = arith.andi %my, %mx : i1
      %m = arith.andi %mz, %myx : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
