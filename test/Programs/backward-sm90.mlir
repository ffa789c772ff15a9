// RUN: attn-compile %s --target=sm_90a --emit=ptx | FileCheck %s
// RUN: sed s/bf16/f16/g %s | attn-compile - --target=sm_90a --emit=ptx | FileCheck %s

// The gradients of attention in five products, a block of keys at a time, of
// queries in a loop: S^T = K Q^T, dP^T = V dO^T, dV += P^T dO, dK += dS^T Q and
// dQ += dS K, of which the blocks add up the last in a workspace. lse and delta,
// the sums over the rows of dO o O, come as rows of 64 beside the tiles.
// dS goes through a ring that one role fills and another drains, which adds dQ
// up by TMA.
// test/Unit/ProgramsTest.cpp runs it in the simulator,
// test/Integration/GPU/programs.py on a GPU.
// CHECK-LABEL: .entry gradients
// CHECK: wgmma.mma_async
// CHECK: stmatrix
// CHECK: cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group
// CHECK-LABEL: .entry finish
!tensor = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!sums = memref<?x?xf32, strided<[?, 1]>>
!workspace = memref<?x?x64xf32>
!one = !warp.ring<1, 64x64xbf16, panels<128>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!slot = !warp.slot<64x64xbf16, panels<128>>
!wideRing = !warp.ring<1, 64x64xf32, panels<128>>
!wideSlot = !warp.slot<64x64xf32, panels<128>>
!rowRing = !warp.ring<2, 1x64xf32>
!rowSlot = !warp.slot<1x64xf32>
!a = !warp.frag<64x64xbf16, a, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
!acc = !warp.frag<64x64xf32, acc, 4>
!bits = !warp.frag<64x64xi1, acc, 4>
!keys = !warp.frag<64x1xi32, acc, 4>
!columns = !warp.frag<1x64xf32, acc, 4>
func.func @backward(%q: !tensor loc("q"), %k: !tensor loc("k"), %v: !tensor loc("v"),
                    %do: !tensor loc("do"), %lse: !sums loc("lse"), %delta: !sums loc("delta"),
                    %dq: !tensor loc("dq"), %dk: !tensor loc("dk"), %dv: !tensor loc("dv")) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %factor = arith.constant 0.180336878 : f32  // log2(e) / sqrt(64)
  %minusLog2e = arith.constant -1.44269504 : f32
  %eighth = arith.constant 0.125 : f32  // 1 / sqrt(64)
  %heads = memref.dim %q, %c0 : !tensor
  %queries = memref.dim %q, %c1 : !tensor
  %keys = memref.dim %k, %c1 : !tensor
  %queryBlocks = arith.ceildivsi %queries, %c64 : index
  %keyBlocks = arith.ceildivsi %keys, %c64 : index
  %padded = arith.muli %queryBlocks, %c64 : index
  %keys32 = arith.index_cast %keys : index to i32
  %sum = memref.alloc(%heads, %padded) {warp.zeroed} : !workspace
  warp.kernel @gradients blocks(%x, %y, %z) in (%keyBlocks, %c1, %heads) warps(12) {
    %K = warp.ring fills(@load) drains(@scores, @queries) : !one
    %V = warp.ring fills(@load) drains(@scores) : !one
    %Q = warp.ring fills(@load) drains(@scores) : !ring
    %O = warp.ring fills(@load) drains(@scores) : !ring
    %L = warp.ring fills(@load) drains(@scores) : !rowRing
    %D = warp.ring fills(@load) drains(@scores) : !rowRing
    %S = warp.ring fills(@scores) drains(@queries) : !ring
    %stage = warp.alloc : !wideSlot
    %key = arith.muli %x, %c64 : index
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %k[%z, %key, %c0] to %K[%c0] by tma : !tensor, !one
      warp.copy_async %v[%z, %key, %c0] to %V[%c0] by tma : !tensor, !one
      %items = scf.for %n = %c0 to %queryBlocks step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %n, %c64 : index
        warp.copy_async %q[%z, %row, %c0] to %Q[%item] by tma : !tensor, !ring
        warp.copy_async %lse[%z, %row] to %L[%item] by tma : !sums, !rowRing
        warp.copy_async %do[%z, %row, %c0] to %O[%item] by tma : !tensor, !ring
        warp.copy_async %delta[%z, %row] to %D[%item] by tma : !sums, !rowRing
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @scores compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %scale = warp.splat %factor : !acc
      %toLog2 = warp.splat %minusLog2e : !columns
      %limit = warp.splat %keys32 : !keys
      %key32 = arith.index_cast %key : index to i32
      %rows = warp.coords %key32, 0 : !keys
      %isKey = arith.cmpi slt, %rows, %limit : !keys
      %isInside = warp.broadcast %isKey : !warp.frag<64x1xi1, acc, 4> -> !bits
      %kt = warp.await %K[%c0] : !one -> !slot
      %vt = warp.await %V[%c0] : !one -> !slot
      %r:3 = scf.for %n = %c0 to %queryBlocks step %c1 iter_args(%dk0 = %z0, %dv0 = %z0, %item = %c0) -> (!acc, !acc, index) {
        %qt = warp.await %Q[%item] : !ring -> !slot
        %s = warp.mma wgmma %kt, %qt, %z0 transpose_b : !slot, !slot, !acc
        %lt = warp.await %L[%item] : !rowRing -> !rowSlot
        %l = warp.load_frag %lt : !rowSlot -> !columns
        warp.release %lt : !rowSlot
        %l2 = arith.mulf %l, %toLog2 : !columns
        %lb = warp.broadcast %l2 : !columns -> !acc
        %exponent = math.fma %s, %scale, %lb : !acc
        %e = math.exp2 %exponent : !acc
        %p = warp.select %isInside, %e, %z0 : !bits, !acc
        %ph = warp.cast truncf %p : !acc to !half
        %pa = warp.convert %ph : !half -> !a
        %ot = warp.await %O[%item] : !ring -> !slot
        %dp = warp.mma wgmma %vt, %ot, %z0 transpose_b : !slot, !slot, !acc
        %dv1 = warp.mma wgmma %pa, %ot, %dv0 : !a, !slot, !acc
        warp.release %ot : !slot
        %dt = warp.await %D[%item] : !rowRing -> !rowSlot
        %delta1 = warp.load_frag %dt : !rowSlot -> !columns
        warp.release %dt : !rowSlot
        %db = warp.broadcast %delta1 : !columns -> !acc
        %dpd = arith.subf %dp, %db : !acc
        %ds = arith.mulf %p, %dpd : !acc
        %dsh = warp.cast truncf %ds : !acc to !half
        %dsa = warp.convert %dsh : !half -> !a
        %dk1 = warp.mma wgmma %dsa, %qt, %dk0 : !a, !slot, !acc
        warp.release %qt : !slot
        warp.store_frag %dsh to %S[%item] : !half, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %dk1, %dv1, %next : !acc, !acc, index
      }
      warp.release %vt : !slot
      warp.release %kt : !slot
      %eighths = warp.splat %eighth : !acc
      %dks = arith.mulf %r#0, %eighths : !acc
      %dkh = warp.cast truncf %dks : !acc to !half
      %dvh = warp.cast truncf %r#1 : !acc to !half
      warp.store %dkh, %dk[%z, %key, %c0] : !half, !tensor
      warp.store %dvh, %dv[%z, %key, %c0] : !half, !tensor
    }
    warp.role @queries compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %kt = warp.await %K[%c0] : !one -> !slot
      %items = scf.for %n = %c0 to %queryBlocks step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %n, %c64 : index
        %st = warp.await %S[%item] : !ring -> !slot
        %dq1 = warp.mma wgmma %st, %kt, %z0 transpose_a : !slot, !slot, !acc
        warp.release %st : !slot
        warp.store %dq1, %sum[%z, %row, %c0] accumulate via %stage by tma : !acc, !workspace, !wideSlot
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
      warp.release %kt : !slot
    }
  }
  warp.kernel @finish blocks(%x, %y, %z) in (%queryBlocks, %c1, %heads) warps(8) {
    %W = warp.ring fills(@load) drains(@round) : !wideRing
    %row = arith.muli %x, %c64 : index
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %sum[%z, %row, %c0] to %W[%c0] by tma : !workspace, !wideRing
    }
    warp.role @round compute warps(4) registers(240) {
      %eighths = warp.splat %eighth : !acc
      %wt = warp.await %W[%c0] : !wideRing -> !wideSlot
      %w = warp.load_frag %wt : !wideSlot -> !acc
      warp.release %wt : !wideSlot
      %scaled = arith.mulf %w, %eighths : !acc
      %rounded = warp.cast truncf %scaled : !acc to !half
      warp.store %rounded, %dq[%z, %row, %c0] : !half, !tensor
    }
  }
  return
}
