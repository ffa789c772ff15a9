// RUN: attn-opt %s --gpu-hide-inductions | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @number
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
  // CHECK-NEXT: %[[WIDE:.*]] = arith.index_cast %[[I]] : index to i64
  // CHECK-NEXT: %[[MOVED:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.b64 $0, $1;", "=l,l" %[[WIDE]]
  // CHECK-NEXT: %[[HIDDEN:.*]] = arith.index_cast %[[MOVED]] : i64 to index
  // CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%[[HIDDEN]]]
  gpu.func @number(%out: memref<?xf32>, %value: f32, %lo: index, %hi: index) kernel {
    %c1 = arith.constant 1 : index
    scf.for %i = %lo to %hi step %c1 {
      memref.store %value, %out[%i] : memref<?xf32>
    }
    gpu.return
  }

  // Nobody asks for this number.
  // CHECK-LABEL: gpu.func @unused
  // CHECK-NOT: llvm.inline_asm
  gpu.func @unused(%out: memref<?xf32>, %value: f32, %lo: index, %hi: index) kernel {
    %c1 = arith.constant 1 : index
    scf.for %i = %lo to %hi step %c1 {
      memref.store %value, %out[%lo] : memref<?xf32>
    }
    gpu.return
  }

  // Loops over words count elements, not blocks: they stay.
  // CHECK-LABEL: gpu.func @word
  // CHECK-NOT: llvm.inline_asm
  gpu.func @word(%out: memref<?xi32>, %lo: i32, %hi: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i32
    scf.for %i = %lo to %hi step %c1 : i32 {
      memref.store %i, %out[%c0] : memref<?xi32>
    }
    gpu.return
  }
}
