// What a host function allocates is a workspace of the artifact, with sizes that
// are known at launch; its kernels stand in the order in which they run.
// RUN: rm -rf %t && attn-compile %s --dump-to=%t -o %t.attn
// RUN: FileCheck %s < %t/9-manifest.json

// CHECK: "name": "lse"
// CHECK: "workspaces": [
// CHECK: "element": "i8"
// CHECK: "sizes": [
// CHECK-NEXT: 1,
// CHECK-NEXT: 1,
// CHECK-NEXT: [
// CHECK-NEXT: "ceildiv",
// CHECK-NEXT: [
// CHECK-NEXT: "dim",
// CHECK-NEXT: 0,
// CHECK-NEXT: 2
// CHECK: "zeroed": false
// CHECK: "element": "i32"
// CHECK: "element": "i32"
// CHECK: "kernels": [
// CHECK: "entry": "f_block_states"
// CHECK: "threads": 32
// CHECK: "shared_bytes": 0
// CHECK: "entry": "f_block_lists"
// CHECK: "threads": 32
// CHECK: "entry": "f_empty_blocks"
// CHECK: "threads": 32
// CHECK: "entry": "f"
// CHECK: "threads": 128

func.func @f(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %map: tensor<?x?xi1>)
    -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%map) {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %m: tensor<?x?xi1>) {
      %c = arith.constant 16 : i32
      %bi = arith.divsi %i, %c : i32
      %bj = arith.divsi %j, %c : i32
      %shown = attn.capture_load %m[%bi, %bj] : tensor<?x?xi1>
      attn.yield %shown : i1
    }
    : (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x?xi1>)
      -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}
