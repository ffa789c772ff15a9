// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @kernel_blocks(%n: index) {
  // expected-error@+1 {{expected three block numbers, got 2}}
  warp.kernel @kernel_blocks blocks(%x, %h) in (%n, %n, %n) warps(4) {
  }
  return
}

// -----

func.func @kernel_registers(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has 256 registers, expected 1 to 255}}
  warp.kernel @kernel_registers blocks(%x, %h, %b) in (%n, %n, %n) warps(4) registers(256) {
  }
  return
}

// -----

func.func @kernel_warps(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has 33 warps, expected 1 to 32}}
  warp.kernel @kernel_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(33) {
  }
  return
}

// -----

func.func @kernel_shared(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has -1 bytes of shared memory, expected 0 or more}}
  warp.kernel @kernel_shared blocks(%x, %h, %b) in (%n, %n, %n) warps(4) shared(-1) {
  }
  return
}

// -----

func.func @kernel_w5(%n: index, %f: f32) {
  // expected-note@+1 {{the kernel}}
  warp.kernel @kernel_w5 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.splat' op makes a fragment over 2 warps in a kernel of 4}}
    %0 = warp.splat %f : !warp.frag<64x64xf32, acc, 2>
  }
  return
}

// -----

func.func @alloc_outside() {
  // expected-error@+1 {{'warp.alloc' op must stand directly in a warp.kernel}}
  %0 = warp.alloc : !warp.slot<64x64xbf16>
  return
}

// -----

func.func @ring_in_branch(%n: index) {
  warp.kernel @ring_in_branch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %true = arith.constant true
    scf.if %true {
      // expected-error@+1 {{'warp.ring' op must stand directly in a warp.kernel}}
      %0 = warp.ring : !warp.ring<2, 64x64xbf16>
    }
  }
  return
}

// -----

func.func @alloc_alignment(%n: index) {
  warp.kernel @alloc_alignment blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.alloc' op is placed at byte 8, expected a multiple of 16 that is not negative}}
    %0 = warp.alloc at 8 : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @copy_rank(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  warp.kernel @copy_rank blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.copy' op got 1 indices for a memref of rank 2}}
    warp.copy %v[%x] to %0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @copy_vector(%n: index, %v: memref<?xbf16>) {
  warp.kernel @copy_vector blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.copy' op got a memref of rank 1, expected at least 2}}
    warp.copy %v[%x] to %0 : memref<?xbf16>, !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @copy_elements(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  warp.kernel @copy_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x64xf16>
    // expected-error@+1 {{'warp.copy' op got elements of 'bf16' in memory and of 'f16' in the tile, expected the same}}
    warp.copy %v[%x, %h] to %0 : memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x64xf16>
  }
  return
}

// -----

func.func @copy_async_stride(%n: index, %v: memref<?x?xbf16, strided<[1, ?]>>) {
  warp.kernel @copy_async_stride blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.ring : !warp.ring<2, 64x64xbf16>
    // expected-error@+1 {{'warp.copy_async' op expects a strided memref with innermost stride 1, got 'memref<?x?xbf16, strided<[1, ?]>>'}}
    warp.copy_async %v[%x, %h] to %0[%x] : memref<?x?xbf16, strided<[1, ?]>>, !warp.ring<2, 64x64xbf16>
  }
  return
}

// -----

func.func @await_type(%n: index) {
  warp.kernel @await_type blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.ring : !warp.ring<2, 64x64xbf16>
    // expected-error@+1 {{'warp.await' op gives a '!warp.slot<32x64xbf16>', the ring holds '!warp.slot<64x64xbf16>'}}
    %1 = warp.await %0[%x] : !warp.ring<2, 64x64xbf16> -> !warp.slot<32x64xbf16>
  }
  return
}

// -----

func.func @release_alloc(%n: index) {
  warp.kernel @release_alloc blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.release' op releases a slot that no warp.await gave}}
    warp.release %0 : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @store_operand(%n: index, %f: !warp.frag<64x64xf32, a, 4>, %v: memref<?x?xf32>) {
  warp.kernel @store_operand blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.store' op expects an 'acc' fragment, got '!warp.frag<64x64xf32, a, 4>'}}
    warp.store %f, %v[%x, %h] : !warp.frag<64x64xf32, a, 4>, memref<?x?xf32>
  }
  return
}

