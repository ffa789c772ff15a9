// RUN: attn-opt --tile-loop-heads %s 2>&1 | FileCheck %s
// A function without a body was looked into.
// CHECK: tile-loop-heads has nothing to do
// CHECK: func.func private @declared
func.func private @declared(f32)
