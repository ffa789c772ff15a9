!q = tensor<1x2x64x128xbf16>
!lse = tensor<1x2x64xf32>
func.func @small(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
