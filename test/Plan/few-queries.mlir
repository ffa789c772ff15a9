// Of few queries plans with parts of the keys are tried, and with rows of as many
// heads in a tile as share a key head; of many queries none.
// RUN: attn-opt %s --attn-print-plans=target=sm_90a | FileCheck %s
// RUN: attn-opt %s --attn-print-plans=target=sm_80 | FileCheck %s
// RUN: sed s/x4x/x17x/g %s | attn-opt --attn-print-plans=target=sm_90a | FileCheck %s --check-prefix=MANY

// CHECK: warps = 4, stages = 2, packed_heads = 2>
// CHECK: warps = 4, stages = 2, packed_heads = 4>
// CHECK-NOT: packed_heads = 8
// CHECK: warps = 4, stages = 2, split_keys = 32>
// CHECK: warps = 4, stages = 2, split_keys = 32, packed_heads = 4>
// CHECK-NOT: packed_heads = 8
// MANY: #attn.plan<
// MANY-NOT: split_keys
// MANY-NOT: packed_heads

!q = tensor<1x8x4x64xbf16>
!k = tensor<1x2x1000x64xbf16>

func.func @few(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %v : (!q, !k, !k) -> (!q, tensor<1x8x4xf32>)
  return %o : !q
}
