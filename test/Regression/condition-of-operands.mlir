// RUN: attn-opt --canonicalize %s | FileCheck %s
// Conditions of operand fragments.
func.func @f(%f: !warp.frag<64x64xf16, a, 4>) -> !warp.frag<64x64xi1, a, 4> {
  // CHECK: math.isfinite %{{.*}} : !warp.frag<64x64xf16, a, 4>
  %c = math.isfinite %f : !warp.frag<64x64xf16, a, 4>
  return %c : !warp.frag<64x64xi1, a, 4>
}
