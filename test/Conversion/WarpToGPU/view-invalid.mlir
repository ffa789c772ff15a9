// RUN: attn-opt %s --convert-warp-to-gpu --split-input-file --verify-diagnostics

!o = !warp.frag<64x16xbf16, acc, 4>
!m = memref<64x16xbf16, affine_map<(r, c) -> (r mod 2, r floordiv 2, c)>>

func.func @mapped(%x: bf16, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @mapped blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    // expected-error@+2 {{expected a strided memref, got 'memref<64x16xbf16, affine_map<(d0, d1) -> (d0 mod 2, d0 floordiv 2, d1)>>'}}
    // expected-error@+1 {{failed to legalize operation 'warp.store'}}
    warp.store %f, %m[%c0, %c0] : !o, !m
  }
  return
}
