// What the atoms of products and copies accept (lib/Dialect/Warp/IR/Atoms.cpp).
// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mma_c1_f32(%n: index, %a: !warp.frag<64x64xf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c1_f32 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf16>
    // expected-error@+1 {{'warp.mma' op of fma_f32 has operands of 'f16', expected f32}}
    %0 = warp.mma fma_f32 %a, %s, %acc : !warp.frag<64x64xf16, a, 4>, !warp.slot<64x64xf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c1_f16(%n: index, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c1_f16 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf32, panels<128>>
    // expected-error@+1 {{'warp.mma' op of wgmma has operands of 'f32', expected f16 or bf16}}
    %0 = warp.mma wgmma %s, %s, %acc : !warp.slot<64x64xf32, panels<128>>, !warp.slot<64x64xf32, panels<128>>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c2_panels(%n: index, %a: !warp.frag<64x64xf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c2_panels blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf16, panels<128>>
    // expected-error@+1 {{'warp.mma' op of mma_sync reads '!warp.slot<64x64xf16, panels<128>>', expected no panels}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xf16, a, 4>, !warp.slot<64x64xf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c2_no_panels(%n: index, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c2_no_panels blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s0 = warp.alloc : !warp.slot<64x64xbf16>
    %s1 = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    // expected-error@+1 {{'warp.mma' op of wgmma reads '!warp.slot<64x64xbf16>', expected panels}}
    %0 = warp.mma wgmma %s0, %s1, %acc : !warp.slot<64x64xbf16>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c3_two_warps(%n: index, %acc: !warp.frag<64x64xf32, acc, 2>) {
  warp.kernel @mma_c3_two_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(2) {
    %s = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    // expected-error@+1 {{'warp.mma' op of wgmma is over 2 warps, expected groups of 4}}
    %0 = warp.mma wgmma %s, %s, %acc : !warp.slot<64x64xbf16, panels<128>>, !warp.slot<64x64xbf16, panels<128>>, !warp.frag<64x64xf32, acc, 2>
  }
  return
}

// -----

func.func @mma_c4_depth(%n: index, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c4_depth blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<8x64xbf16>
    // expected-error@+1 {{'warp.mma' op of mma_sync sums 8 products, expected a multiple of 16}}
    %0 = warp.mma mma_sync %s, %s, %acc transpose_a : !warp.slot<8x64xbf16>, !warp.slot<8x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c4_columns(%n: index, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x512xf32, acc, 4>) {
  warp.kernel @mma_c4_columns blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x512xbf16, panels<128>>
    // expected-error@+1 {{'warp.mma' op of wgmma has 512 columns, expected at most 256}}
    %0 = warp.mma wgmma %a, %s, %acc : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x512xbf16, panels<128>>, !warp.frag<64x512xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c5_ieee(%n: index, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c5_ieee blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{'warp.mma' op of fma_f32 transposes operand a, expected a slot of MxK}}
    %0 = warp.mma fma_f32 %s, %s, %acc transpose_a : !warp.slot<64x64xf32>, !warp.slot<64x64xf32>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_c5_registers(%n: index, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_c5_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.mma' op transposes an operand a in registers, expected a slot}}
    %0 = warp.mma mma_sync %a, %s, %acc transpose_a : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_async_c1(%n: index, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_async_c1 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.mma_async' op is of mma_sync, which cannot be waited for later: expected wgmma}}
    %p = warp.mma_async mma_sync %a, %s, %acc : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
    %0 = warp.wait %p : !warp.pending<64x64xf32, acc, 4>
  }
  return
}

// -----

// Texts of before atoms had names.
func.func @mma_without_atom(%n: index, %a: !warp.frag<64x64xf32, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_without_atom blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{expected the instruction of the product before its operands: mma_sync, mma_tf32, fma_f32 or wgmma}}
    %0 = warp.mma %a, %s, %acc : !warp.frag<64x64xf32, a, 4>, !warp.slot<64x64xf32>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_unknown_atom(%n: index, %a: !warp.frag<64x64xf32, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_unknown_atom blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{mma_sync, mma_tf32, fma_f32 or wgmma, got ieee}}
    %0 = warp.mma ieee %a, %s, %acc : !warp.frag<64x64xf32, a, 4>, !warp.slot<64x64xf32>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// -----

func.func @copy_async_c1_role(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c1_role blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.copy_async' op is by cp_async in a role, expected tma}}
      warp.copy_async %v[%x, %h] to %r[%c0] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @copy_async_c1_no_role(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c1_no_role blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %r = warp.ring : !warp.ring<1, 64x64xbf16, panels<128>>
    // expected-error@+1 {{'warp.copy_async' op is by tma without a role, expected cp_async}}
    warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16, panels<128>>
  }
  return
}

// -----

func.func @copy_async_c2_panels(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c2_panels blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16>
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.copy_async' op is by tma: a slot has no panels, got 'memref<?x?xbf16, strided<[?, 1]>>' and '!warp.slot<64x64xbf16>'}}
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16> -> !warp.slot<64x64xbf16>
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @copy_async_c2_rows(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c2_rows blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 512x16xbf16, panels<32>>
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.copy_async' op is by tma: a tile has more rows than one copy of a tensor map}}
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 512x16xbf16, panels<32>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 512x16xbf16, panels<32>> -> !warp.slot<512x16xbf16, panels<32>>
      warp.release %s : !warp.slot<512x16xbf16, panels<32>>
    }
  }
  return
}

// -----

func.func @copy_async_c2_row(%n: index, %v: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c2_row blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 1x512xf32>
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.copy_async' op is by tma: a row has more columns than one copy of a tensor map}}
      warp.copy_async %v[%x] to %r[%c0] by tma : memref<?xf32>, !warp.ring<1, 1x512xf32>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 1x512xf32> -> !warp.slot<1x512xf32>
      warp.release %s : !warp.slot<1x512xf32>
    }
  }
  return
}

// -----

func.func @copy_async_c2_rank(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %w: memref<2x2x2x64x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @copy_async_c2_rank blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      // expected-error@+1 {{'warp.copy_async' op is by tma: a view has more dimensions than a tensor map}}
      warp.copy_async %w[%x, %x, %x, %x, %x] to %r[%c0] by tma : memref<2x2x2x64x64xbf16>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
    }
  }
  return
}

