// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @w2_never_released(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_never_released blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    // expected-error@+1 {{'warp.await' op gives a slot that is never released}}
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @w2_released_twice(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_released_twice blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    // expected-note@+1 {{first release is here}}
    warp.release %s : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.release' op releases a slot that is already released}}
    warp.release %s : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @w2_released_elsewhere(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_released_elsewhere blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    %true = arith.constant true
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    // expected-note@+1 {{awaited here}}
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    scf.if %true {
      // expected-error@+1 {{'warp.release' op stands in another block than its await}}
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w2_read_after_release(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_read_after_release blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    // expected-note@+1 {{released here}}
    warp.release %s : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.load_frag' op reads a slot that is already released}}
    %f = warp.load_frag %s : !warp.slot<64x64xbf16> -> !warp.frag<64x64xbf16, a, 4>
  }
  return
}

// -----

func.func @w2_read_in_a_branch_after_release(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_read_in_a_branch_after_release blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    %true = arith.constant true
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    // expected-note@+1 {{released here}}
    warp.release %s : !warp.slot<64x64xbf16>
    scf.if %true {
      // expected-error@+1 {{'warp.load_frag' op reads a slot that is already released}}
      %f = warp.load_frag %s : !warp.slot<64x64xbf16> -> !warp.frag<64x64xbf16, a, 4>
    }
  }
  return
}

// -----

func.func @w2_leaves_its_block(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w2_leaves_its_block blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    %true = arith.constant true
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    %t = scf.if %true -> (!warp.slot<64x64xbf16>) {
      %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      warp.release %s : !warp.slot<64x64xbf16>
      // expected-error@+1 {{'scf.yield' op passes on an awaited slot, which may not leave its block}}
      scf.yield %s : !warp.slot<64x64xbf16>
    } else {
      %a = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      warp.release %a : !warp.slot<64x64xbf16>
      scf.yield %a : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_never_filled(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_never_filled blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-note@+1 {{the ring}}
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    // expected-error@+1 {{'warp.await' op waits for a ring that no warp.copy_async fills}}
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    warp.release %s : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @w3_awaited_before_copied(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_awaited_before_copied blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    // expected-error@+1 {{'warp.await' op waits for an item before it is copied}}
    %s = warp.await %r[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
    warp.release %s : !warp.slot<64x64xbf16>
    // expected-note@+1 {{copied here}}
    warp.copy_async %v[%x, %h] to %r[%x] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
  }
  return
}

// -----

func.func @w3_loop_awaits_before_copied(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_loop_awaits_before_copied blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      // expected-error@+1 {{'warp.await' op waits for an item before it is copied}}
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      warp.release %s : !warp.slot<64x64xbf16>
      // expected-note@+1 {{copied here}}
      warp.copy_async %v[%x, %h] to %r[%i] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_overwritten_before_awaited(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_overwritten_before_awaited blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      %next = arith.addi %i, %c3 : index
      // expected-error@+1 {{'warp.copy_async' op overwrites a slot that is not yet released}}
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
      // expected-note@+1 {{released here}}
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_overwritten_before_released(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_overwritten_before_released blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      %next = arith.addi %i, %c2 : index
      // expected-error@+1 {{'warp.copy_async' op overwrites a slot that is not yet released}}
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
      // expected-note@+1 {{released here}}
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_no_barrier_same_iteration(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_no_barrier_same_iteration blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      %next = arith.addi %i, %c2 : index
      // expected-note@+1 {{released here}}
      warp.release %s : !warp.slot<64x64xbf16>
      // expected-error@+1 {{'warp.copy_async' op overwrites a released slot that other warps may still read: no warp.await or warp.copy in between}}
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_no_barrier_next_iteration(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_no_barrier_next_iteration blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %next = arith.addi %i, %c1 : index
      // expected-error@+1 {{'warp.copy_async' op overwrites a released slot that other warps may still read: no warp.await or warp.copy in between}}
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      // expected-note@+1 {{released here}}
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

// Two stages: the next item is copied right after the await, whose barrier
// follows the release of the item before.
func.func @w3_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_good blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      %next = arith.addi %i, %c1 : index
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w4_too_small(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w4_too_small blocks(%x, %h, %b) in (%n, %n, %n) warps(4) shared(16384) {
    %a = warp.alloc at 0 : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.ring' op ends at byte 24576 of a kernel with 16384 bytes of shared memory}}
    %r = warp.ring at 8192 : !warp.ring<2, 64x64xbf16>
  }
  return
}

// -----

func.func @w4_overlap(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w4_overlap blocks(%x, %h, %b) in (%n, %n, %n) warps(4) shared(32768) {
    // expected-note@+1 {{placed here}}
    %a = warp.alloc at 0 : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.ring' op overlaps memory up to byte 8192, starts at byte 4096}}
    %r = warp.ring at 4096 : !warp.ring<2, 64x64xbf16>
  }
  return
}

// -----

func.func @w4_not_placed(%n: index) {
  // expected-note@+1 {{the kernel}}
  warp.kernel @w4_not_placed blocks(%x, %h, %b) in (%n, %n, %n) warps(4) shared(16384) {
    // expected-error@+1 {{'warp.alloc' op has no place in a kernel whose memory is placed}}
    %a = warp.alloc : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @w3_barrier_under_a_vote(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %zero: f32, %c: i1) {
  warp.kernel @w3_barrier_under_a_vote blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    %m = warp.splat %c : !warp.frag<64x1xi1, acc, 4>
    // expected-note@+1 {{the vote}}
    %any = warp.any %m : !warp.frag<64x1xi1, acc, 4>
    %both = arith.ori %any, %c : i1
    scf.if %both {
      // expected-error@+1 {{'warp.copy' op stands where some warps may not come, as they vote for themselves}}
      warp.copy %v[%x, %h] to %s : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @w3_barrier_under_a_vote_of_before(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_barrier_under_a_vote_of_before blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    %m = warp.splat %c : !warp.frag<64x1xi1, acc, 4>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%before = %c) -> i1 {
      scf.if %before {
        // expected-error@+1 {{'warp.copy' op stands where some warps may not come, as they vote for themselves}}
        warp.copy %v[%x, %h] to %s : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
      }
      // expected-note@+1 {{the vote}}
      %any = warp.any %m : !warp.frag<64x1xi1, acc, 4>
      scf.yield %any : i1
    }
  }
  return
}

// -----

func.func @w3_loop_under_a_vote(%n: index, %c: i1) {
  %c1 = arith.constant 1 : index
  warp.kernel @w3_loop_under_a_vote blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %m = warp.splat %c : !warp.frag<64x1xi1, acc, 4>
    %any = warp.any %m : !warp.frag<64x1xi1, acc, 4>
    %to = arith.index_castui %any : i1 to index
    // expected-error@+1 {{'scf.for' op depends on a vote of the warps, only scf.if may}}
    scf.for %i = %x to %to step %c1 {
    }
  }
  return
}

// -----

func.func @w2_store_via_operand_of_all(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>, %o: !warp.frag<64x64xbf16, acc, 4>) {
  warp.kernel @w2_store_via_operand_of_all blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    warp.copy %v[%x, %h] to %s : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
    // expected-note@+1 {{read here}}
    %1 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.store' op goes via a slot that all warps read}}
    warp.store %o, %v[%x, %h] via %s : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @w2_store_via_operand_in_flight(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>, %o: !warp.frag<64x64xbf16, acc, 4>) {
  warp.kernel @w2_store_via_operand_in_flight blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %k = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    warp.copy %v[%x, %h] to %s : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    warp.copy %v[%x, %h] to %k : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    // expected-note@+1 {{read here}}
    %p = warp.mma_async wgmma %s, %k, %acc : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.store' op goes via a slot that a product in flight still reads}}
    warp.store %o, %v[%x, %h] via %s : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
    %1 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @w3_store_via_under_a_vote(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %c: !warp.frag<64x1xi1, acc, 4>, %o: !warp.frag<64x64xbf16, acc, 4>) {
  warp.kernel @w3_store_via_under_a_vote blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-note@+1 {{the vote}}
    %any = warp.any %c : !warp.frag<64x1xi1, acc, 4>
    scf.if %any {
      // expected-error@+1 {{'warp.store' op stands where some warps may not come, as they vote for themselves}}
      warp.store %o, %v[%x, %h] via %s : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
    }
  }
  return
}
