// RUN: attn-opt %s --attn-outline --split-input-file --verify-diagnostics

!t = tensor<2x4x32x64xf32>
module {
  %x = tensor.empty() : !t
  // expected-error@+1 {{'attn.attention' op is in no func.func of the module, wanted one to call a function of its own from}}
  %o, %lse = attn.attention %x, %x, %x : (!t, !t, !t) -> (!t, tensor<2x4x32xf32>)
}
