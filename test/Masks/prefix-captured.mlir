// Prefix-LM with a prefix of its own for each batch entry.
// mask: (j < c[0][b]) | (j <= i)
// capture: integers 0 sk : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %prefixes: tensor<?xi32>) {
      %length = attn.capture_load %prefixes[%b] : tensor<?xi32>
      %prefix = arith.cmpi slt, %j, %length : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.ori %prefix, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
