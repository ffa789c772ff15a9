// Buckets whose bounds are multiples of 1 that f32 just misses: 1 / 41 * 41 is
// less than 1, and so are others. What is put together or fused reaches them.
// score: (lambda r, f: x + at(c[0], h, np.trunc(r * f(1 / 41) * f(41)).astype(int)) + at(c[0], h, np.trunc(r / f(49) * f(49)).astype(int)) + at(c[0], h, np.floor(r * f(0.7) + f(0.3)).astype(int)) + 2 * (r * f(1 / 49) * f(49) < r))(np.abs(i - j).astype(np.float32), np.float32)
// capture: normal : h l

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<?x?xf32>) {
      %d = arith.subi %i, %j : i32
      %n = math.absi %d : i32
      %r = arith.sitofp %n : i32 to f32

      %c41 = arith.constant 41.0 : f32
      %by41 = arith.constant 0.024390243902439025 : f32
      %share = arith.mulf %r, %by41 : f32
      %back = arith.mulf %share, %c41 : f32
      %bucket = arith.fptosi %back : f32 to i32
      %t0 = attn.capture_load %table[%h, %bucket] : tensor<?x?xf32>
      %y0 = arith.addf %x, %t0 : f32

      %c49 = arith.constant 49.0 : f32
      %quotient = arith.divf %r, %c49 : f32
      %times = arith.mulf %quotient, %c49 : f32
      %bucket1 = arith.fptosi %times : f32 to i32
      %t1 = attn.capture_load %table[%h, %bucket1] : tensor<?x?xf32>
      %y1 = arith.addf %y0, %t1 : f32

      %rate = arith.constant 0.7 : f32
      %start = arith.constant 0.3 : f32
      %grown = arith.mulf %r, %rate : f32
      %moved = arith.addf %grown, %start : f32
      %floor = math.floor %moved : f32
      %bucket2 = arith.fptosi %floor : f32 to i32
      %t2 = attn.capture_load %table[%h, %bucket2] : tensor<?x?xf32>
      %y2 = arith.addf %y1, %t2 : f32

      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %by49 = arith.constant 0.02040816326530612 : f32
      %share49 = arith.mulf %r, %by49 : f32
      %back49 = arith.mulf %share49, %c49 : f32
      %less = arith.cmpf olt, %back49, %r : f32
      %t3 = arith.select %less, %two, %zero : f32
      %y3 = arith.addf %y2, %t3 : f32
      attn.yield %y3 : f32
    }
    : (!t, !t, !t, tensor<?x?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
