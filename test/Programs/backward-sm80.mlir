// RUN: attn-compile %s --target=sm_80 --emit=ptx | FileCheck %s
// RUN: sed s/bf16/f16/g %s | attn-compile - --target=sm_80 --emit=ptx | FileCheck %s

// The gradients of attention in five products, a block of keys at a time, of
// queries in a loop: S^T = K Q^T, dP^T = V dO^T, dV += P^T dO, dK += dS^T Q and
// dQ += dS K, of which the blocks add up the last in a workspace. lse and delta,
// the sums over the rows of dO o O, come as rows of 64 beside the tiles.
// test/Unit/ProgramsTest.cpp runs it in the simulator,
// test/Integration/GPU/programs.py on a GPU.
// CHECK-LABEL: .entry gradients
// CHECK: cp.async.ca.shared.global
// CHECK: red.relaxed.gpu.global.add.f32
// CHECK-LABEL: .entry finish
!tensor = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!sums = memref<?x?xf32, strided<[?, 1]>>
!workspace = memref<?x?x64xf32>
!ring = !warp.ring<2, 64x64xbf16>
!slot = !warp.slot<64x64xbf16>
!wideSlot = !warp.slot<64x64xf32>
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
  warp.kernel @gradients blocks(%x, %y, %z) in (%keyBlocks, %c1, %heads) warps(4) {
    %K = warp.alloc : !slot
    %V = warp.alloc : !slot
    %S = warp.alloc : !slot
    %Q = warp.ring : !ring
    %O = warp.ring : !ring
    %L = warp.ring : !rowRing
    %D = warp.ring : !rowRing
    %key = arith.muli %x, %c64 : index
    %z0 = warp.splat %zero : !acc
    %scale = warp.splat %factor : !acc
    %toLog2 = warp.splat %minusLog2e : !columns
    %limit = warp.splat %keys32 : !keys
    %key32 = arith.index_cast %key : index to i32
    %rows = warp.coords %key32, 0 : !keys
    %isKey = arith.cmpi slt, %rows, %limit : !keys
    %isInside = warp.broadcast %isKey : !warp.frag<64x1xi1, acc, 4> -> !bits
    warp.copy %k[%z, %key, %c0] to %K : !tensor, !slot
    warp.copy %v[%z, %key, %c0] to %V : !tensor, !slot
    %ka = warp.load_frag %K : !slot -> !a
    %va = warp.load_frag %V : !slot -> !a
    %any = arith.cmpi slt, %c0, %queryBlocks : index
    warp.copy_async %q[%z, %c0, %c0] to %Q[%c0] when %any : !tensor, !ring
    warp.copy_async %lse[%z, %c0] to %L[%c0] when %any : !sums, !rowRing
    warp.copy_async %do[%z, %c0, %c0] to %O[%c0] when %any : !tensor, !ring
    warp.copy_async %delta[%z, %c0] to %D[%c0] when %any : !sums, !rowRing
    %r:2 = scf.for %n = %c0 to %queryBlocks step %c1 iter_args(%dk0 = %z0, %dv0 = %z0) -> (!acc, !acc) {
      %row = arith.muli %n, %c64 : index
      %next = arith.addi %n, %c1 : index
      %more = arith.cmpi slt, %next, %queryBlocks : index
      %nextRow = arith.muli %next, %c64 : index
      %qt = warp.await %Q[%n] : !ring -> !slot
      warp.copy_async %q[%z, %nextRow, %c0] to %Q[%next] when %more : !tensor, !ring
      %s = warp.mma mma_sync %ka, %qt, %z0 transpose_b : !a, !slot, !acc
      %lt = warp.await %L[%n] : !rowRing -> !rowSlot
      warp.copy_async %lse[%z, %nextRow] to %L[%next] when %more : !sums, !rowRing
      %l = warp.load_frag %lt : !rowSlot -> !columns
      warp.release %lt : !rowSlot
      %l2 = arith.mulf %l, %toLog2 : !columns
      %lb = warp.broadcast %l2 : !columns -> !acc
      %exponent = math.fma %s, %scale, %lb : !acc
      %e = math.exp2 %exponent : !acc
      %p = warp.select %isInside, %e, %z0 : !bits, !acc
      %ph = warp.cast truncf %p : !acc to !half
      %pa = warp.convert %ph : !half -> !a
      %ot = warp.await %O[%n] : !ring -> !slot
      warp.copy_async %do[%z, %nextRow, %c0] to %O[%next] when %more : !tensor, !ring
      %dp = warp.mma mma_sync %va, %ot, %z0 transpose_b : !a, !slot, !acc
      %dv1 = warp.mma mma_sync %pa, %ot, %dv0 : !a, !slot, !acc
      warp.release %ot : !slot
      %dt = warp.await %D[%n] : !rowRing -> !rowSlot
      warp.copy_async %delta[%z, %nextRow] to %D[%next] when %more : !sums, !rowRing
      %delta1 = warp.load_frag %dt : !rowSlot -> !columns
      warp.release %dt : !rowSlot
      %db = warp.broadcast %delta1 : !columns -> !acc
      %dpd = arith.subf %dp, %db : !acc
      %ds = arith.mulf %p, %dpd : !acc
      %dsh = warp.cast truncf %ds : !acc to !half
      %dsa = warp.convert %dsh : !half -> !a
      %dk1 = warp.mma mma_sync %dsa, %qt, %dk0 : !a, !slot, !acc
      warp.release %qt : !slot
      warp.store_frag %dsh to %S : !half, !slot
      %dq1 = warp.mma mma_sync %S, %K, %z0 transpose_a : !slot, !slot, !acc
      warp.store %dq1, %sum[%z, %row, %c0] accumulate : !acc, !workspace
      scf.yield %dk1, %dv1 : !acc, !acc
    }
    %eighths = warp.splat %eighth : !acc
    %dks = arith.mulf %r#0, %eighths : !acc
    %dkh = warp.cast truncf %dks : !acc to !half
    %dvh = warp.cast truncf %r#1 : !acc to !half
    warp.store %dkh, %dk[%z, %key, %c0] : !half, !tensor
    warp.store %dvh, %dv[%z, %key, %c0] : !half, !tensor
  }
  warp.kernel @finish blocks(%x, %y, %z) in (%queryBlocks, %c1, %heads) warps(4) {
    %W = warp.alloc : !wideSlot
    %row = arith.muli %x, %c64 : index
    %eighths = warp.splat %eighth : !acc
    warp.copy %sum[%z, %row, %c0] to %W : !workspace, !wideSlot
    %w = warp.load_frag %W : !wideSlot -> !acc
    %scaled = arith.mulf %w, %eighths : !acc
    %rounded = warp.cast truncf %scaled : !acc to !half
    warp.store %rounded, %dq[%z, %row, %c0] : !half, !tensor
  }
  return
}
