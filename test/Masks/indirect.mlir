// A table of a table: the kinds of two positions decide.
// mask: at(c[1], at(c[0], i), at(c[0], j))
// capture: integers 0 7 : l
// capture: integers 0 1 : 8 8

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>, %c1: tensor<8x8xi1>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %kinds: tensor<?xi32>, %allowed: tensor<8x8xi1>) {
      %r = attn.capture_load %kinds[%i] : tensor<?xi32>
      %s = attn.capture_load %kinds[%j] : tensor<?xi32>
      %m = attn.capture_load %allowed[%r, %s] : tensor<8x8xi1>
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>, tensor<8x8xi1>) -> (!t, !l)
  return %o, %lse : !t, !l
}
