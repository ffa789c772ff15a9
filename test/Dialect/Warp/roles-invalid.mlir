// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @w1_never_waited(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w1_never_waited blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %v[%x, %h] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    // expected-error@+1 {{'warp.mma_async' op gives a pending value that is never waited for}}
    %p = warp.mma_async wgmma %s0, %s0, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w1_waited_twice(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w1_waited_twice blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %v[%x, %h] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    %p = warp.mma_async wgmma %s0, %s0, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    // expected-note@+1 {{first wait is here}}
    %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.wait' op waits for a value that was already waited for}}
    %2 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w1_over_a_back_edge(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w1_over_a_back_edge blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %v[%x, %h] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    %p0 = warp.mma_async wgmma %s0, %s0, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'scf.for' op passes on a pending value, only a turn may}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p0) -> (!warp.pending<64x64xf32, acc, 4>) {
      %1 = warp.wait %q : !warp.pending<64x64xf32, acc, 4>
      %p = warp.mma_async wgmma %s0, %s0, %1 : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
      scf.yield %p : !warp.pending<64x64xf32, acc, 4>
    }
    %2 = warp.wait %r : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w1_waited_in_another_block(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w1_waited_in_another_block blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %v[%x, %h] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    // expected-note@+1 {{issued here}}
    %p = warp.mma_async wgmma %s0, %s0, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    scf.for %i = %c0 to %n step %c1 {
      // expected-error@+1 {{'warp.wait' op stands in another block than what it waits for}}
      %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
    }
  }
  return
}

// -----

