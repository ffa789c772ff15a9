// The passes of the named pipeline, in order; and with the optional ones dropped.
// RUN: attn-opt %s --attn-sm90 --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-sm90="order-blocks=false peel-masks=false group-bounds=false keys-to-ranges=false reverse-keys=false fold-exp2=false overlap-products=false lazy-max=false specialize=false make-async=false insert-turns=false deepen-rings=false" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: attn-opt %s --attn-sm90="double-buffer=everywhere" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=DOUBLE

// DOUBLE: warp-persist
// DOUBLE-NEXT: warp-double-buffer{selective=false}
// DOUBLE-NEXT: warp-specialize

// CHECK: builtin.module(
// CHECK: attn-expand-variants
// CHECK-NEXT: attn-expand-math
// CHECK: attn-simplify
// CHECK: attn-plan{
// CHECK: target=sm_90a
// CHECK: convert-attn-to-tile
// CHECK: tile-expand-scores
// CHECK: tile-order-blocks
// CHECK: tile-peel-masks
// CHECK: tile-group-bounds
// CHECK: tile-keys-to-ranges
// CHECK: tile-reverse-keys
// CHECK: tile-fold-exp2
// CHECK: tile-overlap-products
// CHECK: tile-lazy-max
// CHECK: tile-expand-softmax
// CHECK: cse
// CHECK-NEXT: convert-tile-to-warp
// CHECK-NEXT: warp-defer-sum
// CHECK-NEXT: warp-persist
// CHECK-NEXT: warp-double-buffer{selective=true}
// CHECK-NEXT: warp-specialize{
// CHECK-NEXT: warp-make-async
// CHECK-NEXT: warp-insert-turns
// CHECK-NEXT: warp-stage-stores{shared-limit=232448}
// CHECK-NEXT: warp-deepen-rings{shared-limit=232448}
// CHECK-NEXT: warp-assign-resources{shared-limit=232448}
// CHECK-NEXT: canonicalize
// CHECK: cse
// CHECK: convert-warp-to-gpu{
// CHECK: chip=sm_90a
// CHECK: gpu.module(
// CHECK-NEXT: gpu-share-warp-number
// CHECK-NEXT: gpu-hide-inductions
// CHECK-NEXT: gpu-order-integers
// CHECK-NEXT: gpu.func(
// CHECK: reconcile-unrealized-casts

// BARE-NOT: tile-order-blocks
// BARE-NOT: tile-peel-masks
// BARE-NOT: tile-group-bounds
// BARE-NOT: tile-keys-to-ranges
// BARE-NOT: tile-reverse-keys
// BARE-NOT: tile-fold-exp2
// BARE-NOT: tile-overlap-products
// BARE-NOT: tile-lazy-max
// BARE: tile-expand-softmax
// BARE: convert-tile-to-warp
// BARE-NEXT: warp-defer-sum
// BARE-NOT: warp-persist
// BARE: warp-buffer{
// BARE-NEXT: warp-stage-stores{
// BARE-NEXT: warp-assign-resources{
