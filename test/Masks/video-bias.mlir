// Frames of 5 x 14 tokens that see themselves and those before, and a bias by the
// distance in frames, rows and columns.
// mask: i // 70 >= j // 70
// score: x + at(c[0], i // 70 - j // 70, i // 14 % 5 - j // 14 % 5 + 4, i % 14 - j % 14 + 13)
// capture: normal : 3 9 27
// longest: 210

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<3x9x27xbf16>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<3x9x27xbf16>) {
      %c4 = arith.constant 4 : i32
      %c5 = arith.constant 5 : i32
      %c13 = arith.constant 13 : i32
      %c14 = arith.constant 14 : i32
      %c70 = arith.constant 70 : i32
      %it = arith.divui %i, %c70 : i32
      %jt = arith.divui %j, %c70 : i32
      %iq = arith.divui %i, %c14 : i32
      %jq = arith.divui %j, %c14 : i32
      %iy = arith.remui %iq, %c5 : i32
      %jy = arith.remui %jq, %c5 : i32
      %ix = arith.remui %i, %c14 : i32
      %jx = arith.remui %j, %c14 : i32
      %tt = arith.subi %it, %jt : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %ty = arith.addi %dy, %c4 : i32
      %tx = arith.addi %dx, %c13 : i32
      %t = attn.capture_load %table[%tt, %ty, %tx] : tensor<3x9x27xbf16>
      %w = arith.extf %t : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<3x9x27xbf16>) {
      %c70 = arith.constant 70 : i32
      %it = arith.divui %i, %c70 : i32
      %jt = arith.divui %j, %c70 : i32
      %0 = arith.cmpi sge, %it, %jt : i32
      attn.yield %0 : i1
    }
    : (!t, !t, !t, tensor<3x9x27xbf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
