// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func private @fragments
// CHECK-SAME: !warp.frag<128x64xf32, acc, 4>
// CHECK-SAME: !warp.frag<128x1xf32, acc, 4>, !warp.frag<128x4xf32, acc, 4>
// CHECK-SAME: !warp.frag<1x64xi32, acc, 4>, !warp.frag<1x1xi1, acc, 4>
// CHECK-SAME: !warp.frag<128x80xbf16, a, 4>, !warp.frag<64x8xf32, a, 4>
func.func private @fragments(!warp.frag<128x64xf32, acc, 4>,
    !warp.frag<128x1xf32, acc, 4>, !warp.frag<128x4xf32, acc, 4>,
    !warp.frag<1x64xi32, acc, 4>, !warp.frag<1x1xi1, acc, 4>,
    !warp.frag<128x80xbf16, a, 4>, !warp.frag<64x8xf32, a, 4>)

// CHECK-LABEL: func.func private @memory
// CHECK-SAME: !warp.slot<64x80xf16>, !warp.ring<2, 64x128xf32>
func.func private @memory(!warp.slot<64x80xf16>, !warp.ring<2, 64x128xf32>)

// CHECK-LABEL: func.func private @panels
// CHECK-SAME: !warp.slot<64x80xf16, panels<64>>, !warp.ring<2, 64x128xbf16, panels<128>>
func.func private @panels(!warp.slot<64x80xf16, panels<64>>, !warp.ring<2, 64x128xbf16, panels<128>>)

// CHECK-LABEL: func.func private @pending
// CHECK-SAME: !warp.pending<128x64xf32, acc, 8>
func.func private @pending(!warp.pending<128x64xf32, acc, 8>)

// -----

// expected-error@+1 {{fragment of rank 1, expected rank 2}}
func.func private @rank(!warp.frag<64xf32, acc, 4>)

// -----

// expected-error@+1 {{'acc' fragment: got 64 rows, expected a multiple of 16 rows x 8 warps}}
func.func private @rows(!warp.frag<64x8xf32, acc, 8>)

// -----

// expected-error@+1 {{'acc' fragment: got 20 columns, expected a multiple of 8}}
func.func private @columns(!warp.frag<64x20xf32, acc, 4>)

// -----

// expected-error@+1 {{'a' fragment: got 24 columns, expected a multiple of 16}}
func.func private @operand_columns(!warp.frag<64x24xf16, a, 4>)

// -----

// expected-error@+1 {{'a' fragment: got 1 rows, expected a multiple of 16 rows x 1 warps}}
func.func private @operand_slice(!warp.frag<1x16xf16, a, 1>)

// -----

// expected-error@+1 {{'a' fragment: got elements of 64 bits, an operand fragment has 16 or 32}}
func.func private @operand_bits(!warp.frag<64x16xf64, a, 4>)

// -----

// expected-error@+1 {{operand fragment of 'i16', expected a float element type}}
func.func private @operand_integer(!warp.frag<64x16xi16, a, 4>)

// -----

// expected-error@+1 {{fragment of 'index', expected an integer or float element type}}
func.func private @element(!warp.frag<64x64xindex, acc, 4>)

// -----

// expected-error@+1 {{'acc' fragment: got 0 warps, expected 1 to 32}}
func.func private @warps(!warp.frag<64x64xf32, acc, 0>)

// -----

// expected-error@+1 {{unknown fragment layout 'b', expected acc or a}}
func.func private @kind(!warp.frag<64x64xf32, b, 4>)

// -----

// expected-error@+1 {{slot of rank 3, expected rank 2}}
func.func private @slot_rank(!warp.slot<2x64x64xf16>)

// -----

// expected-error@+1 {{slot of 'i8', expected f16, bf16 or f32}}
func.func private @slot_element(!warp.slot<64x64xi8>)

// -----

// expected-error@+1 {{slot: got 40 columns, expected a multiple of 16}}
func.func private @slot_columns(!warp.slot<64x40xf16>)

// -----

// expected-error@+1 {{ring of depth 0, expected 1 to 64}}
func.func private @ring_depth(!warp.ring<0, 64x64xf16>)

// -----

// expected-error@+1 {{slot: got 4 rows, expected 1 or a multiple of 8}}
func.func private @ring_slot(!warp.ring<2, 4x64xf16>)

// -----

// expected-error@+1 {{'acc' fragment: got shape 4294967296x8, expected sizes of at most 65536}}
func.func private @huge_fragment(!warp.frag<4294967296x8xf16, acc, 4>)

// -----

// expected-error@+1 {{'acc' fragment: got 8192 registers per lane, expected at most 4096}}
func.func private @many_registers(!warp.frag<512x512xf32, acc, 1>)

// -----

// expected-error@+1 {{'acc' fragment: got 9223372036854775807 warps, expected 1 to 32}}
func.func private @many_warps(!warp.frag<64x64xf32, acc, 9223372036854775807>)

// -----

// expected-error@+1 {{slot: got shape 1099511627776x16, expected sizes of at most 65536}}
func.func private @huge_slot(!warp.slot<1099511627776x16xf16>)

// -----

// expected-error@+1 {{ring of depth 65, expected 1 to 64}}
func.func private @deep_ring(!warp.ring<65, 64x64xf16>)

// -----

// expected-error@+1 {{slot: got panels of 48 bytes, expected 128, 64, 32 or 16}}
func.func private @panel_bytes(!warp.slot<64x64xf16, panels<48>>)

// -----

// expected-error@+1 {{got panels of 0 bytes, expected 128, 64, 32 or 16}}
func.func private @no_panel_bytes(!warp.slot<64x64xf16, panels<0>>)
