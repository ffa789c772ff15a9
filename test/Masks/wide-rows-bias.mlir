// Biases of each query for the rows and for the columns of an image, 128 wide.
// score: x + at(c[0], b, h, i, j // 128) + at(c[1], b, h, i, j % 128)
// capture: normal : b h sq 2
// capture: normal : b h sq 128
// longest: 256

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t,
                     %c0: tensor<?x?x?x2xf32>, %c1: tensor<?x?x?x128xf32>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %t0: tensor<?x?x?x2xf32>, %t1: tensor<?x?x?x128xf32>) {
      %c128 = arith.constant 128 : i32
      %jy = arith.floordivsi %j, %c128 : i32
      %j0 = arith.muli %jy, %c128 : i32
      %jx = arith.subi %j, %j0 : i32
      %t = attn.capture_load %t0[%b, %h, %i, %jy] : tensor<?x?x?x2xf32>
      %u = attn.capture_load %t1[%b, %h, %i, %jx] : tensor<?x?x?x128xf32>
      %w = arith.addf %t, %u : f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?x?x2xf32>, tensor<?x?x?x128xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
