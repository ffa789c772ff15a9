// Types of the Warp room in what goes to the CPU: its f16 and bf16 are not moved
// as integers, and the lowering says what is wrong.
// RUN: not attn-compile %s --target=cpu --emit=llvm -o %t.ll 2>&1 | FileCheck %s
// RUN: test ! -e %t.ll
// CHECK: error:
// CHECK-NOT: Assertion
func.func private @panels(!warp.slot<64x128xbf16, panels<64>>)
