// Lengths are known at launch.
!t = tensor<?x?x?x96xbf16>
!lse = tensor<?x?x?xf32>
func.func @wide(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal, #attn.softcap<5.0 : f32>]}
    : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
