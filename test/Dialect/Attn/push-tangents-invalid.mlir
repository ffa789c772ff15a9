// RUN: attn-opt %s --attn-push-tangents --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'tensor.extract_slice' op has no known tangent: wanted operations that attn-push-tangents lists}}
  %s = tensor.extract_slice %x[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  return %s : tensor<2xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>
func.func @no_derivative(%x: tensor<4xf16>) -> tensor<4xf16> {
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%x : tensor<4xf16>) {
  ^bb0(%e: f16):
    // expected-error @+1 {{'arith.bitcast' op has no known derivative: wanted operations that attn-differentiate lists}}
    %b = arith.bitcast %e : f16 to bf16
    %w = arith.extf %b : bf16 to f32
    %y = arith.truncf %w : f32 to f16
    linalg.yield %y : f16
  } -> tensor<4xf16>
  return %r : tensor<4xf16>
}

// -----

// expected-error @+1 {{wants ranked tensors and scalars, got 'memref<4xf32>'}}
func.func @memory(%x: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<4xf32>)
  return
}

// -----

func.func @taken(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}
// expected-error @+1 {{'@taken_jvp' is there already, wanted the name for what is made of '@taken'}}
func.func @taken_jvp() {
  return
}
