// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!whole = memref<?x128xbf16, strided<[?, 1]>>
!part = memref<?x?x?x80xbf16, strided<[?, ?, ?, 1]>>
!tile = !warp.slot<64x128xbf16, panels<128>>
!ring = !warp.ring<1, 64x128xbf16, panels<128>>

// Rows that are whole panels: one box for both panels of the tile, at column,
// row, panel, and 0 for the dimensions that the tensor has not.
// CHECK-LABEL: gpu.func @whole
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
// CHECK: } else {
// CHECK: %[[ROW:.*]] = arith.index_cast %block_id_x : index to i32
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], [$2]; }", "r,l,r,r,r,r,r,r,~{memory}" %{{.*}}, %[[MAP]], %{{.*}}, %c0_i32, %[[ROW]], %c0_i32, %c0_i32, %c0_i32
// CHECK-NOT: cp.async.bulk.tensor
// CHECK: gpu.return
func.func @whole(%n: index, %v: !whole) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @whole blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) shared(16400) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %c0] to %r[%c0] by tma : !whole, !ring
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !ring -> !tile
      warp.release %s : !tile
    }
  }
  return
}

// Rows of 80 columns: the second panel goes beyond them, and has a box and a
// copy of its own, 64 columns further and 8192 bytes after.
// CHECK-LABEL: gpu.func @part
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
// CHECK: } else {
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2]; }", "r,l,r,r,r,r,r,~{memory}" %[[FIRST:.*]], %[[MAP]], %[[FULL:.*]], %c0_i32, %[[ROW:.*]], %[[HEAD:.*]], %[[BATCH:.*]] :
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c8192_i32
// CHECK: cp.async.bulk.tensor.4d{{.*}} %[[SECOND]], %[[MAP]], %[[FULL]], %c64_i32, %[[ROW]], %[[HEAD]], %[[BATCH]] :
// CHECK-NOT: cp.async.bulk.tensor
// CHECK: gpu.return
func.func @part(%n: index, %v: !part) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @part blocks(%x, %h, %b) in (%n, %n, %n) warps(8) shared(16400) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%b, %h, %x, %c0] to %r[%c0] by tma : !part, !ring
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !ring -> !tile
      warp.release %s : !tile
    }
  }
  return
}

// A row is a box of its own, of any rank, not swizzled; of a workspace, too. Two
// boxes of 32 rows make up a tile of 64: the second lies 32 x 128 bytes after.
// CHECK-LABEL: gpu.func @rows
// CHECK: } else {
// CHECK: mbarrier.arrive.expect_tx{{.*}} %c256_i32
// CHECK: cp.async.bulk.tensor.4d{{.*}} %c0_i32, %c0_i32, %c0_i32, %c0_i32
// CHECK: mbarrier.arrive.expect_tx{{.*}} %c8192_i32
// CHECK: cp.async.bulk.tensor.4d{{.*}} %[[BASE:.*]], %{{.*}}, %{{.*}}, %c0_i32, %c0_i32, %c0_i32, %c0_i32 :
// CHECK: cp.async.bulk.tensor.4d{{.*}} %c0_i32, %c1_i32, %c0_i32, %c0_i32 :
// CHECK-LABEL: func.func @rows
// CHECK: gpu.launch_func
// CHECK-SAME: #warp.tensor_map<argument = 2, rows = 1, columns = 64, swizzle = 0, panels = 1>
// CHECK-SAME: #warp.tensor_map<argument = 1, rows = 32, columns = 64, swizzle = 128, panels = 1>
func.func @rows(%n: index, %v: memref<?x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = memref.alloc(%n) : memref<?xf32>
  warp.kernel @rows blocks(%x, %h, %b) in (%c1, %c1, %c1) warps(8) shared(8480) {
    %r = warp.ring fills(@load) drains(@softmax) at 8192 : !warp.ring<1, 1x64xf32>
    %t = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %w[%c0] to %r[%c0] by tma : memref<?xf32>, !warp.ring<1, 1x64xf32>
      warp.copy_async %v[%c0, %c0], [%c1, %c0] to %t[%c0] by tma : memref<?x64xbf16>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<1, 1x64xf32> -> !warp.slot<1x64xf32>
      warp.release %s : !warp.slot<1x64xf32>
      %u = warp.await %t[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %u : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}
