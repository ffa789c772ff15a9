// A size that is the largest of 64 bits was a key that a hash table keeps for
// itself.
// RUN: attn-opt %s --attn-raise | FileCheck %s
// CHECK-LABEL: func.func @softmax_over_queries
// CHECK-NOT: attn.attention
func.func @softmax_over_queries(%s: tensor<9223372036854775807x48xf32>) -> tensor<9223372036854775807x48xf32> {
  %e = tensor.empty() : tensor<9223372036854775807x48xf32>
  // CHECK: linalg.softmax
  %p = linalg.softmax dimension(0) ins(%s : tensor<9223372036854775807x48xf32>) outs(%e : tensor<9223372036854775807x48xf32>) -> tensor<9223372036854775807x48xf32>
  return %p : tensor<9223372036854775807x48xf32>
}
