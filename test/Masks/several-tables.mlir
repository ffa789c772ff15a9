// Causal, with biases by the kind of each pair, one table read at two places, and
// by numbers of each query.
// mask: j <= i
// score: x + at(c[1], h, at(c[0], i, j)) + 0.5 * at(c[1], h, (at(c[0], i, j) + 1) % 7) + at(c[2], (at(c[0], i, j) + j) % 5) + at(c[3], h, i, j % 9) + at(c[4], h, i, (i + j) % 3)
// capture: integers 0 7 : sq sk
// capture: normal : h 7
// capture: normal : 5
// capture: normal : h sq 9
// capture: normal : h sq 3

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?x?xi32>, %c1: tensor<?x7xf32>,
                     %c2: tensor<5xf32>, %c3: tensor<?x?x9xf32>,
                     %c4: tensor<?x?x3xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1, %c2, %c3, %c4)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x?xi32>, %t1: tensor<?x7xf32>, %t2: tensor<5xf32>,
          %t3: tensor<?x?x9xf32>, %t4: tensor<?x?x3xf32>) {
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %five = arith.constant 5 : i32
      %seven = arith.constant 7 : i32
      %nine = arith.constant 9 : i32
      %half = arith.constant 0.5 : f32
      %kind = attn.capture_load %t0[%i, %j] : tensor<?x?xi32>
      %after = arith.addi %kind, %one : i32
      %next = arith.remsi %after, %seven : i32
      %moved = arith.addi %kind, %j : i32
      %fifth = arith.remsi %moved, %five : i32
      %place = arith.remsi %j, %nine : i32
      %both = arith.addi %i, %j : i32
      %third = arith.remsi %both, %three : i32
      %f0 = attn.capture_load %t1[%h, %kind] : tensor<?x7xf32>
      %f1 = attn.capture_load %t1[%h, %next] : tensor<?x7xf32>
      %f2 = attn.capture_load %t2[%fifth] : tensor<5xf32>
      %f3 = attn.capture_load %t3[%h, %i, %place] : tensor<?x?x9xf32>
      %f4 = attn.capture_load %t4[%h, %i, %third] : tensor<?x?x3xf32>
      %g1 = arith.mulf %f1, %half : f32
      %y0 = arith.addf %x, %f0 : f32
      %y1 = arith.addf %y0, %g1 : f32
      %y2 = arith.addf %y1, %f2 : f32
      %y3 = arith.addf %y2, %f3 : f32
      %y4 = arith.addf %y3, %f4 : f32
      attn.yield %y4 : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %t0: tensor<?x?xi32>, %t1: tensor<?x7xf32>, %t2: tensor<5xf32>,
         %t3: tensor<?x?x9xf32>, %t4: tensor<?x?x3xf32>) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi32>, tensor<?x7xf32>, tensor<5xf32>,
       tensor<?x?x9xf32>, tensor<?x?x3xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
