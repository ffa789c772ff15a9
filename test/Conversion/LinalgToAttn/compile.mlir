// A graph on four dimensions goes through every room once it is raised.
// RUN: attn-opt %s --attn-raise --attn-sm80=target=sm_80 | FileCheck %s --check-prefix=GPU
// RUN: attn-opt %s --attn-raise --attn-cpu | FileCheck %s --check-prefix=CPU
// GPU: gpu.module @grouped_kernels
// GPU: llvm.func @grouped
// CPU: llvm.func @grouped

// Grouped heads by broadcast and collapse, a window, a bias per head; unknown
// lengths.
func.func @grouped(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x2x?x64xbf16>, %v: tensor<2x2x?x64xbf16>, %bias: tensor<8xf32>) -> tensor<2x8x?x64xbf16> {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %n = tensor.dim %q, %c2 : tensor<2x8x?x64xbf16>
  %t = tensor.dim %k, %c2 : tensor<2x2x?x64xbf16>
  %wide = tensor.empty(%t) : tensor<2x2x4x?x64xbf16>
  %k5 = linalg.broadcast ins(%k : tensor<2x2x?x64xbf16>) outs(%wide : tensor<2x2x4x?x64xbf16>) dimensions = [2]
  %v5 = linalg.broadcast ins(%v : tensor<2x2x?x64xbf16>) outs(%wide : tensor<2x2x4x?x64xbf16>) dimensions = [2]
  %k8 = tensor.collapse_shape %k5 [[0], [1, 2], [3], [4]] : tensor<2x2x4x?x64xbf16> into tensor<2x8x?x64xbf16>
  %v8 = tensor.collapse_shape %v5 [[0], [1, 2], [3], [4]] : tensor<2x2x4x?x64xbf16> into tensor<2x8x?x64xbf16>
  %es = tensor.empty(%n, %t) : tensor<2x8x?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k8 : tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>) outs(%s0 : tensor<2x8x?x?xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x?x?xf32>
  %x = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (h)>,
                       affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %bias : tensor<2x8x?x?xf32>, tensor<8xf32>) outs(%es : tensor<2x8x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %z = arith.constant 0 : index
    %w = arith.constant 100 : index
    %inf = arith.constant 0xFF800000 : f32
    %m = arith.mulf %a, %scale : f32
    %y = arith.addf %m, %b : f32
    %d = arith.subi %i, %j : index
    %below = arith.cmpi sge, %d, %z : index
    %near = arith.cmpi slt, %d, %w : index
    %keep = arith.andi %below, %near : i1
    %r = arith.select %keep, %y, %inf : f32
    linalg.yield %r : f32
  } -> tensor<2x8x?x?xf32>
  %p = linalg.softmax dimension(3) ins(%x : tensor<2x8x?x?xf32>) outs(%es : tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  %p16 = arith.truncf %p : tensor<2x8x?x?xf32> to tensor<2x8x?x?xbf16>
  %eo = tensor.empty(%n) : tensor<2x8x?x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  %o = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, e, j) -> (b, h, i, j)>, affine_map<(b, h, i, e, j) -> (b, h, j, e)>,
                       affine_map<(b, h, i, e, j) -> (b, h, i, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p16, %v8 : tensor<2x8x?x?xbf16>, tensor<2x8x?x64xbf16>) outs(%o0 : tensor<2x8x?x64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %y = arith.extf %a : bf16 to f32
    %z = arith.extf %b : bf16 to f32
    %m = arith.mulf %y, %z : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x8x?x64xf32>
  %o16 = arith.truncf %o : tensor<2x8x?x64xf32> to tensor<2x8x?x64xbf16>
  return %o16 : tensor<2x8x?x64xbf16>
}
