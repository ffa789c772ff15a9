// Plans that were measured, by the name of the GPU: those that come with the
// compiler (share/attn/plans.json) and those of a file.
// RUN: attn-opt %s --split-input-file --attn-expand-variants '--attn-plan=target=sm_90a gpu="NVIDIA H200"' --remarks-filter=attn-plan 2>%t | FileCheck %s --check-prefixes=CHECK,H200
// RUN: FileCheck %s --check-prefix=SAID < %t
// RUN: attn-opt %s --split-input-file --attn-expand-variants --attn-plan=target=sm_90a | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: attn-opt %s --split-input-file --attn-expand-variants '--attn-plan=target=sm_90a gpu="NVIDIA H2O0"' 2>&1 | FileCheck %s --check-prefixes=CHECK,NONE,OTHER
// OTHER: warning: '{{.*}}share/attn/plans.json' has no plans for 'NVIDIA H2O0', but for 'NVIDIA H200'

// A file of results: of this GPU only, where one is named.
// RUN: sed 's/NVIDIA H200/Another/; s/block_q = 192, block_k = 128, warps = 12,/block_q = 64, block_k = 32, warps = 4,/' %attn_src_root/share/attn/plans.json > %t.json
// RUN: attn-opt %s --split-input-file --attn-expand-variants '--attn-plan=target=sm_90a gpu=Another results=%t.json' 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: attn-opt %s --split-input-file --attn-expand-variants '--attn-plan=target=sm_90a gpu="NVIDIA H200" results=%t.json' 2>&1 | FileCheck %s --check-prefixes=CHECK,NONE,EMPTY
// EMPTY: warning: '{{.*}}.json' has no plans for 'NVIDIA H200', but for 'Another'

// RUN: not attn-opt %s --split-input-file '--attn-plan=target=cpu gpu="NVIDIA H200"' 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: got gpu 'NVIDIA H200', the target is cpu

!q = tensor<4x32x4096x64xbf16>
!lse = tensor<4x32x4096xf32>

// As it was measured.
// CHECK-LABEL: func.func @as_measured
// H200: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 128, warps = 12, stages = 3>
// NONE: plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 4, with = ["warp-turn-ends"]>
// FILE-LABEL: func.func @as_measured
// FILE: plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, stages = 3>
// SAID: [Passed] AttnPlan {{.*}}Remark="plan of '{{.*}}share/attn/plans.json', the fastest on NVIDIA H200
// SAID: remark: plan of '{{.*}}share/attn/plans.json', the fastest on NVIDIA H200 of q 4x32x4096x64 bf16
func.func @as_measured(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

!q = tensor<4x32x2048x64xbf16>
!lse = tensor<4x32x2048xf32>

// With another number of queries nothing is known.
// CHECK-LABEL: func.func @shorter
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 4, with = ["warp-turn-ends"]>
// SAID: [Missed] AttnPlan {{.*}}Remark="'{{.*}}share/attn/plans.json' has no plan for sm_90a bf16 64/64 on 'NVIDIA H200'"
func.func @shorter(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

!q = tensor<4x32x?x64xbf16>
!lse = tensor<4x32x?xf32>

// Nor where nobody knows how many there will be.
// CHECK-LABEL: func.func @any_length
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 128, warps = 12>
func.func @any_length(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

!q = tensor<4x32x4096x64xbf16>
!lse = tensor<4x32x4096xf32>
!ids = tensor<4x4096xi32>

// Masks of captured data were not measured: no mask by index stands for them.
// CHECK-LABEL: func.func @documents
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>
// SAID: has no plan for sm_90a bf16 64/64 masked captured on
func.func @documents(%q: !q, %ids: !ids) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: !ids) {
      %x = attn.capture_load %d[%b, %i] : !ids
      %y = attn.capture_load %d[%b, %j] : !ids
      %m = arith.cmpi eq, %x, %y : i32
      attn.yield %m : i1
    } : (!q, !q, !q, !ids) -> (!q, !lse)
  return %o : !q
}
