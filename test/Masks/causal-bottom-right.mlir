// Causal, with the last query at the last key.
// mask: j <= i + sk - sq

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %dim = arith.constant 2 : index
  %keys = tensor.dim %k, %dim : !t
  %queries = tensor.dim %q, %dim : !t
  %difference = arith.subi %keys, %queries : index
  %c0 = arith.index_cast %difference : index to i32
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %offset: i32) {
      %last = arith.addi %i, %offset : i32
      %m = arith.cmpi sle, %j, %last : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
