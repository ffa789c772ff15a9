// Constant tensors, dense or in a resource, are widened with everything else.
// RUN: attn-opt %s --attn-validate-raise="samples=1 cpu=%cpu" -o %t.out

!t = tensor<4x8xf32>
!s = tensor<4x4xf32>

func.func @bias(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %dense = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.0],
                                 [0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 9.0]]> : !s
  %resource = arith.constant dense_resource<bias> : !s
  %es = tensor.empty() : !s
  %eo = tensor.empty() : !t
  %zs = linalg.fill ins(%zero : f32) outs(%es : !s) -> !s
  %zo = linalg.fill ins(%zero : f32) outs(%eo : !t) -> !t
  %x = linalg.matmul indexing_maps = [affine_map<(i, j, d) -> (i, d)>,
                                      affine_map<(i, j, d) -> (j, d)>,
                                      affine_map<(i, j, d) -> (i, j)>]
      ins(%q, %k : !t, !t) outs(%zs : !s) -> !s
  %y = arith.addf %x, %dense : !s
  %z = arith.addf %y, %resource : !s
  %w = linalg.softmax dimension(1) ins(%z : !s) outs(%es : !s) -> !s
  %o = linalg.matmul ins(%w, %v : !s, !t) outs(%zo : !t) -> !t
  return %o : !t
}

{-#
  dialect_resources: {
    builtin: {
      bias: "0x040000000000803F000000400000404000008040000000000000803F000000000000000000000000000000000000803F00000000000000000000000000000000000080BF"
    }
  }
#-}
