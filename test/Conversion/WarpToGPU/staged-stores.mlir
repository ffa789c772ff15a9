// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!out = memref<?x32xbf16, strided<[?, 1], offset: ?>>
!wide = memref<?x128xbf16, strided<[?, 1], offset: ?>>

// Pairs to the slot, 16 bytes back: 4 pieces of a row by as many lanes, so 8 rows
// of the warp at a time.
// CHECK-LABEL: gpu.func @chunks
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<3>
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK-NEXT: %[[W:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NEXT: llvm.store %[[W]], %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64}
// CHECK-NOT: llvm.store
func.func @chunks(%x: bf16, %m: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @chunks blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(4096) {
    %s = warp.alloc at 0 : !warp.slot<64x32xbf16>
    %f = warp.splat %x : !warp.frag<64x32xbf16, acc, 4>
    warp.store %f, %m[%i, %c0] via %s : !warp.frag<64x32xbf16, acc, 4>, !out, !warp.slot<64x32xbf16>
  }
  return
}

// In a role, in two parts of a panel each: what TMA still reads is waited for;
// matrices to the slot; one thread of the group stores its 64 rows.
// CHECK-LABEL: gpu.func @tensor
// CHECK: llvm.inline_asm {{.*}}"cp.async.bulk.wait_group.read 0;"
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: nvvm.barrier id
// CHECK-COUNT-1: "{ .reg .pred first; setp.eq.u32 first, $2, 0; @first cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [$1, {$3, $4, $5, $6}], [$0]; }"
// CHECK: "cp.async.bulk.commit_group;"
// CHECK: "cp.async.bulk.wait_group.read 0;"
// CHECK: nvvm.barrier id
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: nvvm.barrier id
// CHECK-COUNT-1: cp.async.bulk.tensor.4d.global
// CHECK: "cp.async.bulk.commit_group;"
// CHECK: "cp.async.bulk.wait_group.read 0;"
func.func @tensor(%x: bf16, %q: !wide, %m: !wide) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @tensor blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(12) shared(49184) {
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 128x128xbf16, panels<128>>
    %s = warp.alloc at 32768 : !warp.slot<128x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%i, %c0] to %Q[%c0] by tma : !wide, !warp.ring<1, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %t = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      warp.release %t : !warp.slot<128x128xbf16, panels<128>>
      %f = warp.splat %x : !warp.frag<128x128xbf16, acc, 8>
      warp.store %f, %m[%i, %c0] via %s by tma : !warp.frag<128x128xbf16, acc, 8>, !wide, !warp.slot<128x64xbf16, panels<128>>
    }
  }
  return
}

// A tile that is added to a workspace: pairs of f32 to the slot, which TMA adds
// panel by panel.
// CHECK-LABEL: gpu.func @added
// CHECK: llvm.inline_asm {{.*}}"cp.async.bulk.wait_group.read 0;"
// CHECK-COUNT-16: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: nvvm.barrier id
// CHECK-COUNT-2: cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [$1, {$3, $4, $5, $6}], [$0]; }"
// CHECK: "cp.async.bulk.commit_group;"
// CHECK-NOT: red.relaxed
// CHECK: gpu.launch_func
// CHECK-SAME: #warp.tensor_map<argument = 2, rows = 64, columns = 32, swizzle = 128, panels = 1>
func.func @added(%x: f32, %q: !wide) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = memref.alloc(%c1) {warp.zeroed} : memref<?x64xf32>
  warp.kernel @added blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(8) shared(49168) {
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 128x128xbf16, panels<128>>
    %s = warp.alloc at 32768 : !warp.slot<64x64xf32, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%i, %c0] to %Q[%c0] by tma : !wide, !warp.ring<1, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %t = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      warp.release %t : !warp.slot<128x128xbf16, panels<128>>
      %f = warp.splat %x : !warp.frag<64x64xf32, acc, 4>
      warp.store %f, %sum[%i, %c0] accumulate via %s by tma : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>, !warp.slot<64x64xf32, panels<128>>
    }
  }
  return
}

// Two tiles, tile after tile: the first slot is written again when the two parts
// of the other tile may still be read, the second one when the first tile may.
// Parts of one tile share a slot.
// CHECK-LABEL: gpu.func @two
// CHECK: scf.for
// CHECK: "cp.async.bulk.wait_group.read 2;"
// CHECK: "cp.async.bulk.commit_group;"
// CHECK: "cp.async.bulk.wait_group.read 1;"
// CHECK: "cp.async.bulk.commit_group;"
// CHECK: "cp.async.bulk.wait_group.read 0;"
// CHECK: "cp.async.bulk.commit_group;"
// CHECK: "cp.async.bulk.wait_group.read 0;"
func.func @two(%x: bf16, %q: !wide, %m: !wide, %n: !wide) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @two blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(12) shared(81952) {
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 128x128xbf16, panels<128>>
    %s = warp.alloc at 32768 : !warp.slot<128x128xbf16, panels<128>>
    %t = warp.alloc at 65536 : !warp.slot<128x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%i, %c0] to %Q[%c0] by tma : !wide, !warp.ring<1, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %qs = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      warp.release %qs : !warp.slot<128x128xbf16, panels<128>>
      %f = warp.splat %x : !warp.frag<128x128xbf16, acc, 8>
      scf.for %b = %c0 to %c2 step %c1 {
        warp.store %f, %m[%b, %c0] via %s by tma : !warp.frag<128x128xbf16, acc, 8>, !wide, !warp.slot<128x128xbf16, panels<128>>
        warp.store %f, %n[%b, %c0] via %t by tma : !warp.frag<128x128xbf16, acc, 8>, !wide, !warp.slot<128x64xbf16, panels<128>>
      }
    }
  }
  return
}

// In a branch one may be left out.
// CHECK-LABEL: gpu.func @maybe
// CHECK-COUNT-3: "cp.async.bulk.wait_group.read 0;"
func.func @maybe(%x: bf16, %q: !wide, %m: !wide, %n: !wide, %also: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @maybe blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(12) shared(98336) {
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 128x128xbf16, panels<128>>
    %s = warp.alloc at 32768 : !warp.slot<128x128xbf16, panels<128>>
    %t = warp.alloc at 65536 : !warp.slot<128x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %q[%i, %c0] to %Q[%c0] by tma : !wide, !warp.ring<1, 128x128xbf16, panels<128>>
    }
    warp.role @softmax compute warps(8) {
      %qs = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !warp.slot<128x128xbf16, panels<128>>
      warp.release %qs : !warp.slot<128x128xbf16, panels<128>>
      %f = warp.splat %x : !warp.frag<128x128xbf16, acc, 8>
      warp.store %f, %m[%i, %c0] via %s by tma : !warp.frag<128x128xbf16, acc, 8>, !wide, !warp.slot<128x128xbf16, panels<128>>
      scf.if %also {
        warp.store %f, %n[%i, %c0] via %t by tma : !warp.frag<128x128xbf16, acc, 8>, !wide, !warp.slot<128x128xbf16, panels<128>>
      }
    }
  }
  return
}
