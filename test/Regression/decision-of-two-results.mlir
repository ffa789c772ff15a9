// The second result of what leads to a decision, in the definition: it had no
// value there.
// RUN: attn-opt %s --convert-attn-to-linalg | FileCheck %s

!t = tensor<1x2x8x16xf16>
!l = tensor<1x2x8xf32>

// CHECK-LABEL: func.func @carry
// CHECK: %{{.*}}, %[[CARRY:.*]] = arith.addui_extended
// CHECK: arith.select %[[CARRY]]
func.func @carry(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %sum, %carry = arith.addui_extended %i, %j : i32, i1
      %y = arith.select %carry, %x, %x : f32
      %r = math.roundeven %y : f32
      attn.yield %r : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}
