// RUN: not attn-compile %s -o %t 2>&1 | FileCheck %s

// A reshaped query, and the size of a dimension that no tensor has.
// CHECK: size-of-no-dimension.mlir:[[#@LINE+5]]:{{[0-9]+}}: error: 'tensor.dim' op of a reshaped argument is not understood
!t = tensor<?x4x?x64xbf16>
func.func @reshaped(%q: tensor<?x?x256xbf16>, %k: !t, %v: !t) -> !t {
  %far = arith.constant 4096 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %far : tensor<?x?x256xbf16>
  %n = tensor.dim %q, %c1 : tensor<?x?x256xbf16>
  %q5 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [%b, %n, 4, 64] : tensor<?x?x256xbf16> into tensor<?x?x4x64xbf16>
  %init = tensor.empty(%b, %n) : !t
  %q4 = linalg.transpose ins(%q5 : tensor<?x?x4x64xbf16>) outs(%init : !t) permutation = [0, 2, 1, 3]
  %o, %lse = attn.attention %q4, %k, %v : (!t, !t, !t) -> (!t, tensor<?x4x?xf32>)
  return %o : !t
}
