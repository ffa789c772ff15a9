//===- RoleKernels.h - hand-written kernels of roles ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each takes five inputs, tiles of 64x64 below each other, and two results.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_ROLEKERNELS_H
#define ATTN_TEST_UNIT_INPUTS_ROLEKERNELS_H

/// Two roles that copy and two that compute. Each of the latter drains a ring
/// of each of the former: out0 = sum of x x^T over the tiles of a and b, out1
/// of c and d. Both drain the ring of e.
static const char *const fourRoles = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!two = !warp.ring<2, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!acc = !warp.frag<64x64xf32, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(16) {
    %A = warp.ring fills(@left) drains(@first) : !two
    %B = warp.ring fills(@right) drains(@first) : !ring
    %C = warp.ring fills(@right) drains(@second) : !ring
    %D = warp.ring fills(@left) drains(@second) : !ring
    %E = warp.ring fills(@right) drains(@first, @second) : !two
    warp.role @left copy warps(4) registers(24) {
      warp.copy_async %a[%c0, %c0] to %A[%c0] by tma : !view, !two
      warp.copy_async %a[%c64, %c0] to %A[%c1] by tma : !view, !two
      warp.copy_async %a[%c0, %c0] to %A[%c2] by tma : !view, !two
      warp.copy_async %d[%c0, %c0] to %D[%c0] by tma : !view, !ring
      warp.copy_async %d[%c64, %c0] to %D[%c1] by tma : !view, !ring
    }
    warp.role @right copy warps(4) registers(24) {
      warp.copy_async %c[%c0, %c0] to %C[%c0] by tma : !view, !ring
      warp.copy_async %c[%c64, %c0] to %C[%c1] by tma : !view, !ring
      warp.copy_async %b[%c0, %c0] to %B[%c0] by tma : !view, !ring
      warp.copy_async %b[%c64, %c0] to %B[%c1] by tma : !view, !ring
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %i, %c64 : index
        warp.copy_async %e[%row, %c0] to %E[%item] by tma : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @first compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %a0 = warp.await %A[%c0] : !two -> !tile
      %s1 = warp.mma wgmma %a0, %a0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %a0 : !tile
      %a1 = warp.await %A[%c1] : !two -> !tile
      %sa = warp.mma wgmma %a1, %a1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %a1 : !tile
      %a2 = warp.await %A[%c2] : !two -> !tile
      %s2 = warp.mma wgmma %a2, %a2, %sa transpose_b : !tile, !tile, !acc
      warp.release %a2 : !tile
      %b0 = warp.await %B[%c0] : !ring -> !tile
      %s3 = warp.mma wgmma %b0, %b0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %b0 : !tile
      %b1 = warp.await %B[%c1] : !ring -> !tile
      %s4 = warp.mma wgmma %b1, %b1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %b1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma wgmma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out0[%c0, %c0] : !acc, !out
    }
    warp.role @second compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %d0 = warp.await %D[%c0] : !ring -> !tile
      %s1 = warp.mma wgmma %d0, %d0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %d0 : !tile
      %d1 = warp.await %D[%c1] : !ring -> !tile
      %s2 = warp.mma wgmma %d1, %d1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %d1 : !tile
      %t0 = warp.await %C[%c0] : !ring -> !tile
      %s3 = warp.mma wgmma %t0, %t0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %t0 : !tile
      %t1 = warp.await %C[%c1] : !ring -> !tile
      %s4 = warp.mma wgmma %t1, %t1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %t1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma wgmma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out1[%c0, %c0] : !acc, !out
    }
  }
  return
}
)mlir";

