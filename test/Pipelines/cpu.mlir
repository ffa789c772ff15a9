// The order of the passes for the host processor.
// RUN: attn-opt %s --attn-cpu --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=TILED
// RUN: attn-opt %s --attn-oracle=precision=input --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=ORACLE
// RUN: attn-opt %s --attn-cpu="list-blocks=false peel-masks=false peel-scores=false order-blocks=false keys-to-ranges=false fold-exp2=false" --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=PLAIN

// TILED: builtin.module(
// TILED-NEXT: attn-expand-variants
// TILED-NEXT: attn-expand-math
// TILED-NEXT: attn-simplify
// TILED-NEXT: attn-plan{fixed=true gpu= plan= results= target=cpu }
// TILED-NEXT: attn-recompute
// TILED-NEXT: convert-attn-to-tile
// TILED: tile-order-blocks
// TILED: tile-list-blocks
// TILED: tile-peel-masks
// TILED: tile-peel-scores
// TILED-NEXT: tile-share-blocks
// TILED: tile-keys-to-ranges
// TILED: tile-fold-exp2
// TILED: tile-expand-scores
// TILED: tile-expand-softmax
// TILED: convert-tile-to-loops
// TILED: canonicalize
// TILED: convert-scf-to-cf
// TILED: convert-narrow-floats
// TILED-NEXT: arith-expand{include-bf16=false
// TILED: convert-math-to-llvm{approximate-log1p=false}
// TILED: reconcile-unrealized-casts
// TILED-NEXT: llvm-narrow-floats-to-bits

// ORACLE: attn-expand-variants
// ORACLE-NEXT: attn-expand-math
// ORACLE-NEXT: convert-attn-to-linalg{precision=input}
// ORACLE-NEXT: one-shot-bufferize{{.*}}bufferize-function-boundaries=true
// ORACLE-NEXT: buffer-results-to-out-params
// ORACLE: convert-linalg-to-loops
// ORACLE: convert-copy-to-loops
// ORACLE: reconcile-unrealized-casts

// PLAIN: convert-attn-to-tile
// PLAIN-NEXT: func.func(
// PLAIN-NEXT: tile-share-blocks
// PLAIN-NEXT: tile-expand-scores
// PLAIN-NEXT: tile-expand-softmax
// PLAIN-NEXT: )
// PLAIN-NEXT: func.func(
// PLAIN-NEXT: convert-tile-to-loops

!t = tensor<?x?x?x8xf32>
!l = tensor<?x?x?xf32>

// Nothing is left but the llvm dialect; the results are arguments.
// TILED: llvm.func @f(%{{.*}}: !llvm.ptr
// TILED-NOT: unrealized_conversion_cast
// ORACLE: llvm.func @f(%{{.*}}: !llvm.ptr
// ORACLE-NOT: unrealized_conversion_cast
// ORACLE-NOT: memrefCopy
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
