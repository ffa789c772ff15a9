// Gradients whose sums may be in any order, of one head, of lengths that are known at launch.
!t = tensor<?x1x?x128xbf16>
!lse = tensor<?x1x?xf32>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], numerics = #attn.numerics<deterministic = false>}
    : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
