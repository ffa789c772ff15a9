// RUN: attn-opt --convert-warp-to-gpu %s | FileCheck %s
// A comparison that folds to a constant, which fragments do not have.
// CHECK: gpu.func
func.func@columns(%limit:i32,%o:memref<?x?xi32,strided<[?,1]>>){%c1=arith.constant 1:index%base=arith.constant 64:i32
  warp.kernel @f blocks(%i,%j,%k)in(%c1,%c1,%c1)warps(4){%l=warp.splat%limit:<1x16xi32,acc,4>arith.cmpi sle,%l,%l:!warp.frag<1x16xi32,acc,4>}return}
