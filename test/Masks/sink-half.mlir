// An attention sink of each head, of the type of the keys.
// sink: normal : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xbf16>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink)
    : (!t, !t, !t, tensor<?xbf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
