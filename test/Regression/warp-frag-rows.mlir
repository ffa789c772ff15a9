// RUN: attn-opt %s --convert-warp-to-gpu --verify-diagnostics

// Found by mutation: a fragment of 2^32 rows verified, and its registers did
// not end.
func.func @rows(%x: f32, %n: index) {
  warp.kernel @rows blocks(%i, %j, %k) in (%n, %n, %n) warps(4) shared(0) {
    // expected-error-re@+1 {{{{.*}}4294967296{{.*}}}}
    %f = warp.splat %x : !warp.frag<4294967296x8xf32, acc, 4>
  }
  return
}
