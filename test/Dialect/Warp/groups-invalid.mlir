// RUN: attn-opt %s -split-input-file -verify-diagnostics

// A group goes through [first, end) and passes over the rest of [0, n).
func.func @w3_groups_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_good blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %last = arith.subi %n, %c1 : index
      %least = arith.maxsi %last, %c0 : index
      %most = arith.maxsi %group, %c0 : index
      %first = arith.minsi %most, %least : index
      %second = arith.addi %first, %c1 : index
      %one = arith.maxsi %c2, %second : index
      %end = arith.minsi %one, %n : index
      %before = scf.for %i = %c0 to %first step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %own = scf.for %i = %first to %end step %c1 iter_args(%j = %before) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// The group's number may be below 0, as far as anybody knows.
func.func @w3_groups_first_below(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_first_below blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %last = arith.subi %n, %c1 : index
      %least = arith.maxsi %last, %c0 : index
      %first = arith.minsi %group, %least : index
      %second = arith.addi %first, %c1 : index
      %one = arith.maxsi %c2, %second : index
      %end = arith.minsi %one, %n : index
      // expected-error@+1 {{'scf.for' op has bounds that are not known to be in order, expected lo <= first < end <= hi, by minima and maxima, for the blocks [lo, hi) of all groups and [first, end) of its own}}
      %before = scf.for %i = %c0 to %first step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-note@+1 {{the group's own blocks begin here}}
      %own = scf.for %i = %first to %end step %c1 iter_args(%j = %before) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// A group may have no block of its own.
func.func @w3_groups_empty(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_empty blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %end = arith.minsi %group, %n : index
      // expected-note@+1 {{the group's own blocks begin here}}
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op has bounds that are not known to be in order, expected lo <= first < end <= hi, by minima and maxima, for the blocks [lo, hi) of all groups and [first, end) of its own}}
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// Nothing says that the end is not after that of all.
func.func @w3_groups_end_after(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_end_after blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %end = arith.maxsi %group, %c1 : index
      // expected-note@+1 {{the group's own blocks begin here}}
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op has bounds that are not known to be in order, expected lo <= first < end <= hi, by minima and maxima, for the blocks [lo, hi) of all groups and [first, end) of its own}}
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_groups_gap(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_gap blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      %gap = arith.addi %end, %c1 : index
      // expected-note@+1 {{the group's own blocks begin here}}
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op passes over blocks from another on than the end of its group's}}
      %after = scf.for %i = %gap to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_groups_overlap(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_overlap blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %last = arith.subi %n, %c1 : index
      %least = arith.maxsi %last, %c0 : index
      %most = arith.maxsi %group, %c0 : index
      %first = arith.minsi %most, %least : index
      %second = arith.addi %first, %c1 : index
      %one = arith.maxsi %c2, %second : index
      %end = arith.minsi %one, %n : index
      %late = arith.addi %first, %c1 : index
      // expected-error@+1 {{'scf.for' op passes over blocks up to another than the first of its group}}
      %before = scf.for %i = %c0 to %late step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-note@+1 {{the group's own blocks begin here}}
      %own = scf.for %i = %first to %end step %c1 iter_args(%j = %before) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_groups_nobody_passes(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_nobody_passes blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      // expected-note@+1 {{@load is here}}
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      // expected-error@+1 {{'scf.for' op does not meet its counterpart: @load and @softmax must use the items of the rings between them in the same loops and order}}
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_groups_passed_twice(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_passed_twice blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op passes over blocks a second time}}
      %again = scf.for %i = %end to %n step %c1 iter_args(%j = %after) -> (index) {
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}
