// RUN: attn-compile %s --target=sm_80 --emit=ptx | FileCheck %s
// RUN: sed s/bf16/f16/g %s | attn-compile - --target=sm_80 --emit=ptx | FileCheck %s

// A loop over keys in three parts, one in each block of y, and a kernel that
// merges the parts: o = sum of w o_i with w = exp2(lse_i - lse). The parts lie in
// workspaces. test/Unit/ProgramsTest.cpp runs it in the simulator,
// test/Integration/GPU/programs.py on a GPU.
// CHECK-LABEL: .entry part
// CHECK: mma.sync
// CHECK-LABEL: .entry merge
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.ca.shared.global
!tensor = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!sums = memref<?x?xf32, strided<[?, 1]>>
!partial = memref<3x?x?x64xf32>
!partialSums = memref<3x?x?xf32>
!ring = !warp.ring<2, 64x64xbf16>
!slot = !warp.slot<64x64xbf16>
!wideRing = !warp.ring<2, 64x64xf32>
!wideSlot = !warp.slot<64x64xf32>
!rowRing = !warp.ring<2, 1x64xf32>
!rowSlot = !warp.slot<1x64xf32>
!a = !warp.frag<64x64xbf16, a, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
!acc = !warp.frag<64x64xf32, acc, 4>
!bits = !warp.frag<64x64xi1, acc, 4>
!columns = !warp.frag<1x64xi32, acc, 4>
!rows = !warp.frag<64x1xf32, acc, 4>
!rowBits = !warp.frag<64x1xi1, acc, 4>
func.func @split_keys(%q: !tensor loc("q"), %k: !tensor loc("k"), %v: !tensor loc("v"),
                      %o: !tensor loc("o"), %lse: !sums loc("lse")) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %splits = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %least = arith.constant -1.0e30 : f32
  %minusInfinity = arith.constant 0xFF800000 : f32
  %factor = arith.constant 0.180336878 : f32  // log2(e) / sqrt(64)
  %ln2 = arith.constant 0.693147181 : f32
  %heads = memref.dim %q, %c0 : !tensor
  %queries = memref.dim %q, %c1 : !tensor
  %keys = memref.dim %k, %c1 : !tensor
  %blocks = arith.ceildivsi %queries, %c64 : index
  %padded = arith.muli %blocks, %c64 : index
  %keyBlocks = arith.ceildivsi %keys, %c64 : index
  %perSplit = arith.ceildivsi %keyBlocks, %splits : index
  %keys32 = arith.index_cast %keys : index to i32
  %po = memref.alloc(%heads, %padded) : !partial
  %pl = memref.alloc(%heads, %padded) : !partialSums
  warp.kernel @part blocks(%x, %y, %z) in (%blocks, %splits, %heads) warps(4) {
    %Q = warp.alloc : !slot
    %K = warp.ring : !ring
    %V = warp.ring : !ring
    %row = arith.muli %x, %c64 : index
    %first = arith.muli %y, %perSplit : index
    %last = arith.addi %first, %perSplit : index
    %end = arith.minsi %last, %keyBlocks : index
    %z0 = warp.splat %zero : !acc
    %zeroRows = warp.splat %zero : !rows
    %oneRows = warp.splat %one : !rows
    %m0 = warp.splat %least : !rows
    %outside = warp.splat %minusInfinity : !acc
    %scale = warp.splat %factor : !acc
    %limit = warp.splat %keys32 : !columns
    warp.copy %q[%z, %row, %c0] to %Q : !tensor, !slot
    %qa = warp.load_frag %Q : !slot -> !a
    %any = arith.cmpi slt, %first, %end : index
    %firstRow = arith.muli %first, %c64 : index
    warp.copy_async %k[%z, %firstRow, %c0] to %K[%first] when %any : !tensor, !ring
    warp.copy_async %v[%z, %firstRow, %c0] to %V[%first] when %any : !tensor, !ring
    %r:3 = scf.for %n = %first to %end step %c1 iter_args(%o0 = %z0, %m = %m0, %l = %zeroRows) -> (!acc, !rows, !rows) {
      %next = arith.addi %n, %c1 : index
      %more = arith.cmpi slt, %next, %end : index
      %nextRow = arith.muli %next, %c64 : index
      %column = arith.muli %n, %c64 : index
      %column32 = arith.index_cast %column : index to i32
      %kt = warp.await %K[%n] : !ring -> !slot
      warp.copy_async %k[%z, %nextRow, %c0] to %K[%next] when %more : !tensor, !ring
      %s0 = warp.mma mma_sync %qa, %kt, %z0 transpose_b : !a, !slot, !acc
      warp.release %kt : !slot
      %columns = warp.coords %column32, 1 : !columns
      %isInside = arith.cmpi slt, %columns, %limit : !columns
      %inside = warp.broadcast %isInside : !warp.frag<1x64xi1, acc, 4> -> !bits
      %s1 = arith.mulf %s0, %scale : !acc
      %s = warp.select %inside, %s1, %outside : !bits, !acc
      %mn = warp.reduce <max> %s : !acc -> !rows
      %m1 = arith.maxnumf %m, %mn : !rows
      %mb = warp.broadcast %m1 : !rows -> !acc
      %d = arith.subf %s, %mb : !acc
      %p = math.exp2 %d : !acc
      %ln = warp.reduce <add> %p : !acc -> !rows
      %dm = arith.subf %m, %m1 : !rows
      %w = math.exp2 %dm : !rows
      %l1 = math.fma %l, %w, %ln : !rows
      %wb = warp.broadcast %w : !rows -> !acc
      %o1 = arith.mulf %o0, %wb : !acc
      %h = warp.cast truncf %p : !acc to !half
      %pa = warp.convert %h : !half -> !a
      %vt = warp.await %V[%n] : !ring -> !slot
      warp.copy_async %v[%z, %nextRow, %c0] to %V[%next] when %more : !tensor, !ring
      %o2 = warp.mma mma_sync %pa, %vt, %o1 : !a, !slot, !acc
      warp.release %vt : !slot
      scf.yield %o2, %m1, %l1 : !acc, !rows, !rows
    }
    %isSome = arith.cmpf ogt, %r#2, %zeroRows : !rows
    %divisor = warp.select %isSome, %r#2, %oneRows : !rowBits, !rows
    %inverse = arith.divf %oneRows, %divisor : !rows
    %ib = warp.broadcast %inverse : !rows -> !acc
    %result = arith.mulf %r#0, %ib : !acc
    warp.store %result, %po[%y, %z, %row, %c0] : !acc, !partial
    %log = math.log2 %r#2 : !rows
    %sum = arith.addf %r#1, %log : !rows
    warp.store %sum, %pl[%y, %z, %row] rows : !rows, !partialSums
  }
  warp.kernel @merge blocks(%x, %y, %z) in (%blocks, %c1, %heads) warps(4) {
    %O = warp.ring : !wideRing
    %L = warp.ring : !rowRing
    %row = arith.muli %x, %c64 : index
    %z0 = warp.splat %zero : !acc
    %zeroRows = warp.splat %zero : !rows
    %oneRows = warp.splat %one : !rows
    %ln2Rows = warp.splat %ln2 : !rows
    %m0 = warp.splat %least : !rows
    warp.copy_async %pl[%c0, %z, %row] to %L[%c0] : !partialSums, !rowRing
    warp.copy_async %po[%c0, %z, %row, %c0] to %O[%c0] : !partial, !wideRing
    %r:3 = scf.for %n = %c0 to %splits step %c1 iter_args(%o0 = %z0, %m = %m0, %l = %zeroRows) -> (!acc, !rows, !rows) {
      %next = arith.addi %n, %c1 : index
      %more = arith.cmpi slt, %next, %splits : index
      %lt = warp.await %L[%n] : !rowRing -> !rowSlot
      warp.copy_async %pl[%next, %z, %row] to %L[%next] when %more : !partialSums, !rowRing
      %ls = warp.load_frag %lt : !rowSlot -> !rows
      warp.release %lt : !rowSlot
      %m1 = arith.maxnumf %m, %ls : !rows
      %dm = arith.subf %m, %m1 : !rows
      %w = math.exp2 %dm : !rows
      %dn = arith.subf %ls, %m1 : !rows
      %wn = math.exp2 %dn : !rows
      %l1 = math.fma %l, %w, %wn : !rows
      %ot = warp.await %O[%n] : !wideRing -> !wideSlot
      warp.copy_async %po[%next, %z, %row, %c0] to %O[%next] when %more : !partial, !wideRing
      %on = warp.load_frag %ot : !wideSlot -> !acc
      warp.release %ot : !wideSlot
      %wb = warp.broadcast %w : !rows -> !acc
      %wnb = warp.broadcast %wn : !rows -> !acc
      %o1 = arith.mulf %o0, %wb : !acc
      %o2 = math.fma %on, %wnb, %o1 : !acc
      scf.yield %o2, %m1, %l1 : !acc, !rows, !rows
    }
    %isSome = arith.cmpf ogt, %r#2, %zeroRows : !rows
    %divisor = warp.select %isSome, %r#2, %oneRows : !rowBits, !rows
    %inverse = arith.divf %oneRows, %divisor : !rows
    %ib = warp.broadcast %inverse : !rows -> !acc
    %result = arith.mulf %r#0, %ib : !acc
    %h = warp.cast truncf %result : !acc to !half
    warp.store %h, %o[%z, %row, %c0] : !half, !tensor
    %log = math.log2 %r#2 : !rows
    %sum = arith.addf %r#1, %log : !rows
    %natural = arith.mulf %sum, %ln2Rows : !rows
    warp.store %natural, %lse[%z, %row] rows : !rows, !sums
  }
  return
}
