// RUN: attn-opt %s --verify-roundtrip -split-input-file -verify-diagnostics | FileCheck %s

// Two warps along the rows, two groups of them along the columns.
// CHECK-LABEL: @slices
func.func @slices(%n: index, %f: f32, %i: i32) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    // CHECK: warp.coords %{{.*}}, 0 : <64x1xi32, acc, 2x2>
    %rows = warp.coords %i, 0 : !warp.frag<64x1xi32, acc, 2x2>
    // CHECK: warp.coords %{{.*}}, 1 : <1x64xi32, acc, 1x4>
    %columns = warp.coords %i, 1 : !warp.frag<1x64xi32, acc, 1x4>
    // CHECK: warp.broadcast %{{.*}} : <64x1xi32, acc, 2x2> -> <64x64xi32, acc, 2x2>
    %t = warp.broadcast %rows : !warp.frag<64x1xi32, acc, 2x2> -> !warp.frag<64x64xi32, acc, 2x2>
    // One group is none.
    // CHECK: warp.splat %{{.*}} : <64x64xf32, acc, 4>
    %s = warp.splat %f : !warp.frag<64x64xf32, acc, 4x1>
  }
  return
}

// -----

// expected-error@+1 {{'acc' fragment: got 32 rows, expected a multiple of 16 rows x 4 rows of warps}}
func.func private @rows(!warp.frag<32x64xf32, acc, 4x2>)

// -----

// expected-error@+1 {{'acc' fragment: got 24 columns, expected a multiple of 8 columns x 2 columns of warps}}
func.func private @columns(!warp.frag<64x24xf32, acc, 2x2>)

// -----

// expected-error@+1 {{'a' fragment: got warps in a grid, those of an operand fragment are stacked}}
func.func private @operand(!warp.frag<64x64xbf16, a, 2x2>)

// -----

// expected-error@+1 {{got 3 numbers of warps, expected one, or those along the rows and along the columns}}
func.func private @numbers(!warp.frag<64x64xf32, acc, 2x2x2>)

// -----

func.func @other_grid(%n: index, %f: f32) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %row = warp.splat %f : !warp.frag<64x1xf32, acc, 4>
    // expected-error@+1 {{'warp.broadcast' op stretches '!warp.frag<64x1xf32, acc, 4>' to '!warp.frag<64x64xf32, acc, 2x2>', expected 'acc' fragments of one element type}}
    %t = warp.broadcast %row : !warp.frag<64x1xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 2x2>
  }
  return
}

// -----

func.func @rows_of_a_grid(%n: index, %f: f32) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %t = warp.splat %f : !warp.frag<64x64xf32, acc, 2x2>
    // expected-error@+1 {{'warp.reduce' op reduces '!warp.frag<64x64xf32, acc, 2x2>', expected warps that have whole rows}}
    %r = warp.reduce <add> %t : !warp.frag<64x64xf32, acc, 2x2> -> !warp.frag<64x1xf32, acc, 2x2>
  }
  return
}

// -----

func.func @operand_in_registers(%n: index, %f: f32, %a: !warp.frag<64x64xbf16, a, 4>) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %t = warp.splat %f : !warp.frag<64x64xf32, acc, 2x2>
    // expected-error@+1 {{'warp.mma' op operand a is '!warp.frag<64x64xbf16, a, 4>' and the accumulator '!warp.frag<64x64xf32, acc, 2x2>': expected a slot, which warps read for each other}}
    %o = warp.mma mma_sync %a, %S, %t : !warp.frag<64x64xbf16, a, 4>, !warp.slot<64x64xbf16>, !warp.frag<64x64xf32, acc, 2x2>
  }
  return
}
