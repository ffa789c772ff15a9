!t = tensor<1x2x64x16xf32>
!l = tensor<1x2x64xf32>
func.func @score_loss(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %t = math.tanh %x : f32
      %lowest = arith.constant -3.4e+38 : f32
      %y = arith.mulf %t, %lowest : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
