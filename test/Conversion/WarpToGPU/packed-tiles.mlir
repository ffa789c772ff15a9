// Register r of thread t lies at r T + t: stored, added, read. SM90 adds four
// floats at a time: there they lie side by side.
//
// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s
// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a | FileCheck %s --check-prefix=FOUR

!frag = !warp.frag<64x16xf32, acc, 8>
!sums = memref<?x?x1024xf32>

// CHECK-LABEL: gpu.func @packed(
// FOUR-LABEL: gpu.func @packed(
// FOUR: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// FOUR-NOT: llvm.store
// FOUR: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// FOUR-COUNT-1: "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};"
// FOUR-NOT: inline_asm
func.func @packed(%sums: !sums, %n: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @packed blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %zeros = warp.splat %zero : !frag
    // Four registers in each of 256 threads, 1024 bytes from one to the next.
    // CHECK: llvm.store %{{.*}}, %[[P:.*]] {alignment = 4 : i64} : f32, !llvm.ptr<1>
    // CHECK: llvm.getelementptr {{.*}}[1024]
    // CHECK: llvm.getelementptr {{.*}}[2048]
    // CHECK: llvm.getelementptr {{.*}}[3072]
    // CHECK-NOT: llvm.store {{.*}} vector
    warp.store %zeros, %sums[%z, %y, %c0] packed : !frag, !sums
    // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %sum = warp.load %sums[%z, %y, %c0] packed : !sums -> !frag
    // CHECK-COUNT-4: llvm.inline_asm has_side_effects {{.*}}"red.relaxed.gpu.global.add.f32 [$0], $1;"
    // CHECK-NOT: inline_asm
    warp.store %sum, %sums[%z, %y, %c0] accumulate packed : !frag, !sums
  }
  return
}
