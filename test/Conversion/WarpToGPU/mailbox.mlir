// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_90a" | FileCheck %s

// Two items of numbers after the barriers of the ring, 16 bytes of barriers and
// 16 of numbers each: bytes 16416 to 16480 of shared memory.
!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

// CHECK-LABEL: gpu.func @drawn(
// CHECK-SAME: %{{.*}}: index, %{{.*}}: memref<?x?xbf16, strided<[?, 1]>>, %[[COUNTER:.*]]: memref<1xi32>
// One thread of the producer and four warps of the consumer arrive.
// CHECK: arith.constant 16448 : i32
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: llvm.inline_asm {{.*}} "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %[[ONE]]
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK-NEXT: llvm.inline_asm {{.*}} "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %[[FOUR]]
// CHECK: arith.constant 16480 : i32
//
// The consumer waits, reads, and arrives when all lanes have read.
// CHECK: nvvm.setmaxregister increase 240
// CHECK: mbarrier.try_wait
// CHECK: %[[WORD:.*]] = llvm.load
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[WORD]] : i32 to index
// CHECK: llvm.load
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive.shared::cta.b64 _
// CHECK: scf.while (%{{.*}} = %[[FIRST]],
//
// The producer draws, if there are more tiles than blocks, waits, writes and arrives.
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: scf.while
// CHECK: %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %{{.*}}, %[[ALL]] : i32
// CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
// CHECK-NEXT: %[[COUNT:.*]] = arith.index_cast %[[BLOCKS]] : index to i32
// CHECK: %[[DRAWN:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred draws; setp.eq.u32 draws, $3, 0; setp.le.and.u32 draws, $4, $2, draws; mov.u32 $0, 0; @draws atom.global.inc.u32 $0, [$1], $2; }", "=&r,l,r,r,r,~{memory}" %{{.*}}, %[[LAST]], %{{.*}}, %[[COUNT]]
// CHECK: %[[FOR_ALL:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[DRAWN]],
// CHECK: arith.addi %[[FOR_ALL]], %[[COUNT]] : i32
// CHECK: mbarrier.try_wait
// CHECK: @first st.shared.b32 [$0], $2;
// CHECK: @first st.shared.b32 [$0], $2;
// CHECK: mbarrier.arrive.shared::cta.b64 _
func.func @drawn(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @drawn blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) shared(16512) resident {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) registers(24) {
      %row0 = arith.addi %x, %c1 : index
      warp.send %x, %row0 to %tiles[%c0] : !tiles
      %p:4 = scf.while (%t = %x, %row = %row0, %i = %c0, %m = %c1) : (index, index, index, index) -> (index, index, index, index) {
        %more = arith.cmpi ult, %t, %n : index
        scf.condition(%more) %t, %row, %i, %m : index, index, index, index
      } do {
      ^bb0(%t: index, %row: index, %i: index, %m: index):
        %i1 = scf.for %k = %c0 to %row step %c1 iter_args(%j = %i) -> (index) {
          warp.copy_async %v[%k, %c0] to %r[%j] by tma : !view, !ring
          %j1 = arith.addi %j, %c1 : index
          scf.yield %j1 : index
        }
        %next = warp.draw %counter below %n : memref<1xi32>
        %nextrow = arith.addi %next, %c1 : index
        warp.send %next, %nextrow to %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %t0, %row0 = warp.receive %tiles[%c0] : !tiles
      %p:4 = scf.while (%t = %t0, %row = %row0, %i = %c0, %m = %c1) : (index, index, index, index) -> (index, index, index, index) {
        %more = arith.cmpi ult, %t, %n : index
        scf.condition(%more) %row, %t, %i, %m : index, index, index, index
      } do {
      ^bb0(%row: index, %t: index, %i: index, %m: index):
        %i1 = scf.for %k = %c0 to %row step %c1 iter_args(%j = %i) -> (index) {
          %s = warp.await %r[%j] : !ring -> !t
          warp.release %s : !t
          %j1 = arith.addi %j, %c1 : index
          scf.yield %j1 : index
        }
        %next, %nextrow = warp.receive %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
  }
  return
}