// -----

func.func @store_indices(%n: index, %f: !warp.frag<64x64xf32, acc, 4>, %v: memref<?x?xf32>) {
  warp.kernel @store_indices blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.store' op got 1 indices for a memref of rank 2}}
    warp.store %f, %v[%x] : !warp.frag<64x64xf32, acc, 4>, memref<?x?xf32>
  }
  return
}

// -----

func.func @store_elements(%n: index, %f: !warp.frag<64x64xf32, acc, 4>, %v: memref<?x?xf16>) {
  warp.kernel @store_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.store' op got elements of 'f32' for a memref of 'f16', expected the same}}
    warp.store %f, %v[%x, %h] : !warp.frag<64x64xf32, acc, 4>, memref<?x?xf16>
  }
  return
}

// -----

func.func @store_rows(%n: index, %f: !warp.frag<64x64xf32, acc, 4>, %v: memref<?x?xf32>) {
  warp.kernel @store_rows blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.store' op writes rows of '!warp.frag<64x64xf32, acc, 4>', expected one column}}
    warp.store %f, %v[%x, %h] rows : !warp.frag<64x64xf32, acc, 4>, memref<?x?xf32>
  }
  return
}

// -----

func.func @store_rank(%n: index, %f: !warp.frag<64x1xf32, acc, 4>, %v: memref<?xf32>) {
  warp.kernel @store_rank blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.store' op got a memref of rank 1, expected at least 2}}
    warp.store %f, %v[%x] : !warp.frag<64x1xf32, acc, 4>, memref<?xf32>
  }
  return
}

// -----

func.func @gather_indices(%n: index, %i: i32, %v: memref<?x?xf32>) {
  warp.kernel @gather_indices blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.gather' op got 1 indices for a memref of rank 2}}
    %0 = warp.gather %v[%i] : memref<?x?xf32>, (i32) -> !warp.frag<1x1xf32, acc, 4>
  }
  return
}

// -----

func.func @gather_stretch(%n: index, %i: i32, %c: !warp.frag<1x32xi32, acc, 4>, %v: memref<?x?xf32>) {
  warp.kernel @gather_stretch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.gather' op index 1 is '!warp.frag<1x32xi32, acc, 4>', expected i32 or an i32 fragment that stretches to '!warp.frag<64x64xf32, acc, 4>'}}
    %0 = warp.gather %v[%i, %c] : memref<?x?xf32>, (i32, !warp.frag<1x32xi32, acc, 4>) -> !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_rank(%n: index, %v: memref<64xf32>, %w: memref<64xf32>) {
  warp.kernel @dot_rows_rank blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op expects memrefs of rank 2 or more, got 'memref<64xf32>' and 'memref<64xf32>'}}
    %0 = warp.dot_rows %v, %w[] : memref<64xf32>, memref<64xf32> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_elements(%n: index, %v: memref<?x64xi32>, %w: memref<?x64xi32>) {
  warp.kernel @dot_rows_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op expects elements of f16, bf16 or f32, got}}
    %0 = warp.dot_rows %v, %w[%x] : memref<?x64xi32>, memref<?x64xi32> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_strided(%n: index, %v: memref<?x64xf32, strided<[?, 2]>>, %w: memref<?x64xf32>) {
  warp.kernel @dot_rows_strided blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op expects contiguous rows, got}}
    %0 = warp.dot_rows %v, %w[%x] : memref<?x64xf32, strided<[?, 2]>>, memref<?x64xf32> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_length(%n: index, %v: memref<?x?xf32>, %w: memref<?x?xf32>) {
  warp.kernel @dot_rows_length blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op expects rows of a multiple of 16 bytes, got}}
    %0 = warp.dot_rows %v, %w[%x] : memref<?x?xf32>, memref<?x?xf32> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_two_types(%n: index, %v: memref<?x64xf32>, %w: memref<?x64xf16>) {
  warp.kernel @dot_rows_two_types blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op expects tensors of one rank, element type and length of rows, got}}
    %0 = warp.dot_rows %v, %w[%x] : memref<?x64xf32>, memref<?x64xf16> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_indices(%n: index, %v: memref<?x64xf32>, %w: memref<?x64xf32>) {
  warp.kernel @dot_rows_indices blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op got 2 indices for memrefs of rank 2, expected all but the last}}
    %0 = warp.dot_rows %v, %w[%x, %x] : memref<?x64xf32>, memref<?x64xf32> -> !warp.frag<64x4xf32, acc, 4>
  }
  return
}

