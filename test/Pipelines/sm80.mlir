// The passes of the named pipeline, in order: none is added or lost unseen.
// RUN: attn-opt %s --attn-sm80 --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s

// CHECK: builtin.module(
// CHECK-NEXT: attn-expand-variants,
// CHECK-NEXT: attn-expand-math,
// CHECK-NEXT: attn-simplify,
// CHECK-NEXT: attn-plan{fixed=true gpu= plan= results= target=sm_80 },
// CHECK-NEXT: attn-recompute,
// CHECK-NEXT: convert-attn-to-tile,
// CHECK-NEXT: func.func(
// CHECK-NEXT: tile-order-blocks
// CHECK-NEXT: tile-list-blocks
// CHECK-NEXT: tile-peel-masks
// CHECK-NEXT: tile-keys-to-ranges
// CHECK-NEXT: tile-reverse-keys
// CHECK-NEXT: tile-fold-exp2
// CHECK-NEXT: tile-expand-scores
// CHECK-NEXT: tile-lazy-max
// CHECK-NEXT: tile-expand-softmax
// CHECK-NEXT: ),
// CHECK-NEXT: func.func(
// CHECK-NEXT: cse,
// CHECK-NEXT: convert-tile-to-warp,
// CHECK-NEXT: warp-defer-sum,
// CHECK-NEXT: warp-buffer{
// CHECK-NEXT: warp-stage-stores{shared-limit=166912},
// CHECK-NEXT: warp-assign-resources{shared-limit=166912},
// CHECK-NEXT: canonicalize{
// CHECK-NEXT: cse
// CHECK-NEXT: ),
// CHECK-NEXT: convert-warp-to-gpu{
// CHECK-NEXT: gpu.module(
// CHECK-NEXT: gpu-share-warp-number,
// CHECK-NEXT: gpu-hide-inductions,
// CHECK-NEXT: gpu-order-integers,
// CHECK-NEXT: gpu.func(
// CHECK-NEXT: loop-invariant-code-motion
// CHECK-NEXT: ),
// CHECK-NEXT: cse
// CHECK-NEXT: ),
// CHECK-NEXT: gpu-add-relayouts,
// CHECK-NEXT: gpu.module(
// CHECK-NEXT: convert-scf-to-cf{
// CHECK-NEXT: convert-gpu-to-nvvm{
// CHECK-NEXT: reconcile-unrealized-casts
// CHECK-NEXT: )
// CHECK-NEXT: )
