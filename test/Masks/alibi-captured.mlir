// Linear biases with a captured slope per head, and the order of reading kept.
// mask: j <= i
// score: x + c[0][h] * (j - i)
// capture: normal : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %slopes: tensor<?xf32>) {
      %slope = attn.capture_load %slopes[%h] : tensor<?xf32>
      %d = arith.subi %j, %i : i32
      %f = arith.sitofp %d : i32 to f32
      %t = arith.mulf %slope, %f : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %slopes: tensor<?xf32>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
