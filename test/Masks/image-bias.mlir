// A bias by the distance in rows and columns of an image of twenty columns, as //
// and % are in Python.
// score: x + at(c[0], h, i // 20 - j // 20 + 9, i % 20 - j % 20 + 19)
// capture: normal : h 19 39
// longest: 200

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?x19x39xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x19x39xf32>) {
      %c20 = arith.constant 20 : i32
      %c9 = arith.constant 9 : i32
      %c19 = arith.constant 19 : i32
      %iy = arith.floordivsi %i, %c20 : i32
      %jy = arith.floordivsi %j, %c20 : i32
      %i0 = arith.muli %iy, %c20 : i32
      %j0 = arith.muli %jy, %c20 : i32
      %ix = arith.subi %i, %i0 : i32
      %jx = arith.subi %j, %j0 : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %ty = arith.addi %dy, %c9 : i32
      %tx = arith.addi %dx, %c19 : i32
      %t = attn.capture_load %t0[%h, %ty, %tx] : tensor<?x19x39xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x19x39xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
