// Biases by the distance of rows and columns of an image twelve wide.
// score: x + at(c[0], h, i // 12 - j // 12 + 15, i % 12 - j % 12 + 11)
// capture: normal : h 31 23
// longest: 192

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x31x23xbf16>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<?x31x23xbf16>) {
      %c12 = arith.constant 12 : i32
      %c15 = arith.constant 15 : i32
      %c11 = arith.constant 11 : i32
      %iy = arith.divui %i, %c12 : i32
      %ix = arith.remui %i, %c12 : i32
      %jy = arith.divui %j, %c12 : i32
      %jx = arith.remui %j, %c12 : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %ty = arith.addi %dy, %c15 : i32
      %tx = arith.addi %dx, %c11 : i32
      %t = attn.capture_load %table[%h, %ty, %tx] : tensor<?x31x23xbf16>
      %w = arith.extf %t : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x31x23xbf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