// -----

func.func @dot_rows_result(%n: index, %v: memref<?x64xf32>, %w: memref<?x64xf32>) {
  warp.kernel @dot_rows_result blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.dot_rows' op gives '!warp.frag<64x1xf32, acc, 4>', expected Mx4 of f32, 'acc'}}
    %0 = warp.dot_rows %v, %w[%x] : memref<?x64xf32>, memref<?x64xf32> -> !warp.frag<64x1xf32, acc, 4>
  }
  return
}

// -----

func.func @gather_elements(%n: index, %i: i32, %v: memref<?xf32>) {
  warp.kernel @gather_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.gather' op got elements of 'f32' in memory and of 'f16' in the result, expected the same}}
    %0 = warp.gather %v[%i] : memref<?xf32>, (i32) -> !warp.frag<1x1xf16, acc, 4>
  }
  return
}

// -----

func.func @load_frag_transposed(%n: index) {
  warp.kernel @load_frag_transposed blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<32x64xbf16, panels<64>>
    // expected-error@+1 {{'warp.load_frag' op transposes '!warp.slot<32x64xbf16, panels<64>>' to '!warp.frag<64x32xbf16, acc, 4>', expected panels of 64 16-bit elements, and an 'acc' fragment}}
    %1 = warp.load_frag %0 transpose : !warp.slot<32x64xbf16, panels<64>> -> !warp.frag<64x32xbf16, acc, 4>
  }
  return
}

// -----

func.func @load_frag_transposed_shape(%n: index) {
  warp.kernel @load_frag_transposed_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x128xbf16, panels<128>>
    // expected-error@+1 {{'warp.load_frag' op gives '!warp.frag<64x128xbf16, acc, 4>' from '!warp.slot<64x128xbf16, panels<128>>', expected the same shape and elements}}
    %1 = warp.load_frag %0 transpose : !warp.slot<64x128xbf16, panels<128>> -> !warp.frag<64x128xbf16, acc, 4>
  }
  return
}

// -----

func.func @load_frag_shape(%n: index) {
  warp.kernel @load_frag_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %0 = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.load_frag' op gives '!warp.frag<64x32xbf16, a, 4>' from '!warp.slot<64x64xbf16>', expected the same shape and elements}}
    %1 = warp.load_frag %0 : !warp.slot<64x64xbf16> -> !warp.frag<64x32xbf16, a, 4>
  }
  return
}

// -----

func.func @mma_operand_layout(%n: index, %a: !warp.frag<64x64xbf16, acc, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_operand_layout blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.mma' op operand a is '!warp.frag<64x64xbf16, acc, 4>', expected an 'a' fragment or a slot}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xbf16, acc, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_warps(%n: index, %a: !warp.frag<64x64xbf16, a, 2>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.mma' op operand a is over 2 warps and the accumulator over 4, expected the same}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xbf16, a, 2>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_accumulator(%n: index, %a: !warp.frag<64x64xf16, a, 4>, %acc: !warp.frag<64x64xf16, acc, 4>) {
  warp.kernel @mma_accumulator blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xf16>
    // expected-error@+1 {{'warp.mma' op accumulator is '!warp.frag<64x64xf16, acc, 4>', expected an f32 'acc' fragment}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xf16, a, 4>, !warp.slot<64x64xf16>, !warp.frag<64x64xf16, acc, 4>
  }
  return
}

// -----

