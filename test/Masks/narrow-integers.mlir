// A window in 16 and 8 bits: sums wrap around.
// mask: ((i - j + 100 + 128) % 256 - 128) < 96

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c96 = arith.constant 96 : i8
      %c100 = arith.constant 100 : i16
      %r = arith.trunci %i : i32 to i16
      %s = arith.trunci %j : i32 to i16
      %d = arith.subi %r, %s : i16
      %far = arith.addi %d, %c100 : i16
      %low = arith.trunci %far : i16 to i8
      %m = arith.cmpi slt, %low, %c96 : i8
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
