// What the instructions of a kernel are: RUN lines below count them.
// RUN: attn-compile %s --emit=ptx | FileCheck %s
// RUN: attn-compile %s --emit=ptx | FileCheck %s --check-prefix=NONE
// RUN: attn-compile %s --emit=ptx | grep -c 'mma.sync.aligned.m16n8k16' | FileCheck %s --check-prefix=MMA
// RUN: attn-compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM

// CHECK: .target sm_80
// CHECK: .extern .shared .align 128 .b8 attn_shared_memory[]
// CHECK: .visible .entry full(
// CHECK: .maxntid 128
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-DAG: ex2.approx.ftz.f32
// CHECK-DAG: cvt.rn.bf16x2.f32
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16

// Nothing goes through local memory, nothing is called.
// NONE-NOT: st.local
// NONE-NOT: ld.local
// NONE-NOT: call

// 512 keys are whole blocks: one loop, 4 k-steps of 8 tiles for S, 4 of 8 for
// O, each for two row groups.
// MMA: 128

// LLVM: define ptx_kernel void @full(
// LLVM: @llvm.nvvm.mma.m16n8k16.row.col.bf16

func.func @full(%q: tensor<2x4x512x64xbf16>, %k: tensor<2x4x512x64xbf16>, %v: tensor<2x4x512x64xbf16>)
    -> (tensor<2x4x512x64xbf16>, tensor<2x4x512xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2>}
    : (tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>, tensor<2x4x512x64xbf16>)
      -> (tensor<2x4x512x64xbf16>, tensor<2x4x512xf32>)
  return %o, %lse : tensor<2x4x512x64xbf16>, tensor<2x4x512xf32>
}
