// The passes of the named pipeline, in order.
// RUN: attn-opt %s --attn-sm80 --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s

// CHECK: builtin.module(
// CHECK: attn-expand-variants
// CHECK-NEXT: attn-expand-math
// CHECK: attn-simplify
// CHECK: attn-plan{
// CHECK: target=sm_80
// CHECK: convert-attn-to-tile
// CHECK: tile-expand-scores
// CHECK: tile-peel-masks
// CHECK: tile-keys-to-ranges
// CHECK: tile-reverse-keys
// CHECK: tile-fold-exp2
// CHECK: tile-lazy-max
// CHECK: tile-expand-softmax
// CHECK: cse
// CHECK-NEXT: convert-tile-to-warp
// CHECK-NEXT: warp-defer-sum
// CHECK-NEXT: warp-buffer{
// CHECK-NEXT: warp-stage-stores{shared-limit=166912}
// CHECK-NEXT: warp-assign-resources{shared-limit=166912}
// CHECK-NEXT: canonicalize
// CHECK: cse
// CHECK: convert-warp-to-gpu{
// CHECK: chip=sm_80
// CHECK: gpu.module(
// CHECK-NEXT: gpu.func(
// CHECK-NEXT: loop-invariant-code-motion
// CHECK: cse
// CHECK: gpu-add-relayouts
// CHECK: gpu.module(
// CHECK-NEXT: convert-scf-to-cf
// CHECK: convert-gpu-to-nvvm{
// CHECK: reconcile-unrealized-casts
// CHECK-NOT: canonicalize
