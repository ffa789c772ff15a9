// RUN: attn-opt %s -split-input-file -verify-diagnostics

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// The item after the one that is awaited.
func.func @another_item(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @another_item blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        %m = arith.addi %kn, %c1 : index
        // expected-note@+1 {{tested here}}
        %t = warp.test %V[%m] : !ring
        %kt = warp.await %K[%kn] : !ring -> !t
        warp.release %kt : !t
        // expected-error@+1 {{'warp.await' op relies on a test of another item}}
        %vt = warp.await %V[%kn] unless %t : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// The keys are there, the values need not be.
func.func @another_ring(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @another_ring blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        // expected-note@+1 {{tested here}}
        %t = warp.test %K[%kn] : !ring
        %kt = warp.await %K[%kn] : !ring -> !t
        warp.release %kt : !t
        // expected-error@+1 {{'warp.await' op relies on a test of another ring}}
        %vt = warp.await %V[%kn] unless %t : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// The item after the next: the answer may be of the one two before.
func.func @not_the_next(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @not_the_next blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %m : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        %m = arith.addi %kn, %c1 : index
        // expected-note@+1 {{tested here}}
        %t = warp.test %V[%m] : !ring
        %kt = warp.await %K[%kn] : !ring -> !t
        warp.release %kt : !t
        // expected-note@+1 {{awaited here}}
        %v0 = warp.await %V[%kn] : !ring -> !t
        warp.release %v0 : !t
        // expected-error@+1 {{'warp.await' op is not the next await of its ring after the test that it relies on}}
        %vt = warp.await %V[%m] unless %t : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %m : index
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// Nobody asked before the first iteration.
func.func @carried_from_true(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @carried_from_true blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %a = %true) -> (index, i1) {
        // expected-error@+1 {{'warp.await' op relies on what is carried by a loop, expected false at first and then what a warp.test in the body says}}
        %kt = warp.await %K[%kn] unless %a : !ring -> !t
        warp.release %kt : !t
        %vt = warp.await %V[%kn] : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        %t = warp.test %K[%kn1] : !ring
        scf.yield %kn1, %t : index, i1
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// The item of this iteration instead of the next.
func.func @carried_of_this_iteration(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @carried_of_this_iteration blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %a = %false) -> (index, i1) {
        // expected-error@+1 {{'warp.await' op relies on a test of another item}}
        %kt = warp.await %K[%kn] unless %a : !ring -> !t
        warp.release %kt : !t
        %vt = warp.await %V[%kn] : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        // expected-note@+1 {{tested here}}
        %t = warp.test %K[%kn] : !ring
        scf.yield %kn1, %t : index, i1
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// Asked before this iteration's item is awaited: the answer may be of the one
// two before.
func.func @carried_but_awaited(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @carried_but_awaited blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %a = %false) -> (index, i1) {
        %m = arith.addi %kn, %c1 : index
        // expected-note@+1 {{tested here}}
        %t = warp.test %K[%m] : !ring
        // expected-error@+2 {{'warp.await' op is not the next await of its ring after the test that it relies on}}
        // expected-note@+1 {{awaited here}}
        %kt = warp.await %K[%kn] unless %a : !ring -> !t
        warp.release %kt : !t
        %vt = warp.await %V[%kn] : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1, %t : index, i1
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// Any condition.
func.func @no_test(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @no_test blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        warp.release %kt : !t
        // expected-error@+1 {{'warp.await' op relies on a condition that no warp.test gave}}
        %vt = warp.await %V[%kn] unless %there : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// What decides is the same in all warps.
func.func @inside_a_branch(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @inside_a_branch blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        // expected-note@+1 {{the test}}
        %t = warp.test %V[%kn] : !ring
        // expected-error@+1 {{'scf.if' op uses the answer of a test, which warps get differently, expected awaits only}}
        scf.if %t {
        }
        %kt = warp.await %K[%kn] : !ring -> !t
        warp.release %kt : !t
        %vt = warp.await %V[%kn] : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// The loop gives the answer on.
func.func @after_the_loop(%n: index, %k: !view, %there: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %false = arith.constant false
  warp.kernel @after_the_loop blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %a = %false) -> (index, i1) {
        %kt = warp.await %K[%kn] unless %a : !ring -> !t
        warp.release %kt : !t
        %vt = warp.await %V[%kn] : !ring -> !t
        warp.release %vt : !t
        %kn1 = arith.addi %kn, %c1 : index
        // expected-note@+1 {{the test}}
        %t = warp.test %K[%kn1] : !ring
        scf.yield %kn1, %t : index, i1
      }
      // expected-error@+1 {{'scf.if' op uses the answer of a test, which warps get differently, expected awaits only}}
      scf.if %r#1 {
      }
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// A ring that the role fills for itself is not asked about.
func.func @own_ring(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @own_ring blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %D = warp.ring fills(@softmax) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by tma : !view, !ring
    }
    warp.role @softmax compute warps(4) {
      %kt = warp.await %K[%c0] : !ring -> !t
      warp.release %kt : !t
      %z = warp.splat %zero : !warp.frag<64x128xf32, acc, 4>
      %zb = warp.cast truncf %z : !warp.frag<64x128xf32, acc, 4> to !warp.frag<64x128xbf16, acc, 4>
      warp.store_frag %zb to %D[%c0] : !warp.frag<64x128xbf16, acc, 4>, !ring
      // expected-error@+1 {{'warp.test' op expected a ring that its role drains and another fills}}
      %t = warp.test %D[%c0] : !ring
      %d = warp.await %D[%c0] : !ring -> !t
      warp.release %d : !t
    }
  }
  return
}

// -----

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>

// Warps without roles wait for their own copies.
func.func @without_roles(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @without_roles blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %K = warp.ring : !ring
    warp.copy_async %k[%b, %h, %x, %c0] to %K[%c0] by cp_async : !view, !ring
    // expected-error@+1 {{'warp.test' op expected a ring that its role drains and another fills}}
    %t = warp.test %K[%c0] : !ring
    %kt = warp.await %K[%c0] : !ring -> !t
    warp.release %kt : !t
  }
  return
}
