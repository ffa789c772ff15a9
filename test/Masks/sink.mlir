// An attention sink of each head, and no mask.
// sink: normal : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink)
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
