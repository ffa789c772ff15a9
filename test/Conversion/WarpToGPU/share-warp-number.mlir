// RUN: attn-opt %s --gpu-share-warp-number --cse | FileCheck %s

gpu.module @kernels {
  // Two places that ask, one of them in a branch: one answer, at the start.
  // CHECK-LABEL: gpu.func @twice
  // CHECK: %[[THREAD:.*]] = gpu.thread_id x
  // CHECK: %[[NUMBER:.*]] = arith.index_cast %[[THREAD]]
  // CHECK: %[[WARP:.*]] = arith.divui %[[NUMBER]], %c32_i32
  // CHECK: %[[SHARED:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[WARP]], %c0_i32, %c31_i32 : i32 -> i32
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: memref.store %[[SHARED]], %{{.*}}[%c0]
  // CHECK: scf.if
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: memref.store %[[SHARED]], %{{.*}}[%c1]
  gpu.func @twice(%out: memref<2xi32>, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %all = arith.constant -1 : i32
    %lane0 = arith.constant 0 : i32
    %last = arith.constant 31 : i32
    %size = arith.constant 32 : i32
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    %warp = arith.divui %number, %size : i32
    %a = nvvm.shfl.sync idx %all, %warp, %lane0, %last : i32 -> i32
    memref.store %a, %out[%c0] : memref<2xi32>
    scf.if %some {
      %again = gpu.thread_id x
      %its = arith.index_cast %again : index to i32
      %same = arith.divui %its, %size : i32
      %b = nvvm.shfl.sync idx %all, %same, %lane0, %last : i32 -> i32
      memref.store %b, %out[%c1] : memref<2xi32>
    }
    gpu.return
  }

  // Where one place asks, the shuffle stays there.
  // CHECK-LABEL: gpu.func @once
  // CHECK: scf.if
  // CHECK: nvvm.shfl.sync
  gpu.func @once(%out: memref<2xi32>, %some: i1) kernel {
    scf.if %some {
      %c0 = arith.constant 0 : index
      %all = arith.constant -1 : i32
      %lane0 = arith.constant 0 : i32
      %last = arith.constant 31 : i32
      %size = arith.constant 32 : i32
      %thread = gpu.thread_id x
      %number = arith.index_cast %thread : index to i32
      %warp = arith.divui %number, %size : i32
      %a = nvvm.shfl.sync idx %all, %warp, %lane0, %last : i32 -> i32
      memref.store %a, %out[%c0] : memref<2xi32>
    }
    gpu.return
  }

  // Other quotients, and shuffles from other lanes, are other numbers.
  // CHECK-LABEL: gpu.func @others
  // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
  // CHECK: %[[WARP:.*]] = arith.divui %[[NUMBER:.*]], %c32_i32
  // CHECK: %[[HALF:.*]] = arith.divui %[[NUMBER]], %[[C16]]
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[HALF]]
  // CHECK: %[[OTHER:.*]] = arith.divui %{{.*}}, %c32_i32
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[OTHER]]
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[WARP]], %c1_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %[[WARP]], %c0_i32
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[WARP]], %c0_i32
  gpu.func @others(%out: memref<5xi32>, %drawn: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %all = arith.constant -1 : i32
    %lane0 = arith.constant 0 : i32
    %lane1 = arith.constant 1 : i32
    %last = arith.constant 31 : i32
    %size = arith.constant 32 : i32
    %halfSize = arith.constant 16 : i32
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    %warp = arith.divui %number, %size : i32
    %half = arith.divui %number, %halfSize : i32
    %a = nvvm.shfl.sync idx %all, %half, %lane0, %last : i32 -> i32
    memref.store %a, %out[%c0] : memref<5xi32>
    %other = arith.divui %drawn, %size : i32
    %b = nvvm.shfl.sync idx %all, %other, %lane0, %last : i32 -> i32
    memref.store %b, %out[%c1] : memref<5xi32>
    %c = nvvm.shfl.sync idx %all, %warp, %lane1, %last : i32 -> i32
    memref.store %c, %out[%c2] : memref<5xi32>
    %d = nvvm.shfl.sync bfly %all, %warp, %lane0, %last : i32 -> i32
    memref.store %d, %out[%c3] : memref<5xi32>
    %e = nvvm.shfl.sync idx %all, %warp, %lane0, %last : i32 -> i32
    memref.store %e, %out[%c4] : memref<5xi32>
    gpu.return
  }
}
