// RUN: attn-opt %s --warp-buffer --verify-diagnostics

// Found by mutation: warp-buffer made a ring as deep as the kernel said.
func.func @stages(%n: index) {
  // expected-error@+1 {{'warp.kernel' op has 4294967296 stages, expected 1 to 64}}
  warp.kernel @stages blocks(%x, %h, %b) in (%n, %n, %n) warps(4) stages(4294967296) {
  }
  return
}
