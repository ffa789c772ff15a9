// RUN: attn-opt %s --attn-print-plans=target=sm_80 | FileCheck %s
// RUN: attn-opt %s --attn-print-plans=target=cpu | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: // plans for tensor<2x16x?x64xbf16>, head dims 64 and 64
// CHECK-NEXT: // #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4> shared 16384 B, about 102 registers, 4 blocks per SM, {{[0-9.]+}} clocks per score
// CHECK: // #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2> shared 49152 B, about 188 registers, 2 blocks per SM
// CHECK: // #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2, q_in_registers = true> shared 49152 B, about 220 registers, 2 blocks per SM, {{[0-9.]+}} clocks per score (pick)
// CHECK: // #attn.plan<target = sm_80, block_q = 128, block_k = 128, warps = 4, stages = 2> shared 81920 B, about 252 registers, 2 blocks per SM

// CPU-LABEL: // plans for tensor<2x16x?x64xbf16>, head dims 64 and 64
// CPU-NEXT: // #attn.plan<target = cpu, block_q = 8, block_k = 16>
// CPU: // #attn.plan<target = cpu, block_q = 16, block_k = 32> {{[0-9.]+}} clocks per score (pick)
func.func @d64(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x16x?x64xbf16>)
    -> tensor<2x16x?x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>)
      -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x64xbf16>
}

// Nothing that does not fit: 64x128 with two stages would need 294912 B of
// shared memory.
// CHECK-LABEL: // plans for tensor<1x1x?x256xf16>, head dims 256 and 256
// CHECK-NOT: block_k = 128, warps = 4, stages = 2
// CHECK: block_q = 64, block_k = 64, warps = 4> shared 98304 B, {{.*}} (pick)
// CHECK-NOT: block_k = 128, warps = 4, stages = 2
func.func @d256(%q: tensor<1x1x?x256xf16>, %k: tensor<1x1x?x256xf16>)
    -> tensor<1x1x?x256xf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>)
      -> (tensor<1x1x?x256xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x256xf16>
}