func.func @mma_elements(%n: index, %a: !warp.frag<64x64xf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x64xbf16>
    // expected-error@+1 {{'warp.mma' op operands have elements of 'f16' and 'bf16', expected the same}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_shapes(%n: index, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_shapes blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<32x64xbf16>
    // expected-error@+1 {{'warp.mma' op got a of 64x64, b of 32x64 and an accumulator of 64x64, expected MxK, KxN and MxN}}
    %0 = warp.mma mma_sync %a, %s, %acc : !warp.frag<64x64xbf16, a, 4>, !warp.slot<32x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @mma_transposed_shapes(%n: index, %a: !warp.frag<64x64xbf16, a, 4>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @mma_transposed_shapes blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<32x64xbf16>
    // expected-error@+1 {{'warp.mma' op got a of 64x64, b of 64x32 and an accumulator of 64x64, expected MxK, KxN and MxN}}
    %0 = warp.mma mma_sync %a, %s, %acc transpose_b : !warp.frag<64x64xbf16, a, 4>, !warp.slot<32x64xbf16>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @select_condition(%n: index, %c: !warp.frag<64x64xi32, acc, 4>, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @select_condition blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.select' op condition is '!warp.frag<64x64xi32, acc, 4>', expected elements of i1}}
    %0 = warp.select %c, %f, %f : !warp.frag<64x64xi32, acc, 4>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @select_shape(%n: index, %c: !warp.frag<64x1xi1, acc, 4>, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @select_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.select' op condition is '!warp.frag<64x1xi1, acc, 4>' and the values are '!warp.frag<64x64xf32, acc, 4>', expected the same shape and layout}}
    %0 = warp.select %c, %f, %f : !warp.frag<64x1xi1, acc, 4>, !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @cast_shape(%n: index, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @cast_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.cast' op casts '!warp.frag<64x64xf32, acc, 4>' to '!warp.frag<64x32xf16, acc, 4>', expected 'acc' fragments of one shape}}
    %0 = warp.cast truncf %f : !warp.frag<64x64xf32, acc, 4> to !warp.frag<64x32xf16, acc, 4>
  }
  return
}

// -----

func.func @cast_kind(%n: index, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @cast_kind blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.cast' op 'extf' cannot turn 'f32' into 'f16'}}
    %0 = warp.cast extf %f : !warp.frag<64x64xf32, acc, 4> to !warp.frag<64x64xf16, acc, 4>
  }
  return
}

// -----

func.func @convert_tile(%n: index, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @convert_tile blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.convert' op turns '!warp.frag<64x64xf32, acc, 4>' into '!warp.frag<64x64xf16, a, 4>', expected the same tile}}
    %0 = warp.convert %f : !warp.frag<64x64xf32, acc, 4> -> !warp.frag<64x64xf16, a, 4>
  }
  return
}

// -----

func.func @convert_kind(%n: index, %f: !warp.frag<64x64xf16, a, 4>) {
  warp.kernel @convert_kind blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.convert' op turns 'a' into 'acc', only 'acc' to 'a' stays inside the lanes}}
    %0 = warp.convert %f : !warp.frag<64x64xf16, a, 4> -> !warp.frag<64x64xf16, acc, 4>
  }
  return
}

// -----

func.func @broadcast_elements(%n: index, %f: !warp.frag<64x1xf16, acc, 4>) {
  warp.kernel @broadcast_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.broadcast' op stretches '!warp.frag<64x1xf16, acc, 4>' to '!warp.frag<64x64xf32, acc, 4>', expected 'acc' fragments of one element type}}
    %0 = warp.broadcast %f : !warp.frag<64x1xf16, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @broadcast_size(%n: index, %f: !warp.frag<64x4xf32, acc, 4>) {
  warp.kernel @broadcast_size blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.broadcast' op stretches '!warp.frag<64x4xf32, acc, 4>' to '!warp.frag<64x64xf32, acc, 4>', only a dimension of size 1 stretches}}
    %0 = warp.broadcast %f : !warp.frag<64x4xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @reduce_shape(%n: index, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @reduce_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.reduce' op reduces '!warp.frag<64x64xf32, acc, 4>' to '!warp.frag<1x64xf32, acc, 4>', expected MxN to Mx1 or to Mx4}}
    %0 = warp.reduce <add> %f : !warp.frag<64x64xf32, acc, 4> -> !warp.frag<1x64xf32, acc, 4>
  }
  return
}

// -----

func.func @reduce_elements(%n: index, %f: !warp.frag<64x64xi32, acc, 4>) {
  warp.kernel @reduce_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.reduce' op reduces '!warp.frag<64x64xi32, acc, 4>', expected elements of f32}}
    %0 = warp.reduce <add> %f : !warp.frag<64x64xi32, acc, 4> -> !warp.frag<64x1xi32, acc, 4>
  }
  return
}

