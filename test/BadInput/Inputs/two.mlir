!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %l = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o : !t
}
func.func @g(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %l = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o : !t
}
