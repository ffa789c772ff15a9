// Three layers of a model in linalg: the first and the last are alike.

!x = tensor<2x16x8xf32>
!w = tensor<2x8x8xf32>
!s = tensor<2x16x16xf32>

func.func @layers(%x: !x, %w: !w) -> !x {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %ex = tensor.empty() : !x
  %es = tensor.empty() : !s
  %fx = linalg.fill ins(%zero : f32) outs(%ex : !x) -> !x
  %fs = linalg.fill ins(%zero : f32) outs(%es : !s) -> !s

  %q0 = linalg.batch_matmul ins(%x, %w : !x, !w) outs(%fx : !x) -> !x
  %s0 = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>] ins(%q0, %x : !x, !x) outs(%fs : !s) -> !s
  %p0 = linalg.softmax dimension(2) ins(%s0 : !s) outs(%es : !s) -> !s
  %o0 = linalg.batch_matmul ins(%p0, %x : !s, !x) outs(%fx : !x) -> !x

  %q1 = linalg.batch_matmul ins(%o0, %w : !x, !w) outs(%fx : !x) -> !x
  %s1 = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>] ins(%q1, %o0 : !x, !x) outs(%fs : !s) -> !s
  %h1 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s1 : !s) outs(%es : !s) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %half : f32
    linalg.yield %m : f32
  } -> !s
  %p1 = linalg.softmax dimension(2) ins(%h1 : !s) outs(%es : !s) -> !s
  %o1 = linalg.batch_matmul ins(%p1, %o0 : !s, !x) outs(%fx : !x) -> !x

  %q2 = linalg.batch_matmul ins(%o1, %w : !x, !w) outs(%fx : !x) -> !x
  %s2 = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>] ins(%q2, %o1 : !x, !x) outs(%fs : !s) -> !s
  %p2 = linalg.softmax dimension(2) ins(%s2 : !s) outs(%es : !s) -> !s
  %o2 = linalg.batch_matmul ins(%p2, %o1 : !s, !x) outs(%fx : !x) -> !x
  return %o2 : !x
}