// -----

func.func @reduce_layout(%n: index, %f: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @reduce_layout blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.reduce' op reduces '!warp.frag<64x64xf32, acc, 4>' to '!warp.frag<64x1xf16, acc, 4>', expected 'acc' fragments of one element type}}
    %0 = warp.reduce <add> %f : !warp.frag<64x64xf32, acc, 4> -> !warp.frag<64x1xf16, acc, 4>
  }
  return
}

// -----

func.func @coords_axis(%n: index, %i: i32) {
  warp.kernel @coords_axis blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.coords' op got axis 2, expected 0 or 1}}
    %0 = warp.coords %i, 2 : !warp.frag<64x1xi32, acc, 4>
  }
  return
}

// -----

func.func @coords_element(%n: index, %i: i32) {
  warp.kernel @coords_element blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.coords' op gives '!warp.frag<64x1xi64, acc, 4>', expected an i32 'acc' fragment}}
    %0 = warp.coords %i, 0 : !warp.frag<64x1xi64, acc, 4>
  }
  return
}

// -----

func.func @coords_shape(%n: index, %i: i32) {
  warp.kernel @coords_shape blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.coords' op gives '!warp.frag<64x1xi32, acc, 4>' along axis 1, expected size 1 in the other dimension}}
    %0 = warp.coords %i, 1 : !warp.frag<64x1xi32, acc, 4>
  }
  return
}

// -----

func.func @extreme_of_warps(%n: index, %i: i32) {
  warp.kernel @extreme_of_warps blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %m = warp.splat %i : !warp.frag<64x1xi32, acc, 4>
    // expected-error@+1 {{'warp.extreme' op looks at '!warp.frag<64x1xi32, acc, 4>', expected an i32 'acc' fragment of one warp}}
    %least = warp.extreme <least> %m : !warp.frag<64x1xi32, acc, 4>
  }
  return
}

// -----

func.func @any_of_floats(%n: index, %f: f32) {
  warp.kernel @any_of_floats blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %m = warp.splat %f : !warp.frag<64x1xf32, acc, 4>
    // expected-error@+1 {{'warp.any' op asks '!warp.frag<64x1xf32, acc, 4>', expected an i1 'acc' fragment}}
    %any = warp.any %m : !warp.frag<64x1xf32, acc, 4>
  }
  return
}

// -----

func.func @store_via_rows(%n: index, %f: !warp.frag<64x64xbf16, acc, 4>, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  warp.kernel @store_via_rows blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<32x64xbf16>
    // expected-error@+1 {{'warp.store' op goes via '!warp.slot<32x64xbf16>', expected the rows and the elements of '!warp.frag<64x64xbf16, acc, 4>'}}
    warp.store %f, %v[%x, %h] via %s : !warp.frag<64x64xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<32x64xbf16>
  }
  return
}

// -----

func.func @store_via_parts(%n: index, %f: !warp.frag<64x96xbf16, acc, 4>, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  warp.kernel @store_via_parts blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x48xbf16, panels<64>>
    // expected-error@+1 {{'warp.store' op goes in parts via '!warp.slot<64x48xbf16, panels<64>>', expected columns that divide 96 and fill whole panels}}
    warp.store %f, %v[%x, %h] via %s : !warp.frag<64x96xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x48xbf16, panels<64>>
  }
  return
}

// -----

