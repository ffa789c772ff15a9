!t = tensor<?x?x?x16xbf16>
!l = tensor<?x?x?xf32>
func.func @""(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
