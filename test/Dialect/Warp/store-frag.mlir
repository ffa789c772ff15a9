// RUN: attn-opt %s --verify-roundtrip -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @slots
func.func @slots(%n: index, %f: f32, %out: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %T = warp.alloc : !warp.slot<32x64xbf16>
    %V = warp.alloc : !warp.slot<32x64xbf16>
    %s = warp.splat %f : !warp.frag<64x64xf32, acc, 4>
    %h = warp.cast truncf %s : !warp.frag<64x64xf32, acc, 4> to !warp.frag<64x64xbf16, acc, 4>
    // CHECK: warp.store_frag %{{.*}} to %{{.*}} : <64x64xbf16, acc, 4>, !warp.slot<64x64xbf16>
    warp.store_frag %h to %S : !warp.frag<64x64xbf16, acc, 4>, !warp.slot<64x64xbf16>
    // CHECK: warp.mma mma_sync %{{.*}}, %{{.*}}, %{{.*}} transpose_a : !warp.slot<32x64xbf16>, <32x64xbf16>, <64x64xf32, acc, 4>
    %o = warp.mma mma_sync %T, %V, %s transpose_a : !warp.slot<32x64xbf16>, !warp.slot<32x64xbf16>, !warp.frag<64x64xf32, acc, 4>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] accumulate :
    warp.store %o, %out[%c0, %c0] accumulate : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}

// -----

func.func @other_shape(%n: index, %f: bf16) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x32xbf16>
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store_frag' op stores '!warp.frag<64x64xbf16, acc, 4>' to '!warp.slot<64x32xbf16>', expected the same shape and elements}}
    warp.store_frag %h to %S : !warp.frag<64x64xbf16, acc, 4>, !warp.slot<64x32xbf16>
  }
  return
}

// -----

func.func @item_of_a_slot(%n: index, %f: bf16) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store_frag' op stores to an item of a slot, which has none}}
    warp.store_frag %h to %S[%x] : !warp.frag<64x64xbf16, acc, 4>, !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @item_without_roles(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring : !warp.ring<1, 64x64xbf16>
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store_frag' op fills an item in a kernel without roles, expected a slot}}
    warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16>
  }
  return
}

// -----

func.func @in_a_turn(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<1, 128x64xbf16, panels<128>>
    warp.role @math compute warps(8) {
      %h = warp.splat %f : !warp.frag<128x64xbf16, acc, 8>
      warp.turn {
        // expected-error@+1 {{'warp.store_frag' op fills an item in a turn}}
        warp.store_frag %h to %S[%c0] : !warp.frag<128x64xbf16, acc, 8>, !warp.ring<1, 128x64xbf16, panels<128>>
        warp.yield
      }
      %s = warp.await %S[%c0] : !warp.ring<1, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
      warp.release %s : !warp.slot<128x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @one_slot_for_two(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      // expected-note@+1 {{filled here}}
      warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.store_frag' op is later by 1 than an item that is still held, the ring has 1 slot}}
      warp.store_frag %h to %S[%c1] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16, panels<128>>
      %s = warp.await %S[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
      %t = warp.await %S[%c1] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %t : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @never_awaited(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      // expected-error@+1 {{'warp.store_frag' op fills an item that its own role does not await}}
      warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

// A loop may be ahead of what it reads, by as many items in each iteration.
func.func @ahead(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %next = arith.addi %j, %c1 : index
        warp.store_frag %h to %S[%next] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
        %s = warp.await %S[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        scf.yield %next : index
      }
      %t = warp.await %S[%e] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %t : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @too_far_ahead(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      // expected-note@+1 {{filled here}}
      warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16, panels<128>>
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %next = arith.addi %j, %c1 : index
        // expected-error@+1 {{'warp.store_frag' op is later by 1 than an item that is still held, the ring has 1 slot}}
        warp.store_frag %h to %S[%next] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<1, 64x64xbf16, panels<128>>
        %s = warp.await %S[%j] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        scf.yield %next : index
      }
      %t = warp.await %S[%e] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %t : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @falls_behind(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      // expected-error@+1 {{'scf.for' op fills 1 item of a ring of its own role in an iteration, awaits 0 and releases 0, expected as many}}
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %next = arith.addi %j, %c1 : index
        warp.store_frag %h to %S[%j] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
        scf.yield %next : index
      }
    }
  }
  return
}

// -----

// What is filled first is the item that the loop is ahead by, not another.
func.func @another_number(%n: index, %f: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.ring fills(@math) drains(@math) : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @math compute warps(4) {
      %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
      warp.store_frag %h to %S[%c0] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %next = arith.addi %j, %c1 : index
        %wrong = arith.addi %j, %c2 : index
        // expected-error@+1 {{'warp.store_frag' op is out of order: the items of a ring are numbered 0, 1, 2, … as they are used, carried through loops}}
        warp.store_frag %h to %S[%wrong] : !warp.frag<64x64xbf16, acc, 4>, !warp.ring<2, 64x64xbf16, panels<128>>
        %s = warp.await %S[%j] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
        warp.release %s : !warp.slot<64x64xbf16, panels<128>>
        scf.yield %next : index
      }
      %t = warp.await %S[%e] : !warp.ring<2, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %t : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @drains_what_it_copies(%n: index) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.ring' op is drained by @load, which fills it and does not compute}}
    %S = warp.ring fills(@load) drains(@load) : !warp.ring<1, 64x64xbf16>
    warp.role @load copy warps(4) {
    }
  }
  return
}

// -----

func.func @transposed_in_registers(%n: index, %a: !warp.frag<64x64xbf16, a, 4>) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %f = arith.constant 0.0 : f32
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %s = warp.splat %f : !warp.frag<64x64xf32, acc, 4>
    // expected-error@+1 {{'warp.mma' op transposes an operand a in registers, expected a slot}}
    %o = warp.mma mma_sync %a, %S, %s transpose_a : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @accumulates_bf16(%n: index, %f: bf16, %out: memref<?x64xbf16>) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store' op accumulates elements of 'bf16', expected f32}}
    warp.store %h, %out[%x, %x] accumulate : !warp.frag<64x64xbf16, acc, 4>, memref<?x64xbf16>
  }
  return
}

