// RUN: attn-compile %s --target=sm_80 --emit=ptx | FileCheck %s
// RUN: sed s/bf16/f16/g %s | attn-compile - --target=sm_80 --emit=ptx | FileCheck %s

// Keys and values in pages of 16 rows, in any order: a table says which pages a
// batch has, and a tensor how many keys. One item of a ring is four pages, each
// a box of its own. Numbers of pages that nobody asks for may be any that are
// there. test/Unit/ProgramsTest.cpp runs it in the simulator,
// test/Integration/GPU/programs.py on a GPU.
// CHECK-LABEL: .entry paged
// CHECK: cp.async.cg.shared.global
// CHECK: mma.sync
!tensor = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!pool = memref<?x?x16x64xbf16, strided<[?, ?, ?, 1]>>
!table = memref<?x?xi32, strided<[?, 1]>>
!lengths = memref<?xi32, strided<[1]>>
!sums = memref<?x?x?xf32, strided<[?, ?, 1]>>
!ring = !warp.ring<2, 64x64xbf16>
!slot = !warp.slot<64x64xbf16>
!a = !warp.frag<64x64xbf16, a, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
!acc = !warp.frag<64x64xf32, acc, 4>
!bits = !warp.frag<64x64xi1, acc, 4>
!columns = !warp.frag<1x64xi32, acc, 4>
!rows = !warp.frag<64x1xf32, acc, 4>
!rowBits = !warp.frag<64x1xi1, acc, 4>
func.func @paged_keys(%q: !tensor loc("q"), %k: !pool loc("k"), %v: !pool loc("v"),
                      %pages: !table loc("pages"), %lengths: !lengths loc("lengths"),
                      %o: !tensor loc("o"), %lse: !sums loc("lse")) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %least = arith.constant -1.0e30 : f32
  %minusInfinity = arith.constant 0xFF800000 : f32
  %factor = arith.constant 0.180336878 : f32  // log2(e) / sqrt(64)
  %ln2 = arith.constant 0.693147181 : f32
  %batch = memref.dim %q, %c0 : !tensor
  %heads = memref.dim %q, %c1 : !tensor
  %queries = memref.dim %q, %c2 : !tensor
  %blocks = arith.ceildivsi %queries, %c64 : index
  %width = memref.dim %pages, %c1 : !table
  %lastPage = arith.subi %width, %c1 : index
  warp.kernel @paged blocks(%x, %y, %z) in (%blocks, %heads, %batch) warps(4) {
    %Q = warp.alloc : !slot
    %K = warp.ring : !ring
    %V = warp.ring : !ring
    %row = arith.muli %x, %c64 : index
    %length32 = memref.load %lengths[%z] : !lengths
    %length = arith.index_cast %length32 : i32 to index
    %end = arith.ceildivsi %length, %c64 : index
    %z0 = warp.splat %zero : !acc
    %zeroRows = warp.splat %zero : !rows
    %oneRows = warp.splat %one : !rows
    %ln2Rows = warp.splat %ln2 : !rows
    %m0 = warp.splat %least : !rows
    %outside = warp.splat %minusInfinity : !acc
    %scale = warp.splat %factor : !acc
    %limit = warp.splat %length32 : !columns
    warp.copy %q[%z, %y, %row, %c0] to %Q : !tensor, !slot
    %qa = warp.load_frag %Q : !slot -> !a
    %any = arith.cmpi slt, %c0, %end : index
    %fi0 = arith.muli %c0, %c4 : index
    %fi1 = arith.addi %fi0, %c1 : index
    %fi2 = arith.addi %fi0, %c2 : index
    %fi3 = arith.addi %fi0, %c3 : index
    %fn0 = arith.minsi %fi0, %lastPage : index
    %fw0 = memref.load %pages[%z, %fn0] : !table
    %f0 = arith.index_cast %fw0 : i32 to index
    %fn1 = arith.minsi %fi1, %lastPage : index
    %fw1 = memref.load %pages[%z, %fn1] : !table
    %f1 = arith.index_cast %fw1 : i32 to index
    %fn2 = arith.minsi %fi2, %lastPage : index
    %fw2 = memref.load %pages[%z, %fn2] : !table
    %f2 = arith.index_cast %fw2 : i32 to index
    %fn3 = arith.minsi %fi3, %lastPage : index
    %fw3 = memref.load %pages[%z, %fn3] : !table
    %f3 = arith.index_cast %fw3 : i32 to index
    warp.copy_async %k[%f0, %y, %c0, %c0], [%f1, %y, %c0, %c0], [%f2, %y, %c0, %c0], [%f3, %y, %c0, %c0] to %K[%c0] when %any : !pool, !ring
    warp.copy_async %v[%f0, %y, %c0, %c0], [%f1, %y, %c0, %c0], [%f2, %y, %c0, %c0], [%f3, %y, %c0, %c0] to %V[%c0] when %any : !pool, !ring
    %r:3 = scf.for %n = %c0 to %end step %c1 iter_args(%o0 = %z0, %m = %m0, %l = %zeroRows) -> (!acc, !rows, !rows) {
      %next = arith.addi %n, %c1 : index
      %more = arith.cmpi slt, %next, %end : index
      %pi0 = arith.muli %next, %c4 : index
      %pi1 = arith.addi %pi0, %c1 : index
      %pi2 = arith.addi %pi0, %c2 : index
      %pi3 = arith.addi %pi0, %c3 : index
      %pn0 = arith.minsi %pi0, %lastPage : index
      %pw0 = memref.load %pages[%z, %pn0] : !table
      %p0 = arith.index_cast %pw0 : i32 to index
      %pn1 = arith.minsi %pi1, %lastPage : index
      %pw1 = memref.load %pages[%z, %pn1] : !table
      %p1 = arith.index_cast %pw1 : i32 to index
      %pn2 = arith.minsi %pi2, %lastPage : index
      %pw2 = memref.load %pages[%z, %pn2] : !table
      %p2 = arith.index_cast %pw2 : i32 to index
      %pn3 = arith.minsi %pi3, %lastPage : index
      %pw3 = memref.load %pages[%z, %pn3] : !table
      %p3 = arith.index_cast %pw3 : i32 to index
      %column = arith.muli %n, %c64 : index
      %column32 = arith.index_cast %column : index to i32
      %kt = warp.await %K[%n] : !ring -> !slot
      warp.copy_async %k[%p0, %y, %c0, %c0], [%p1, %y, %c0, %c0], [%p2, %y, %c0, %c0], [%p3, %y, %c0, %c0] to %K[%next] when %more : !pool, !ring
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
      warp.copy_async %v[%p0, %y, %c0, %c0], [%p1, %y, %c0, %c0], [%p2, %y, %c0, %c0], [%p3, %y, %c0, %c0] to %V[%next] when %more : !pool, !ring
      %o2 = warp.mma mma_sync %pa, %vt, %o1 : !a, !slot, !acc
      warp.release %vt : !slot
      scf.yield %o2, %m1, %l1 : !acc, !rows, !rows
    }
    %isSome = arith.cmpf ogt, %r#2, %zeroRows : !rows
    %divisor = warp.select %isSome, %r#2, %oneRows : !rowBits, !rows
    %inverse = arith.divf %oneRows, %divisor : !rows
    %ib = warp.broadcast %inverse : !rows -> !acc
    %result = arith.mulf %r#0, %ib : !acc
    %rounded = warp.cast truncf %result : !acc to !half
    warp.store %rounded, %o[%z, %y, %row, %c0] : !half, !tensor
    %log = math.log2 %r#2 : !rows
    %sum = arith.addf %r#1, %log : !rows
    %natural = arith.mulf %sum, %ln2Rows : !rows
    warp.store %natural, %lse[%z, %y, %row] rows : !rows, !sums
  }
  return
}
