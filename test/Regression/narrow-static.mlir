// Bounds of loops that are known when compiling were folded in the producer, and
// not in the consumer, whose groups narrow them (warp.narrow): the two roles no
// longer met.

// RUN: attn-compile %s --target=sm_90a --emit=ptx -o - | FileCheck %s
// CHECK: .visible .entry short(

func.func @short(%q: tensor<1x2x9x64xbf16>, %k: tensor<1x2x11x64xbf16>,
                 %v: tensor<1x2x11x64xbf16>) -> (tensor<1x2x9x64xbf16>, tensor<1x2x9xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x2x9x64xbf16>, tensor<1x2x11x64xbf16>, tensor<1x2x11x64xbf16>)
      -> (tensor<1x2x9x64xbf16>, tensor<1x2x9xf32>)
  return %o, %lse : tensor<1x2x9x64xbf16>, tensor<1x2x9xf32>
}