// -----

// Warps that have different columns, of whole patterns of the swizzle or not.
func.func @columns(%n: index, %f: bf16) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 8>
    warp.store_frag %h to %S : !warp.frag<64x64xbf16, acc, 8>, !warp.slot<64x64xbf16>
    %T = warp.alloc : !warp.slot<64x96xbf16>
    %t = warp.splat %f : !warp.frag<64x96xbf16, acc, 8>
    // expected-error@+1 {{'warp.store_frag' op stores '!warp.frag<64x96xbf16, acc, 8>' to '!warp.slot<64x96xbf16>', expected rows that spread over the warps}}
    warp.store_frag %t to %T : !warp.frag<64x96xbf16, acc, 8>, !warp.slot<64x96xbf16>
  }
  return
}

// -----

func.func @load_columns(%n: index) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %S = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{'warp.load_frag' op gives '!warp.frag<64x64xf32, acc, 8>', expected rows that spread over the warps}}
    %h = warp.load_frag %S : !warp.slot<64x64xf32> -> !warp.frag<64x64xf32, acc, 8>
  }
  return
}

// -----

func.func @store_columns(%n: index, %out: memref<?x64xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %S = warp.alloc : !warp.slot<64x64xf32>
    %h = warp.splat %f : !warp.frag<64x64xf32, acc, 8>
    // expected-error@+1 {{'warp.store' op goes via a slot: '!warp.frag<64x64xf32, acc, 8>', expected rows that spread over the warps}}
    warp.store %h, %out[%c0, %c0] via %S : !warp.frag<64x64xf32, acc, 8>, memref<?x64xf32>, !warp.slot<64x64xf32>
  }
  return
}

// -----

// CHECK-LABEL: @packed(
func.func @packed(%n: index, %out: memref<?x4096xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %h = warp.splat %f : !warp.frag<64x64xf32, acc, 8>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] packed :
    warp.store %h, %out[%x, %c0] packed : !warp.frag<64x64xf32, acc, 8>, memref<?x4096xf32>
    // CHECK: warp.load %{{.*}}[%{{.*}}] packed : memref<?x4096xf32> -> <64x64xf32, acc, 8>
    %s = warp.load %out[%x, %c0] packed : memref<?x4096xf32> -> !warp.frag<64x64xf32, acc, 8>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] accumulate packed :
    warp.store %s, %out[%x, %c0] accumulate packed : !warp.frag<64x64xf32, acc, 8>, memref<?x4096xf32>
  }
  return
}

// -----

func.func @packed_into_rows(%n: index, %out: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    // expected-error@+1 {{'warp.load' op packs '!warp.frag<64x64xf32, acc, 8>' in the innermost dimension of 'memref<?x64xf32>', expected a tile of as many elements of f32}}
    %s = warp.load %out[%x, %c0] packed : memref<?x64xf32> -> !warp.frag<64x64xf32, acc, 8>
  }
  return
}

// -----

func.func @columns_of_panels(%n: index, %f: bf16) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(8) {
    %S = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    %h = warp.splat %f : !warp.frag<64x64xbf16, acc, 8>
    // expected-error@+1 {{'warp.store_frag' op stores '!warp.frag<64x64xbf16, acc, 8>' to '!warp.slot<64x64xbf16, panels<128>>', expected rows that spread over the warps}}
    warp.store_frag %h to %S : !warp.frag<64x64xbf16, acc, 8>, !warp.slot<64x64xbf16, panels<128>>
  }
  return
}
