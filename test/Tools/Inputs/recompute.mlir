// CHOICE is what gradients compute again.
!t = tensor<?x?x?x16xbf16>
!l = tensor<?x?x?xf32>
#any = #attn.numerics<deterministic = false>

func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
      {numerics = #any, recompute = #attn.recompute<CHOICE>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
