// RUN: attn-compile %s --emit=ptx | FileCheck %s

// Found by mutation and by the GPU suite: integer absolute value had no lowering,
// and the compiler ended on it.
// CHECK: .entry f(

!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v {variants = [#attn.alibi]} : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}
