// Lengths are known at launch.
!t = tensor<?x?x?x64xbf16>
!lse = tensor<?x?x?xf32>
func.func @narrow(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
