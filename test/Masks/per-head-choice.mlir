// Even heads are causal, odd ones have a window.
// mask: (abs(i - j) < 30) if h % 2 else (j <= i)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %c30 = arith.constant 30 : i32
      %odd = arith.trunci %h : i32 to i1
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %near = arith.cmpi slt, %a, %c30 : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.select %odd, %near, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