/// Two groups that take turns to await.
static const char *const twoGroups = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 128x64xbf16, panels<128>>
!tile = !warp.slot<128x64xbf16, panels<128>>
!acc = !warp.frag<128x128xf32, acc, 8>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(12) {
    %A = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %a[%c0, %c0] to %A[%c0] by tma : !view, !ring
      warp.copy_async %a[%c0, %c0] to %A[%c1] by tma : !view, !ring
    }
    warp.role @softmax compute warps(8) registers(232) {
      %s0 = warp.splat %zero : !acc
      %a0 = warp.turn {
        %1 = warp.await %A[%c0] : !ring -> !tile
        warp.yield %1 : !tile
      } : !tile
      %s1 = warp.mma wgmma %a0, %a0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %a0 : !tile
      %a1 = warp.turn {
        %1 = warp.await %A[%c1] : !ring -> !tile
        warp.yield %1 : !tile
      } : !tile
      %s2 = warp.mma wgmma %a1, %a1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %a1 : !tile
    }
  }
  return
}
)mlir";

/// A role fills a ring for itself and for another: with s = a b^T of each pair
/// of tiles out0 = sum of s^T a, added up in memory, and out1 = sum of s b.
static const char *const passedOn = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!acc = !warp.frag<64x64xf32, acc, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(12) {
    %A = warp.ring fills(@load) drains(@scores) : !ring
    %B = warp.ring fills(@load) drains(@scores, @other) : !ring
    %S = warp.ring fills(@scores) drains(@scores, @other) : !ring
    warp.role @load copy warps(4) registers(24) {
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %i, %c64 : index
        warp.copy_async %a[%row, %c0] to %A[%item] by tma : !view, !ring
        warp.copy_async %b[%row, %c0] to %B[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @scores compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %ta = warp.await %A[%item] : !ring -> !tile
        %tb = warp.await %B[%item] : !ring -> !tile
        %s = warp.mma wgmma %ta, %tb, %z0 transpose_b : !tile, !tile, !acc
        warp.release %tb : !tile
        %h = warp.cast truncf %s : !acc to !half
        warp.store_frag %h to %S[%item] : !half, !ring
        %ts = warp.await %S[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %o = warp.mma wgmma %ts, %ta, %z0 transpose_a : !tile, !tile, !acc
        warp.release %ts : !tile
        warp.release %ta : !tile
        warp.store %o, %out0[%c0, %c0] accumulate : !acc, !out
        scf.yield %next : index
      }
    }
    warp.role @other compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %o = %z0) -> (index, !acc) {
        %tb = warp.await %B[%item] : !ring -> !tile
        %ts = warp.await %S[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %o1 = warp.mma wgmma %ts, %tb, %o : !tile, !tile, !acc
        warp.release %ts : !tile
        warp.release %tb : !tile
        scf.yield %next, %o1 : index, !acc
      }
      warp.store %r#1, %out1[%c0, %c0] : !acc, !out
    }
  }
  return
}
)mlir";

/// The same without roles, of a pair of tiles; PANELS, ATOM, ADD are filled in.
static const char *const storedInSlots = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16PANELS>
!acc = !warp.frag<64x64xf32, acc, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %A = warp.alloc : !tile
    %B = warp.alloc : !tile
    %S = warp.alloc : !tile
    %z0 = warp.splat %zero : !acc
    warp.copy %a[%c0, %c0] to %A : !view, !tile
    warp.copy %b[%c0, %c0] to %B : !view, !tile
    %s = warp.mma ATOM %A, %B, %z0 transpose_b : !tile, !tile, !acc
    %h = warp.cast truncf %s : !acc to !half
    warp.store_frag %h to %S : !half, !tile
    %o0 = warp.mma ATOM %S, %A, %z0 transpose_a : !tile, !tile, !acc
    %o1 = warp.mma ATOM %S, %B, %z0 : !tile, !tile, !acc
    warp.store %o0, %out0[%c0, %c0] ADD : !acc, !out
    warp.store %o1, %out1[%c0, %c0] : !acc, !out
  }
  return
}
)mlir";

#endif // ATTN_TEST_UNIT_INPUTS_ROLEKERNELS_H