func.func @store_via_one_column(%n: index, %f: !warp.frag<64x1xbf16, acc, 4>, %v: memref<?x?xbf16, strided<[?, 1]>>) {
  warp.kernel @store_via_one_column blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %s = warp.alloc : !warp.slot<64x16xbf16>
    // expected-error@+1 {{'warp.store' op writes rows, which cannot go via a slot}}
    warp.store %f, %v[%x, %h] rows via %s : !warp.frag<64x1xbf16, acc, 4>, memref<?x?xbf16, strided<[?, 1]>>, !warp.slot<64x16xbf16>
  }
  return
}

// -----

func.func @search_elements(%n: index, %i: i32, %v: memref<?xi64>) {
  warp.kernel @search_elements blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.search' op expects a memref of i32 of rank 1 or more, got 'memref<?xi64>'}}
    %0 = warp.search %v[], %i : memref<?xi64>, i32, () -> i32
  }
  return
}

// -----

func.func @search_indices(%n: index, %i: i32, %v: memref<?x?xi32>) {
  warp.kernel @search_indices blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.search' op got 0 leading indices for a memref of rank 2}}
    %0 = warp.search %v[], %i : memref<?x?xi32>, i32, () -> i32
  }
  return
}

// -----

func.func @search_result(%n: index, %i: i32, %v: memref<?xi32>) {
  warp.kernel @search_result blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.search' op expects an i32 or an 'acc' fragment of i32, got 'i64'}}
    %0 = warp.search %v[], %i : memref<?xi32>, i32, () -> i64
  }
  return
}

// -----

func.func @search_stretch(%n: index, %c: !warp.frag<1x32xi32, acc, 4>, %v: memref<?xi32>) {
  warp.kernel @search_stretch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.search' op has an operand of '!warp.frag<1x32xi32, acc, 4>', expected i32 or an i32 fragment that stretches to the result}}
    %0 = warp.search %v[], %c : memref<?xi32>, !warp.frag<1x32xi32, acc, 4>, () -> !warp.frag<64x1xi32, acc, 4>
  }
  return
}

// -----

func.func @search_scalar(%n: index, %c: !warp.frag<1x32xi32, acc, 4>, %v: memref<?xi32>) {
  warp.kernel @search_scalar blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.search' op has an operand of '!warp.frag<1x32xi32, acc, 4>', expected i32}}
    %0 = warp.search %v[], %c : memref<?xi32>, !warp.frag<1x32xi32, acc, 4>, () -> i32
  }
  return
}

// -----

func.func @unknown_scheduler(%n: index) {
  // expected-error@+1 {{got scheduler fair, expected grid, static or dynamic}}
  warp.kernel @unknown_scheduler blocks(%x, %h, %b) in (%n, %n, %n) warps(4) scheduler(fair) {
  }
  return
}

// -----

func.func @unknown_start(%n: index) {
  // expected-error@+1 {{got starts late, expected early or beside}}
  warp.kernel @unknown_start blocks(%x, %h, %b) in (%n, %n, %n) warps(4) starts(late) {
  }
  return
}

// -----

func.func @all_c1(%n: index) {
  warp.kernel @all_c1 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.all' op region is a function of ('i32'), expected ('index')}}
    %all = warp.all {
    ^bb0(%i: i32):
      %yes = arith.cmpi eq, %i, %i : i32
      warp.yield %yes : i1
    }
  }
  return
}

// -----

func.func @all_c1_yield(%n: index) {
  warp.kernel @all_c1_yield blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %all = warp.all {
    ^bb0(%i: index):
      // expected-error@+1 {{'warp.yield' op yields ('index'), expected ('i1')}}
      warp.yield %i : index
    }
  }
  return
}

// -----

func.func @all_c2(%n: index, %counts: memref<?xindex>) {
  warp.kernel @all_c2 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-note@+1 {{the condition}}
    %all = warp.all {
    ^bb0(%i: index):
      %yes = arith.cmpi eq, %i, %n : index
      // expected-error@+1 {{'memref.store' op stands in a condition of numbers, expected scalars and reads only}}
      memref.store %i, %counts[%i] : memref<?xindex>
      warp.yield %yes : i1
    }
  }
  return
}

// -----

