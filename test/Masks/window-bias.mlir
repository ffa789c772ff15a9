// Windows of 7 x 7 tokens behind one another, and a bias by the distance in one.
// mask: i // 49 == j // 49
// score: x + at(c[0], h, i % 49 // 7 - j % 49 // 7 + 6, i % 7 - j % 7 + 6)
// capture: normal : h 13 13

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x13x13xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<?x13x13xf32>) {
      %c6 = arith.constant 6 : i32
      %c7 = arith.constant 7 : i32
      %c49 = arith.constant 49 : i32
      %iw = arith.remui %i, %c49 : i32
      %jw = arith.remui %j, %c49 : i32
      %iy = arith.divui %iw, %c7 : i32
      %jy = arith.divui %jw, %c7 : i32
      %ix = arith.remui %iw, %c7 : i32
      %jx = arith.remui %jw, %c7 : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %ty = arith.addi %dy, %c6 : i32
      %tx = arith.addi %dx, %c6 : i32
      %t = attn.capture_load %table[%h, %ty, %tx] : tensor<?x13x13xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?x13x13xf32>) {
      %c49 = arith.constant 49 : i32
      %iw = arith.divui %i, %c49 : i32
      %jw = arith.divui %j, %c49 : i32
      %0 = arith.cmpi eq, %iw, %jw : i32
      attn.yield %0 : i1
    }
    : (!t, !t, !t, tensor<?x13x13xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
