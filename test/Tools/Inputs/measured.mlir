!q = tensor<4x16x4096x128xbf16>
!lse = tensor<4x16x4096xf32>
func.func @measured(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
