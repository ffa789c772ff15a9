// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

// The consumer learns from the producer which tile comes, and how many items of
// the other ring it has.
// CHECK-LABEL: @drawn
func.func @drawn(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @drawn blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    // CHECK: %[[TILES:.*]] = warp.mailbox fills(@load) drains(@softmax) : <2, 2>
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
      %row0 = arith.addi %x, %c1 : index
      // CHECK: warp.send %{{.*}}, %{{.*}} to %[[TILES]][%{{.*}}] : <2, 2>
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
        // CHECK: %[[NEXT:.*]] = warp.draw %{{.*}} below %{{.*}} : memref<1xi32>
        %next = warp.draw %counter below %n : memref<1xi32>
        %nextrow = arith.addi %next, %c1 : index
        warp.send %next, %nextrow to %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
    warp.role @softmax compute warps(4) {
      // CHECK: %{{.*}}:2 = warp.receive %[[TILES]][%{{.*}}] : <2, 2>
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

// A block without work ends before its roles.
// CHECK-LABEL: @idle
func.func @idle(%n: index, %visits: memref<?xi32>) {
  %c0 = arith.constant 0 : i32
  warp.kernel @idle blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %count = memref.load %visits[%x] : memref<?xi32>
    %nothing = arith.cmpi eq, %count, %c0 : i32
    // CHECK: warp.exit_if %{{.*}}
    warp.exit_if %nothing
    warp.role @load copy warps(4) {
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}
