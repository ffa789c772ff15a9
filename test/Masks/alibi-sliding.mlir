// Steep linear biases in a window: masked blocks at both ends.
// mask: (j <= i) & (j > i - 75)
// score: x + np.float32(3.0) * j

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %slope = arith.constant 3.0 : f32
      %f = arith.sitofp %j : i32 to f32
      %t = arith.mulf %slope, %f : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c75 = arith.constant 75 : i32
      %first = arith.subi %i, %c75 : i32
      %past = arith.cmpi sle, %j, %i : i32
      %near = arith.cmpi sgt, %j, %first : i32
      %m = arith.andi %past, %near : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
