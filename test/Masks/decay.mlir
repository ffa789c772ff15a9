// A weight that decays with the distance, at a rate per head.
// mask: j <= i
// score: x + (i - j) * np.log(c[0][h])
// capture: uniform 0.5 0.99 : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %rates: tensor<?xf32>) {
      %rate = attn.capture_load %rates[%h] : tensor<?xf32>
      %log = math.log %rate : f32
      %d = arith.subi %i, %j : i32
      %f = arith.sitofp %d : i32 to f32
      %t = arith.mulf %f, %log : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %rates: tensor<?xf32>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
