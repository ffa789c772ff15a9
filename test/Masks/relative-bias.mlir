// A learned table of biases by head and clipped distance.
// score: x + at(c[0], h, np.clip(j - i + 32, 0, 64))
// capture: normal : h 65

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x65xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<?x65xf32>) {
      %low = arith.constant 0 : i32
      %high = arith.constant 64 : i32
      %c32 = arith.constant 32 : i32
      %d = arith.subi %j, %i : i32
      %e = arith.addi %d, %c32 : i32
      %f = arith.maxsi %e, %low : i32
      %g = arith.minsi %f, %high : i32
      %t = attn.capture_load %table[%h, %g] : tensor<?x65xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x65xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
