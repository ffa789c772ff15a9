// RUN: attn-opt %s --split-input-file --verify-diagnostics

// Two groups of warps read 48 of 96 columns of %B each. The swizzle has a period
// of 32 columns there: the second group read the first one's, and d_query of
// softcaps at d = 96 was wrong.
func.func @mixed(%n: index, %f: f32) {
  warp.kernel @mixed blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %A = warp.alloc : !warp.slot<64x32xbf16>
    %B = warp.alloc : !warp.slot<64x96xbf16>
    %zero = warp.splat %f : !warp.frag<32x96xf32, acc, 4>
    // expected-error@+1 {{'warp.mma' op of mma_sync has an accumulator of '!warp.frag<32x96xf32, acc, 4>': a group of warps has 48 of 96 columns, which the swizzle mixes}}
    %s = warp.mma mma_sync %A, %B, %zero transpose_a : !warp.slot<64x32xbf16>, !warp.slot<64x96xbf16>, !warp.frag<32x96xf32, acc, 4>
  }
  return
}

// -----

// 64 of 128 columns are whole periods.
func.func @whole(%n: index, %f: f32) {
  warp.kernel @whole blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %A = warp.alloc : !warp.slot<64x32xbf16>
    %B = warp.alloc : !warp.slot<64x128xbf16>
    %zero = warp.splat %f : !warp.frag<32x128xf32, acc, 4>
    %s = warp.mma mma_sync %A, %B, %zero transpose_a : !warp.slot<64x32xbf16>, !warp.slot<64x128xbf16>, !warp.frag<32x128xf32, acc, 4>
  }
  return
}
