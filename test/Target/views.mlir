// Reshapes and transposes between the arguments and the attention become part of
// the launch rule: kernels see four dimensions, callers pass what they have.
// RUN: attn-compile %s --emit=header | FileCheck %s --check-prefix=HEADER
// RUN: rm -rf %t && attn-compile %s --dump-to=%t -o %t.attn
// RUN: tr -d ' \n' < %t/9-manifest.json | FileCheck %s
// RUN: attn-run --target=cpu %s --shape=b=2,sq=9 --check | FileCheck %s --check-prefix=SHAPES

// (batch, length, heads * dim): heads are 64 elements apart, of dimension 2.
// HEADER: q: bf16, ?x?x256, aligned to 16 bytes
// HEADER: o: bf16, ?x?x256, aligned to 16 bytes (result)
// CHECK: "name":"q",
// CHECK-SAME: "shape":[-1,-1,256],"alignment":16,"view":{{\[\[\[}}0,-1,1]],{{\[\[}}2,4,64]],{{\[\[}}1,-1,1]],{{\[\[}}2,64,1]]]
// CHECK-SAME: "name":"o",
// CHECK-SAME: "view":{{\[\[\[}}0,-1,1]],{{\[\[}}2,4,64]],{{\[\[}}1,-1,1]],{{\[\[}}2,64,1]]]
// SHAPES: shapes    q 2x9x256 bf16, k 2x9x256 bf16, v 2x9x256 bf16, o 2x9x256 bf16
// SHAPES: check     PASS
func.func @projections(%q: tensor<?x?x256xbf16>, %k: tensor<?x?x256xbf16>, %v: tensor<?x?x256xbf16>) -> tensor<?x?x256xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x256xbf16>
  %n = tensor.dim %q, %c1 : tensor<?x?x256xbf16>
  %m = tensor.dim %k, %c1 : tensor<?x?x256xbf16>
  %q5 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [%b, %n, 4, 64] : tensor<?x?x256xbf16> into tensor<?x?x4x64xbf16>
  %k5 = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [%b, %m, 4, 64] : tensor<?x?x256xbf16> into tensor<?x?x4x64xbf16>
  %v5 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [%b, %m, 4, 64] : tensor<?x?x256xbf16> into tensor<?x?x4x64xbf16>
  %eq = tensor.empty(%b, %n) : tensor<?x4x?x64xbf16>
  %ek = tensor.empty(%b, %m) : tensor<?x4x?x64xbf16>
  %q4 = linalg.transpose ins(%q5 : tensor<?x?x4x64xbf16>) outs(%eq : tensor<?x4x?x64xbf16>) permutation = [0, 2, 1, 3]
  %k4 = linalg.transpose ins(%k5 : tensor<?x?x4x64xbf16>) outs(%ek : tensor<?x4x?x64xbf16>) permutation = [0, 2, 1, 3]
  %v4 = linalg.transpose ins(%v5 : tensor<?x?x4x64xbf16>) outs(%ek : tensor<?x4x?x64xbf16>) permutation = [0, 2, 1, 3]
  %o, %lse = attn.attention %q4, %k4, %v4 {variants = [#attn.causal]}
    : (tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>) -> (tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>)
  %eo = tensor.empty(%b, %n) : tensor<?x?x4x64xbf16>
  %o5 = linalg.transpose ins(%o : tensor<?x4x?x64xbf16>) outs(%eo : tensor<?x?x4x64xbf16>) permutation = [0, 2, 1, 3]
  %o3 = tensor.collapse_shape %o5 [[0], [1], [2, 3]] : tensor<?x?x4x64xbf16> into tensor<?x?x256xbf16>
  return %o3 : tensor<?x?x256xbf16>
}
