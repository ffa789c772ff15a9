// Causal, aligned with the last key of each batch entry, whose keys are
// padded.
// mask: (j < c[0][b]) & (j <= i + c[0][b] - sq)
// capture: integers 1 sk : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi64>) -> (!t, !l) {
  %dim = arith.constant 2 : index
  %rows = tensor.dim %q, %dim : !t
  %c1 = arith.index_cast %rows : index to i32
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %lengths: tensor<?xi64>, %queries: i32) {
      %wide = attn.capture_load %lengths[%b] : tensor<?xi64>
      %length = arith.trunci %wide : i64 to i32
      %offset = arith.subi %length, %queries : i32
      %last = arith.addi %i, %offset : i32
      %real = arith.cmpi slt, %j, %length : i32
      %past = arith.cmpi sle, %j, %last : i32
      %m = arith.andi %real, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi64>, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
