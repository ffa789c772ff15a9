// RUN: attn-opt --attn-raise %s | FileCheck %s
// Scores that start from NaN: it is no other constant, zero least of all.
// CHECK: score(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK-NEXT: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK-NEXT: arith.addf %[[X]], %[[NAN]] : f32
func.func @loop(%q0: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x64xf16>, %n9: index) -> tensor<?x64xf16> {
 %l0 = arith.constant 0 : index
 %l1 = arith.constant 1 : index
 %res = scf.for %it = %l0 to %n9 step %l1 iter_args(%q = %q0) -> (tensor<?x64xf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0x7FC00000 : f32
  %z16 = arith.constant 0.0 : f16
  %n = tensor.dim %q, %c0 : tensor<?x64xf16>
  %t = tensor.dim %k, %c0 : tensor<?x64xf16>
  %et = tensor.empty(%t) : tensor<64x?xf16>
  %kt = linalg.transpose ins(%k : tensor<?x64xf16>) outs(%et : tensor<64x?xf16>) permutation = [1, 0]
  %es = tensor.empty(%n, %t) : tensor<?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<?x64xf16>, tensor<64x?xf16>) outs(%s0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%s: tensor<?x?xf32>) outs(%es: tensor<?x?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi ule, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %keep, %a, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<?x?xf32>) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p16 = arith.truncf %p : tensor<?x?xf32> to tensor<?x?xf16>
  %eo = tensor.empty(%n) : tensor<?x64xf16>
  %o0 = linalg.fill ins(%z16 : f16) outs(%eo : tensor<?x64xf16>) -> tensor<?x64xf16>
  %o = linalg.matmul ins(%p16, %v : tensor<?x?xf16>, tensor<?x64xf16>) outs(%o0 : tensor<?x64xf16>) -> tensor<?x64xf16>
  scf.yield %o : tensor<?x64xf16>
 }
 return %res : tensor<?x64xf16>
}
