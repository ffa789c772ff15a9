// RUN: attn-opt %s --attn-plan=target=sm_80 | FileCheck %s
// RUN: attn-opt %s --attn-plan=target=cpu | FileCheck %s --check-prefix=CPU
// RUN: attn-opt %s --attn-plan='target=sm_80 plan="#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>"' | FileCheck %s --check-prefix=GIVEN

!q40 = tensor<2x8x?x40xbf16>
!q64 = tensor<2x8x?x64xbf16>
!q128 = tensor<2x8x?x128xf16>
!q192 = tensor<2x8x?x192xf16>
!f128 = tensor<2x8x?x128xf32>
!lse = tensor<2x8x?xf32>

// Head dimensions are padded to 16; the larger one counts.
// CHECK-LABEL: func.func @d40
// CHECK: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2, q_in_registers = true>
// CPU-LABEL: func.func @d40
// CPU: plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>
// GIVEN-LABEL: func.func @d40
// GIVEN: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @d40(%q: !q40, %k: !q40) -> !q40 {
  %o, %lse = attn.attention %q, %k, %k : (!q40, !q40, !q40) -> (!q40, !lse)
  return %o : !q40
}

// CHECK-LABEL: func.func @d64_masked
// CHECK: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2, q_in_registers = true>
func.func @d64_masked(%q: !q64, %k: !q64) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (!q64, !q64, !q64) -> (!q64, !lse)
  return %o : !q64
}

// CHECK-LABEL: func.func @d128
// CHECK: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 48, warps = 4, stages = 2>
func.func @d128(%q: !q128, %k: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k : (!q128, !q128, !q128) -> (!q128, !lse)
  return %o : !q128
}

// CHECK-LABEL: func.func @d192_and_128
// CHECK: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>
func.func @d192_and_128(%q: !q192, %k: !q192, %v: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %v : (!q192, !q192, !q128) -> (!q128, !lse)
  return %o : !q128
}

// CHECK-LABEL: func.func @f32
// CHECK: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 16, warps = 4>
func.func @f32(%q: !f128, %k: !f128) -> !f128 {
  %o, %lse = attn.attention %q, %k, %k : (!f128, !f128, !f128) -> (!f128, !lse)
  return %o : !f128
}