func.func @all_c2_search(%n: index, %row: i32, %ends: memref<?xi32>) {
  warp.kernel @all_c2_search blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-note@+1 {{the condition}}
    %all = warp.all {
    ^bb0(%i: index):
      // expected-error@+1 {{'warp.search' op stands in a condition of numbers, expected scalars and reads only}}
      %found = warp.search %ends[], %row : memref<?xi32>, i32, () -> i32
      %yes = arith.cmpi eq, %found, %row : i32
      warp.yield %yes : i1
    }
  }
  return
}

// -----

func.func @all_c3(%n: index) {
  warp.kernel @all_c3 blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
    }
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(4) {
    ^bb0(%group: index):
      // expected-error@+1 {{'warp.all' op stands in a role, expected it before the roles}}
      %all = warp.all {
      ^bb0(%i: index):
        %yes = arith.cmpi eq, %i, %n : index
        warp.yield %yes : i1
      }
    }
  }
  return
}

// -----

func.func @group_bounds_c1(%n: index) {
  warp.kernel @group_bounds_c1 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.group_bounds' op is of 0 rows, expected at least 1}}
    %first, %end = warp.group_bounds [%n, %n) of 0 {
    ^bb0(%row: index):
      warp.yield %row, %n : index, index
    }
  }
  return
}

// -----

func.func @group_bounds_c2(%n: index) {
  warp.kernel @group_bounds_c2 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.group_bounds' op region is a function of ('i32'), expected ('index')}}
    %first, %end = warp.group_bounds [%n, %n) of 64 {
    ^bb0(%row: i32):
      warp.yield %n, %n : index, index
    }
  }
  return
}

// -----

func.func @group_bounds_c2_yield(%n: index) {
  warp.kernel @group_bounds_c2_yield blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %first, %end = warp.group_bounds [%n, %n) of 64 {
    ^bb0(%row: index):
      // expected-error@+1 {{'warp.yield' op yields ('index'), expected ('index', 'index')}}
      warp.yield %row : index
    }
  }
  return
}

// -----

func.func @group_bounds_c3(%n: index) {
  warp.kernel @group_bounds_c3 blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
    }
    // expected-note@+1 {{the role}}
    warp.role @softmax compute warps(4) {
      // expected-error@+1 {{'warp.group_bounds' op stands in a role that computes, expected arithmetic on the group's number}}
      %first, %end = warp.group_bounds [%n, %n) of 64 {
      ^bb0(%row: index):
        warp.yield %row, %n : index, index
      }
    }
  }
  return
}

// -----

func.func @group_bounds_c4(%n: index) {
  warp.kernel @group_bounds_c4 blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    // expected-error@+1 {{'warp.group_bounds' op has 1 bounds, expected at least 2}}
    %first = warp.group_bounds [%n) of 64 {
    ^bb0(%row: index):
      warp.yield %row : index
    }
  }
  return
}

// -----

func.func @role_c1_copy(%n: index) {
  warp.kernel @role_c1_copy blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    // expected-error@+1 {{'warp.role' op region is a function of ('index'), expected ()}}
    warp.role @load copy warps(4) group(%group) {
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}

// -----

func.func @role_c1_compute(%n: index) {
  warp.kernel @role_c1_compute blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
    }
    // expected-error@+1 {{'warp.role' op region is a function of (), expected ('index')}}
    "warp.role"() <{sym_name = "softmax", kind = #warp<role_kind compute>, warps = 4 : i64}> ({
      "warp.yield"() : () -> ()
    }) : () -> ()
  }
  return
}

// -----

func.func @kernels_of_one_name(%n: index) {
  // expected-note@+1 {{the other kernel is here}}
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
  }
  // expected-error@+1 {{'warp.kernel' op has the name of another kernel, @k, expected one of its own}}
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
  }
  return
}

// -----

// An attribute that nobody has.
func.func @misspelt(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has no attribute 'residnt', did you mean 'resident'?}}
  warp.kernel @misspelt blocks(%x, %h, %b) in (%n, %n, %n) warps(4) attributes {residnt} {
  }
  return
}

// -----

// One of a dialect is the dialect's to refuse.
func.func @of_a_dialect(%n: index) {
  warp.kernel @of_a_dialect blocks(%x, %h, %b) in (%n, %n, %n) warps(4) attributes {test.note} {
  }
  return
}
