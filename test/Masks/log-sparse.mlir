// Itself and keys at distances that are powers of two.
// mask: (j <= i) & (((i - j) & (i - j - 1)) == 0)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %d = arith.subi %i, %j : i32
      %ones = math.ctpop %d : i32
      %few = arith.cmpi ule, %ones, %one : i32
      %past = arith.cmpi sge, %d, %zero : i32
      %m = arith.andi %few, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