func.func @w1_waits_for_an_argument(%n: index, %p: !warp.pending<64x64xf32, acc, 4>) {
  warp.kernel @w1_waits_for_an_argument blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.wait' op waits for a value that no warp.mma_async gave}}
    %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w2_released_in_flight(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w2_released_in_flight blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    %r = warp.ring : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.copy_async %v[%x, %h] to %r[%c0] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
    // expected-note@+1 {{issued here}}
    %p = warp.mma_async wgmma %s, %s, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.release' op releases a slot that a product in flight still reads}}
    warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    // expected-note@+1 {{waited for here}}
    %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w2_written_in_flight(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w2_written_in_flight blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %z = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.copy %v[%x, %h] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    // expected-note@+1 {{issued here}}
    %p = warp.mma_async wgmma %s0, %s0, %z : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.copy' op writes a slot that a product in flight still reads}}
    warp.copy %v[%h, %x] to %s0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w3_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_good blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w3_never_awaited(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_never_awaited blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @w3_never_copied(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_never_copied blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w3_other_bounds(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_other_bounds blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      // expected-note@+1 {{@load is here}}
      %r0 = scf.for %i = %c0 to %c2 step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-error@+1 {{op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
      %r1 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_loop_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_loop_good blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %r1 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_item_skipped(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_item_skipped blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        // expected-error@+1 {{op is out of order: the items of a ring are numbered 0, 1, 2, … as they are used, carried through loops}}
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c2 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %r1 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_item_repeated(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_item_repeated blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      // expected-error@+1 {{op is out of order: the items of a ring are numbered 0, 1, 2, … as they are used, carried through loops}}
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
      %t = warp.await %r[%c1] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %t : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w3_under_a_branch(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_under_a_branch blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %true = arith.constant true
      scf.if %true {
        // expected-error@+1 {{'warp.copy_async' op stands under 'scf.if', items of roles are used in loops only}}
        warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w3_holds_too_many(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_holds_too_many blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      warp.copy_async %v[%x, %h] to %r[%c1] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      warp.copy_async %v[%x, %h] to %r[%c2] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-note@+1 {{awaited here}}
      %s0 = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      %s1 = warp.await %r[%c1] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.await' op is later by 2 than an item that is still held, the ring has 2 slots}}
      %s2 = warp.await %r[%c2] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      // expected-note@+1 {{released here}}
      warp.release %s0 : !warp.slot<64x64xbf16, panels<128>>
      warp.release %s1 : !warp.slot<64x64xbf16, panels<128>>
      warp.release %s2 : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w3_holds_through_a_loop(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_holds_through_a_loop blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      scf.for %i = %c1 to %n step %c1 iter_args(%j = %c1) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
        %k = arith.addi %j, %c1 : index
        scf.yield %k : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-note@+1 {{awaited here}}
      %s0 = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      scf.for %i = %c1 to %n step %c1 iter_args(%j = %c1) -> (index) {
        // expected-error@+1 {{'warp.await' op waits for an item while another is held through the loop around it}}
        %s1 = warp.await %r[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s1 : !warp.slot<64x64xbf16, panels<128>>
        %k = arith.addi %j, %c1 : index
        scf.yield %k : index
      }
      // expected-note@+1 {{released here}}
      warp.release %s0 : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @role_names(%n: index) {
  warp.kernel @role_names blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-note@+1 {{see existing symbol definition here}}
    warp.role @load copy warps(4) {
    }
    // expected-error@+1 {{redefinition of symbol named 'load'}}
    warp.role @load copy warps(4) {
    }
  }
  return
}

// -----

func.func @w3_turn_under_a_branch(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_turn_under_a_branch blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(8) registers(240) {
      %true = arith.constant true
      scf.if %true {
        // expected-error@+1 {{'warp.turn' op stands under 'scf.if', expected loops of a role only}}
        warp.turn {
          warp.yield
        }
      }
    }
  }
  return
}

// -----

func.func @w3_turn_of_one_group(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w3_turn_of_one_group blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-error@+1 {{'warp.turn' op stands in a role of 4 warps, expected at least two groups of 4}}
      warp.turn {
        warp.yield
      }
    }
  }
  return
}

// -----

func.func @w4_registers_of_blocks(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  // expected-error@+1 {{'warp.kernel' op wants 4 x 40 + 4 x 224 = 1056 registers per lane of its warps, they start with 8 x 128 = 1024}}
  warp.kernel @w4_registers_of_blocks blocks(%x, %h, %b) in (%n, %n, %n) warps(8) per_sm(2) {
    warp.role @load copy warps(4) registers(40) {
    }
    warp.role @softmax compute warps(4) registers(224) {
    }
  }
  return
}

// -----

func.func @blocks_per_sm(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has 9 blocks per multiprocessor, expected 1 to 8}}
  warp.kernel @blocks_per_sm blocks(%x, %h, %b) in (%n, %n, %n) warps(8) per_sm(9) {
  }
  return
}

// -----

func.func @w4_registers(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{'warp.kernel' op wants 4 x 24 + 8 x 256 = 2144 registers per lane of its warps, they start with 12 x 168 = 2016}}
  warp.kernel @w4_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(8) registers(256) {
    }
  }
  return
}

// -----

func.func @w4_barriers(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w4_barriers blocks(%x, %h, %b) in (%n, %n, %n) warps(8) shared(16384) {
    // expected-error@+1 {{'warp.ring' op ends at byte 16384 of a kernel with 16384 bytes of shared memory, of which the last 32 are for barriers}}
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @w5_fragment_from_outside(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %f = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
  warp.kernel @w5_fragment_from_outside blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) registers(24) {
    }
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(4) registers(240) {
      // expected-error@+1 {{'math.exp2' op reads '!warp.frag<64x64xf32, acc, 4>' from outside its role}}
      %e = math.exp2 %f : !warp.frag<64x64xf32, acc, 4>
    }
  }
  return
}

// -----

func.func @w5_fragment_of_other_warps(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w5_fragment_of_other_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    warp.role @load copy warps(4) registers(24) {
    }
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(8) registers(240) {
      // expected-error@+1 {{'warp.splat' op makes a fragment over 4 warps in a role of 8}}
      %e = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    }
  }
  return
}

// -----

func.func @w5_computes_in_a_producer(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w5_computes_in_a_producer blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-note@+1 {{the role}}
    warp.role @load copy warps(4) registers(24) {
      // expected-error@+1 {{'warp.splat' op may not stand in a role that copies}}
      %e = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @w5_beside_roles(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w5_beside_roles blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-error@+1 {{'warp.splat' op stands beside roles, expected it in one of them}}
    %e = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @w5_condition_in_a_producer(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @w5_condition_in_a_producer blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %true = arith.constant true
      // expected-error@+1 {{'warp.copy_async' op has a condition, in a role every item is copied}}
      warp.copy_async %v[%x, %h] to %r[%c0] when %true by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      %s = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @role_warps(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @role_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-error@+1 {{'warp.role' op has 2 warps, expected a positive multiple of 4}}
    warp.role @load copy warps(2) registers(24) {
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @role_registers(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @role_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-error@+1 {{'warp.role' op has 20 registers, expected a multiple of 8 from 24 to 256}}
    warp.role @load copy warps(4) registers(20) {
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @role_sum(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{'warp.kernel' op has 12 warps and roles of 4 and 4}}
  warp.kernel @role_sum blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @role_registers_of_one(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{'warp.kernel' op has one role with registers and one without}}
  warp.kernel @role_registers_of_one blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4)  {
    }
    warp.role @softmax compute warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @kernel_yields_a_value(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @kernel_yields_a_value blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.yield' op yields ('index'), expected ()}}
    warp.yield %x : index
  }
  return
}

// -----

// Two slots, at most one other item is held anywhere: item 0 is in the way of
// item 2 nevertheless.
func.func @w3_holds_past_its_turn(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_holds_past_its_turn blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      warp.copy_async %v[%x, %h] to %r[%c1] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
      warp.copy_async %v[%x, %h] to %r[%c2] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) registers(240) {
      // expected-note@+1 {{awaited here}}
      %s0 = warp.await %r[%c0] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      %s1 = warp.await %r[%c1] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s1 : !warp.slot<64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.await' op is later by 2 than an item that is still held, the ring has 2 slots}}
      %s2 = warp.await %r[%c2] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      // expected-note@+1 {{released here}}
      warp.release %s0 : !warp.slot<64x64xbf16, panels<128>>
      warp.release %s2 : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @beside_c4(%n: index, %nothing: i1) {
  %c1 = arith.constant 1 : index
  warp.kernel @beside_c4 blocks(%x, %y, %z) in (%n, %c1, %c1) warps(8) resident {
    // expected-note@+1 {{here}}
    warp.exit_if %nothing
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.beside' op stands in a kernel of which blocks may end before}}
      warp.beside {
      ^bb0(%warp: index):
      }
    }
    warp.role @softmax compute warps(4) {
    ^bb0(%group: index):
    }
  }
  return
}

// -----

// Of two roles the one that computes leaves no warp idle.
func.func @beside_in_a_role_that_computes(%n: index) {
  warp.kernel @k blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
    }
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(4) {
      // expected-error@+1 {{'warp.beside' op stands in a role that leaves no warp idle}}
      warp.beside {
      ^bb0(%warp: index):
      }
    }
  }
  return
}

// -----

func.func @beside_without_a_number(%n: index) {
  warp.kernel @k blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.beside' op region is a function of (), expected ('index')}}
      warp.beside {
      }
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}

// -----

func.func @beside_with_a_counter(%n: index, %c: memref<1xi32>) {
  warp.kernel @k blocks(%x, %h, %b) in (%n, %n, %n) warps(8) resident {
    warp.role @load copy warps(4) {
      // expected-note@+1 {{what they run}}
      warp.beside {
      ^bb0(%warp: index):
        // expected-error@+1 {{'warp.draw' op may not stand in what idle warps run, each by itself}}
        %t = warp.draw %c below %n : memref<1xi32>
      }
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}

// -----

func.func @beside_with_a_fragment_of_four(%n: index) {
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
      // expected-note@+1 {{the program}}
      warp.beside {
      ^bb0(%warp: index):
        // expected-error@+1 {{'warp.splat' op makes a fragment over 4 warps in a program of 1}}
        %f = warp.splat %zero : !warp.frag<64x64xf32, acc, 4>
      }
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}