// -----

func.func @store_c1_cp_async(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %f: !warp.frag<64x64xbf16, acc, 4>) {
  %c0 = arith.constant 0 : index
  warp.kernel @store_c1_cp_async blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.store' op is by cp_async, which only loads: expected plain or tma}}
      warp.store %f, %v[%x, %h] by cp_async : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>
    }
  }
  return
}

// -----

func.func @store_c1_slot(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %f: !warp.frag<64x64xbf16, acc, 4>) {
  %c0 = arith.constant 0 : index
  warp.kernel @store_c1_slot blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.store' op is by tma and goes via no slot, expected plain}}
      warp.store %f, %v[%x, %h] by tma : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>
    }
  }
  return
}

// -----

func.func @store_c1_role(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %f: !warp.frag<64x64xbf16, acc, 4>) {
  warp.kernel @store_c1_role blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16, panels<128>>
    // expected-error@+1 {{'warp.store' op is by tma without a role, expected plain}}
    warp.store %f, %v[%x, %h] via %s by tma : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16, panels<128>>
  }
  return
}

// -----

func.func @store_c2(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %f: !warp.frag<64x64xbf16, acc, 4>) {
  %c0 = arith.constant 0 : index
  warp.kernel @store_c2 blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x64xbf16, panels<128>>
    %stage = warp.alloc : !warp.slot<64x64xbf16>
    warp.role @load copy warps(4) {
      warp.copy_async %v[%x, %h] to %r[%c0] by tma : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<1, 64x64xbf16, panels<128>>
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !warp.ring<1, 64x64xbf16, panels<128>> -> !warp.slot<64x64xbf16, panels<128>>
      warp.release %s : !warp.slot<64x64xbf16, panels<128>>
      // expected-error@+1 {{'warp.store' op is by tma: a slot has no panels}}
      warp.store %f, %v[%x, %h] via %stage by tma : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
    }
  }
  return
}

// -----

func.func @mma_c7_atom(%n: index, %acc: !warp.frag<64x64xf32, acc, 8>) {
  warp.kernel @mma_c7_atom blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %s = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{'warp.mma' op of fma_f32 has an accumulator of '!warp.frag<64x64xf32, acc, 8>': its rows do not spread over the warps}}
    %0 = warp.mma fma_f32 %s, %s, %acc : !warp.slot<64x64xf32>, !warp.slot<64x64xf32>, !warp.frag<64x64xf32, acc, 8>
  }
  return
}

// -----

func.func @mma_c7_columns(%n: index, %acc: !warp.frag<64x16xf32, acc, 8>) {
  warp.kernel @mma_c7_columns blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %a = warp.alloc : !warp.slot<64x64xf16>
    %s = warp.alloc : !warp.slot<64x16xf16>
    // expected-error@+1 {{'warp.mma' op of mma_sync has an accumulator of '!warp.frag<64x16xf32, acc, 8>': a group of warps has 8 columns, expected a multiple of 16}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.slot<64x64xf16>, !warp.slot<64x16xf16>, !warp.frag<64x16xf32, acc, 8>
  }
  return
}

// -----

func.func @mma_c7_panels(%n: index, %acc: !warp.frag<64x192xf32, acc, 8>) {
  warp.kernel @mma_c7_panels blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %a = warp.alloc : !warp.slot<64x64xf16, panels<128>>
    %s = warp.alloc : !warp.slot<64x192xf16, panels<128>>
    // expected-error@+1 {{'warp.mma' op of wgmma has an accumulator of '!warp.frag<64x192xf32, acc, 8>': got parts of 96 columns, expected whole panels or parts of one of 64}}
    %0 = warp.mma wgmma %a, %s, %acc : !warp.slot<64x64xf16, panels<128>>, !warp.slot<64x192xf16, panels<128>>, !warp.frag<64x192xf32, acc, 8>
  }
  return
}
