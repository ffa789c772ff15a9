// Biases by buckets that grow with the logarithm of the distance (T5).
// mask: j <= i
// score: x + at(c[0], h, np.where(i - j < 16, np.maximum(i - j, 0), np.minimum(31, 16 + np.trunc(np.log2(np.maximum(i - j, 1) / 16) * 4 + 0.01).astype(int))))
// capture: normal : h 32

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x32xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %table: tensor<?x32xf32>) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %c16 = arith.constant 16 : i32
      %c31 = arith.constant 31 : i32
      %sixteen = arith.constant 16.0 : f32
      %rate = arith.constant 4.0 : f32
      %d = arith.subi %i, %j : i32
      %n = arith.maxsi %d, %zero : i32
      %small = arith.cmpi slt, %n, %c16 : i32
      %safe = arith.maxsi %n, %one : i32
      %nf = arith.sitofp %safe : i32 to f32
      %ratio = arith.divf %nf, %sixteen : f32
      %log = math.log2 %ratio : f32
      %scaled = arith.mulf %log, %rate : f32
      %bend = arith.constant 0.01 : f32
      %nudged = arith.addf %scaled, %bend : f32
      %steps = arith.fptosi %nudged : f32 to i32
      %large = arith.addi %steps, %c16 : i32
      %capped = arith.minsi %large, %c31 : i32
      %bucket = arith.select %small, %n, %capped : i32
      %t = attn.capture_load %table[%h, %bucket] : tensor<?x32xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?x32xf32>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x32xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
