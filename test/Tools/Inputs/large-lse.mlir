// Rows whose lse is some 100, of which f32 keeps 2^-18; with a gradient of lse that
// is an error of all that goes back.
!q = tensor<?x?x?x216xf32>
!k = tensor<?x?x?x216xf32>
!v = tensor<?x?x?x8xf32>
!l = tensor<?x?x?xf32>

func.func @steep(%q: !q, %k: !k, %v: !v, %gains: tensor<?x?xf32>) -> (!v, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%gains) {scale = 0.3}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %g: tensor<?x?xf32>) {
      %gain = attn.capture_load %g[%i, %h] : tensor<?x?xf32>
      %y = arith.mulf %x, %gain : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %g: tensor<?x?xf32>) {
      %three = arith.constant 3 : i32
      %zero = arith.constant 0 : i32
      %d = arith.subi %i, %j : i32
      %r = arith.remsi %d, %three : i32
      %m = arith.cmpi eq, %r, %zero : i32
      attn.yield %m : i1
    } : (!q, !k, !v, tensor<?x?xf32>) -> (!v, !l)
  return %o, %lse : !v, !l
}
