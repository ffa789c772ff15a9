// RUN: attn-opt %s -split-input-file -verify-diagnostics

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @c1_sends_too_few(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @c1_sends_too_few blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
      %row0 = arith.addi %x, %c1 : index
      // expected-error@+1 {{'warp.send' op sends 1 numbers in '!warp.mailbox<2, 2>'}}
      warp.send %x to %tiles[%c0] : !tiles
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
    warp.role @softmax compute warps(4) {
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

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_not_sent(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_not_sent blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
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
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
    warp.role @softmax compute warps(4) {
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
        // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
        %next, %nextrow = warp.receive %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
  }
  return
}

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_sends_another_number(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'warp.kernel' op has loops in @load and @softmax whose bounds do not stay the same from iteration to iteration}}
  warp.kernel @w3_sends_another_number blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
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
        warp.send %next, %next to %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
    warp.role @softmax compute warps(4) {
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

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_takes_in_another_order(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_takes_in_another_order blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
      %row0 = arith.addi %x, %c1 : index
      warp.send %x, %row0 to %tiles[%c0] : !tiles
      // expected-note@+1 {{@load is here}}
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
    warp.role @softmax compute warps(4) {
      %row0, %t0 = warp.receive %tiles[%c0] : !tiles
      // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
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

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_ends_sooner(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_ends_sooner blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
      %row0 = arith.addi %x, %c1 : index
      warp.send %x, %row0 to %tiles[%c0] : !tiles
      // expected-note@+1 {{@load is here}}
      %p:4 = scf.while (%t = %x, %row = %row0, %i = %c0, %m = %c1) : (index, index, index, index) -> (index, index, index, index) {
        %more = arith.cmpi ule, %t, %n : index
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
    warp.role @softmax compute warps(4) {
      %t0, %row0 = warp.receive %tiles[%c0] : !tiles
      // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
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

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_item_taken_twice(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_item_taken_twice blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
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
    warp.role @softmax compute warps(4) {
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
        // expected-error@+1 {{'warp.receive' op is out of order: the items of a ring are numbered 0, 1, 2, … as they are used, carried through loops}}
        %next, %nextrow = warp.receive %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m : index, index, index, index
      }
    }
  }
  return
}

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_starts_at_another_item(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_starts_at_another_item blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
      %row0 = arith.addi %x, %c1 : index
      warp.send %x, %row0 to %tiles[%c0] : !tiles
      %p:4 = scf.while (%t = %x, %row = %row0, %i = %c0, %m = %c0) : (index, index, index, index) -> (index, index, index, index) {
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
        // expected-error@+1 {{'warp.send' op is out of order: the items of a ring are numbered 0, 1, 2, … as they are used, carried through loops}}
        warp.send %next, %nextrow to %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
    warp.role @softmax compute warps(4) {
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

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w5_consumer_draws(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w5_consumer_draws blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
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
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(4) {
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
        // expected-error@+1 {{'warp.draw' op may not stand in a role that computes}}
        %own = warp.draw %counter below %n : memref<1xi32>
        %next, %nextrow = warp.receive %tiles[%m] : !tiles
        %m1 = arith.addi %m, %c1 : index
        scf.yield %next, %nextrow, %i1, %m1 : index, index, index, index
      }
    }
  }
  return
}

// -----

!view = memref<?x?xbf16, strided<[?, 1]>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!tiles = !warp.mailbox<2, 2>

func.func @w3_effect_before_the_condition(%n: index, %v: !view, %counter: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %word = arith.constant 1 : i32
  warp.kernel @w3_effect_before_the_condition blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %tiles = warp.mailbox fills(@load) drains(@softmax) : !tiles
    warp.role @load copy warps(4) {
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
    warp.role @softmax compute warps(4) {
      %t0, %row0 = warp.receive %tiles[%c0] : !tiles
      %p:4 = scf.while (%t = %t0, %row = %row0, %i = %c0, %m = %c1) : (index, index, index, index) -> (index, index, index, index) {
        // expected-error@+1 {{'memref.store' op stands before the condition of a loop of roles, expected operations without effects}}
        memref.store %word, %counter[%c0] : memref<1xi32>
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

// -----

func.func @c1_draws_in_a_grid(%n: index, %counter: memref<1xi32>) {
  warp.kernel @c1_draws_in_a_grid blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.draw' op stands outside a resident kernel}}
    %t = warp.draw %counter below %n : memref<1xi32>
  }
  return
}

// -----

func.func @c2_counts_in_two_numbers(%n: index, %counter: memref<2xi32>) {
  warp.kernel @c2_counts_in_two_numbers blocks(%x, %h, %b) in (%n, %n, %n) warps(4) resident {
    // expected-error@+1 {{'warp.draw' op counts in 'memref<2xi32>', expected a memref of one i32}}
    %t = warp.draw %counter below %n : memref<2xi32>
  }
  return
}

// -----

func.func @w3_numbers_without_roles(%n: index, %counter: memref<1xi32>) {
  warp.kernel @w3_numbers_without_roles blocks(%x, %h, %b) in (%n, %n, %n) warps(4) resident {
    // expected-error@+1 {{'warp.mailbox' op stands in a kernel without roles}}
    %t = warp.mailbox : !warp.mailbox<2, 2>
  }
  return
}

// -----

func.func @c1_numbers_in_a_role(%n: index) {
  %true = arith.constant true
  warp.kernel @c1_numbers_in_a_role blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    scf.if %true {
      // expected-error@+1 {{'warp.mailbox' op must stand directly in a warp.kernel}}
      %t = warp.mailbox : !warp.mailbox<2, 2>
    }
  }
  return
}

// -----

// expected-error@+1 {{mailbox of depth 0, expected 1 to 64}}
func.func private @depth(!warp.mailbox<0, 2>)

// -----

// expected-error@+1 {{17 numbers, expected 1 to 16}}
func.func private @count(!warp.mailbox<2, 17>)

// -----

func.func @c1_idle_under_a_condition(%n: index, %c: i1) {
  warp.kernel @c1_idle_under_a_condition blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    scf.if %c {
      // expected-error@+1 {{'warp.exit_if' op must stand directly in a warp.kernel}}
      warp.exit_if %c
    }
  }
  return
}

// -----

func.func @c1_idle_behind_a_role(%n: index, %c: i1) {
  warp.kernel @c1_idle_behind_a_role blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-note@+1 {{the role}}
    warp.role @load copy warps(4) {
    }
    // expected-error@+1 {{'warp.exit_if' op stands after a role}}
    warp.exit_if %c
    warp.role @softmax compute warps(4) {
    }
  }
  return
}
