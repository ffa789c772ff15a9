// The passes of the named pipeline, in order: none is added or lost unseen; and with the optional ones dropped.
// RUN: attn-opt %s --attn-sm90 --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-sm90="order-blocks=false list-blocks=false peel-masks=false peel-scores=false group-bounds=false keys-to-ranges=false reverse-keys=false fold-exp2=false overlap-products=false lazy-max=false merge-factors=false specialize=false make-async=false insert-turns=false deepen-rings=false test-ahead=false" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: attn-opt %s --attn-sm90="double-buffer=true" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=DOUBLE
// RUN: attn-opt %s --attn-sm90="deepen-rings=false" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHALLOW --implicit-check-not=warp-deepen-rings{

// DOUBLE: warp-persist
// DOUBLE-NEXT: warp-order-tiles
// DOUBLE-NEXT: warp-double-buffer{selective=false}
// DOUBLE-NEXT: warp-specialize

// One option leaves out both of its runs.
// SHALLOW: warp-delay-exchange
// SHALLOW-NEXT: warp-make-async
// SHALLOW: warp-stage-stores
// SHALLOW-NEXT: warp-test-ahead

// CHECK: builtin.module(
// CHECK-NEXT: attn-expand-variants,
// CHECK-NEXT: attn-expand-math,
// CHECK-NEXT: attn-simplify,
// CHECK-NEXT: attn-plan{fixed=true gpu= plan= results= target=sm_90a },
// CHECK-NEXT: attn-recompute,
// CHECK-NEXT: convert-attn-to-tile,
// CHECK-NEXT: func.func(
// CHECK-NEXT: tile-order-blocks
// CHECK-NEXT: tile-list-blocks
// CHECK-NEXT: tile-peel-masks
// CHECK-NEXT: tile-peel-scores
// CHECK-NEXT: tile-share-blocks
// CHECK-NEXT: tile-group-bounds{rows=64}
// CHECK-NEXT: tile-keys-to-ranges
// CHECK-NEXT: tile-reverse-keys
// CHECK-NEXT: tile-fold-exp2
// CHECK-NEXT: tile-overlap-products
// CHECK-NEXT: tile-expand-scores
// CHECK-NEXT: tile-lazy-max
// CHECK-NEXT: tile-expand-softmax
// CHECK-NEXT: tile-merge-factors
// CHECK-NEXT: ),
// CHECK-NEXT: func.func(
// CHECK-NEXT: cse,
// CHECK-NEXT: convert-tile-to-warp,
// CHECK-NEXT: warp-defer-sum,
// CHECK-NEXT: warp-persist,
// CHECK-NEXT: warp-order-tiles,
// CHECK-NEXT: warp-double-buffer{selective=true},
// CHECK-NEXT: warp-specialize{depth=0},
// CHECK-NEXT: warp-share-registers,
// CHECK-NEXT: warp-delay-exchange{shared-limit=232448},
// CHECK-NEXT: warp-deepen-rings{shared-limit=232448 steps=true},
// CHECK-NEXT: warp-make-async,
// CHECK-NEXT: warp-insert-turns,
// CHECK-NEXT: warp-stage-stores{shared-limit=232448},
// CHECK-NEXT: warp-deepen-rings{shared-limit=232448 steps=false},
// CHECK-NEXT: warp-test-ahead{selective=true},
// CHECK-NEXT: warp-run-beside,
// CHECK-NEXT: warp-start-early,
// CHECK-NEXT: warp-expand-tanh,
// CHECK-NEXT: warp-assign-resources{shared-limit=232448},
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

// BARE: convert-attn-to-tile,
// BARE-NOT: tile-order-blocks
// BARE-NOT: tile-list-blocks
// BARE-NOT: tile-peel-masks
// BARE-NOT: tile-peel-scores
// BARE-NOT: tile-group-bounds
// BARE-NOT: tile-keys-to-ranges
// BARE-NOT: tile-reverse-keys
// BARE-NOT: tile-fold-exp2
// BARE-NOT: tile-overlap-products
// BARE-NOT: tile-lazy-max
// BARE: tile-expand-softmax
// BARE-NOT: tile-merge-factors
// BARE: convert-tile-to-warp
// BARE-NEXT: warp-defer-sum
// BARE-NOT: warp-persist
// BARE: warp-buffer{
// BARE-NEXT: warp-share-columns{
// BARE-NEXT: warp-stage-stores{
// BARE-NEXT: warp-start-early,
// BARE-NEXT: warp-expand-tanh,
// BARE-NEXT: warp-assign-resources{
