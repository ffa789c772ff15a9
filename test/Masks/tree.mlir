// A tree of drafts: a query sees the keys that its bits name.
// mask: ((at(c[0], i) >> (j & 63)) & 1) == 1
// capture: integers 0 281474976710655 : sq

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi64>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ancestors: tensor<?xi64>) {
      %c63 = arith.constant 63 : i32
      %bits = attn.capture_load %ancestors[%i] : tensor<?xi64>
      %near = arith.andi %j, %c63 : i32
      %wide = arith.extui %near : i32 to i64
      %shifted = arith.shrui %bits, %wide : i64
      %m = arith.trunci %shifted : i64 to i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi64>) -> (!t, !l)
  return %o, %lse : !t, !l
}
