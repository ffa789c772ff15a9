// The launch rule of an artifact.
// RUN: rm -rf %t && attn-compile %s --dump-to=%t -o %t.attn
// RUN: FileCheck %s < %t/9-manifest.json
// RUN: ls %t | FileCheck %s --check-prefix=ROOMS

// CHECK: "name": "f"
// CHECK: "target": "sm_80"
// CHECK: "alignment": 16
// CHECK: "alignment": 16
// CHECK: "alignment": 16
// CHECK: "name": "o"
// CHECK: "output": true
// CHECK: "alignment": 16
// CHECK: "name": "lse"
// CHECK: "alignment": 0
// CHECK: "rule": "0"
// CHECK: "variants"
// CHECK: "plan": "#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>"
// CHECK: "workspaces": []
// CHECK: "kernels"
// CHECK: "entry": "f"
// CHECK: "threads": 128
// CHECK: "shared_bytes": 40960
// CHECK: "grid"
// CHECK: "ceildiv"
// CHECK-NEXT: [
// CHECK-NEXT: "dim"
// CHECK-NEXT: 0
// CHECK-NEXT: 2
// CHECK: 64
// CHECK: 8
// CHECK: "dim"
// CHECK-NEXT: 0
// CHECK-NEXT: 0
// CHECK: "checks"

// ROOMS: 1-attn.mlir
// ROOMS: 2-tile.mlir
// ROOMS: 3-warp.mlir
// ROOMS: 4-gpu.mlir
// ROOMS: 5-nvvm.mlir
// ROOMS: 6-llvm.ll
// ROOMS: 7-kernel.ptx

func.func @f(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>)
    -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>}
    : (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
      -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}
