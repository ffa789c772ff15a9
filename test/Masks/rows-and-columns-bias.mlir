// Biases of each query for the rows and for the columns of an image, 16 wide.
// score: x + at(c[0], h, i, j // 16) + at(c[1], h, i, j % 16)
// capture: integers -2 2 : h sq 12
// capture: integers -2 2 : h sq 16
// longest: 192

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?x?x12xi8>, %c1: tensor<?x?x16xi32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x?x12xi8>, %t1: tensor<?x?x16xi32>) {
      %c16 = arith.constant 16 : i32
      %jy = arith.floordivsi %j, %c16 : i32
      %j0 = arith.muli %jy, %c16 : i32
      %jx = arith.subi %j, %j0 : i32
      %t = attn.capture_load %t0[%h, %i, %jy] : tensor<?x?x12xi8>
      %u = attn.capture_load %t1[%h, %i, %jx] : tensor<?x?x16xi32>
      %w = arith.extsi %t : i8 to i32
      %n = arith.addi %w, %u : i32
      %f = arith.sitofp %n : i32 to f32
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?x12xi8>, tensor<?x?x16xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
