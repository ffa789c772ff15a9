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

// -----

// A group goes through [0, end) in two loops, and it depends on it where the
// second begins: to the producer they are one.
func.func @w3_groups_between_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_groups_between_good blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
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
      %most = arith.maxsi %group, %c0 : index
      %mid = arith.minsi %most, %end : index
      %a = scf.for %i = %c0 to %mid step %c1 iter_args(%j = %c0) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %own = scf.for %i = %mid to %end step %c1 iter_args(%j = %a) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// The first loop may end after the second.
func.func @w3_groups_between_above(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_groups_between_above blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
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
      %most = arith.maxsi %group, %c0 : index
      %a = scf.for %i = %c0 to %most step %c1 iter_args(%j = %c0) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op is not known to end no sooner than it starts, expected bounds in order, by minima and maxima}}
      %own = scf.for %i = %most to %end step %c1 iter_args(%j = %a) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

func.func @w3_groups_between_gap(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_groups_between_gap blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
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
      %most = arith.maxsi %group, %c0 : index
      %mid = arith.minsi %most, %end : index
      %late = arith.addi %mid, %c1 : index
      // expected-error@+1 {{'scf.for' op ends at another block than the next of its group's loops starts at}}
      %a = scf.for %i = %c0 to %mid step %c1 iter_args(%j = %c0) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %own = scf.for %i = %late to %end step %c1 iter_args(%j = %a) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// It is not the same to the producer which of the loops has a block.
func.func @w3_groups_between_order(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_groups_between_order blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    %k = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        warp.copy_async %v[%x, %h] to %k[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      %most = arith.maxsi %group, %c0 : index
      %mid = arith.minsi %most, %end : index
      // expected-note@+1 {{the loop before it}}
      %a = scf.for %i = %c0 to %mid step %c1 iter_args(%j = %c0) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %ks = warp.await %k[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %kf = warp.load_frag %ks : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %ks : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op uses other items for a block, or in another order, than the loop before it, expected the same: it depends on the group which blocks are whose}}
      %own = scf.for %i = %mid to %end step %c1 iter_args(%j = %a) -> (index) {
        %ks = warp.await %k[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %kf = warp.load_frag %ks : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %ks : !warp.slot<128x64xbf16, panels<128>>
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %rf = warp.load_frag %rs : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        %rs = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %rs : !warp.slot<128x64xbf16, panels<128>>
        %ks = warp.await %k[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %ks : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// -----

// Behind its own blocks a group takes two turns, so that it gives back what it
// passes over two turns after the others.
func.func @w3_groups_turns_between(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @w3_groups_turns_between blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
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
      // expected-note@+1 {{the group's own blocks, with 1 turn in 1 block}}
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        warp.turn {
          warp.yield
        }
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      warp.turn {
        warp.yield
      }
      // expected-error@+1 {{'warp.turn' op is one of 2 between a group's own blocks and those that it passes over, expected no more than in a block}}
      warp.turn {
        warp.yield
      }
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        warp.turn {
          warp.yield
        }
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

// Two blocks begin before the loops: a group that passes over the first ones
// would give them back two turns after the others.
func.func @w3_groups_two_blocks_beside(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @w3_groups_two_blocks_beside blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
      warp.copy_async %v[%x, %h] to %r[%c1] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
      %r0 = scf.for %i = %c2 to %n step %c1 iter_args(%j = %c2) -> (index) {
        warp.copy_async %v[%x, %h] to %r[%j] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %one = arith.maxsi %group, %c2 : index
      %end = arith.minsi %one, %n : index
      %s0 = warp.await %r[%c0] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
      warp.release %s0 : !warp.slot<128x64xbf16, panels<128>>
      %s1 = warp.await %r[%c1] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
      warp.release %s1 : !warp.slot<128x64xbf16, panels<128>>
      %own = scf.for %i = %c2 to %end step %c1 iter_args(%j = %c2) -> (index) {
        warp.turn {
          warp.yield
        }
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %f = warp.load_frag %s : !warp.slot<128x64xbf16, panels<128>> -> !warp.frag<128x64xbf16, a, 8>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      // expected-error@+1 {{'scf.for' op stands beside 2 uses of a ring outside of loops, expected at most one where blocks take turns}}
      %after = scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        warp.turn {
          warp.yield
        }
        %s = warp.await %r[%j] : !warp.ring<2, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        warp.release %s : !warp.slot<128x64xbf16, panels<128>>
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}
