// RUN: attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-peel-masks --tile-group-bounds --tile-expand-scores | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-peel-masks --tile-group-bounds --tile-expand-scores --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: not attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile "--tile-group-bounds=rows=0" 2>&1 | FileCheck %s --check-prefix=ROWS

// ROWS: error: tile-group-bounds: got parts of 0 rows, expected at least 1

// Lengths that are multiples of the tile: only the diagonal differs. The part's
// last block is the one of its last row.
// CHECK-LABEL: func.func @causal(
// CHECK: %[[FIRST:.*]], %[[OWN:.*]] = tile.group_bounds[%[[LO:.*]], %[[HI:.*]]) of 64 {
// CHECK: ^bb0(%[[PART:.*]]: index):
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]] : index
// CHECK: %[[END:.*]] = arith.ceildivsi
// CHECK: tile.yield %[[LO]], %{{.*}} : index, index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL:[a-z0-9_]+]] step
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[OWN]] step
func.func @causal(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                  %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// A window narrows both ends.
// CHECK-LABEL: func.func @window(
// CHECK: %[[FIRST:.*]], %[[OWN:.*]] = tile.group_bounds[%[[LO:.*]], %[[HI:.*]]) of 64
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[A:[a-z0-9_]+]] step
// CHECK: scf.for %{{.*}} = %[[A]] to %[[B:[a-z0-9_]+]] step
// CHECK: scf.for %{{.*}} = %[[B]] to %[[OWN]] step
func.func @window(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                  %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 511, right = 0>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// Parts after the end of the queries, of which there may be some: all loops end
// with the part.
// CHECK-LABEL: func.func @ragged(
// CHECK: %[[FIRST:.*]], %[[OWN:.*]] = tile.group_bounds[%[[LO:.*]], %[[HI:.*]]) of 64 {
// CHECK: ^bb0(%[[PART:.*]]: index):
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]] : index
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}} : index
// CHECK: %[[BEHIND:.*]] = arith.select %[[EXISTS]], %[[HI]], %[[LO]] : index
// CHECK: tile.yield %[[LO]], %[[BEHIND]] : index, index
// CHECK: %[[FULL:.*]] = arith.minsi %{{.*}}, %[[OWN]] : index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL]] step
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[OWN]] step
func.func @ragged(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>,
                  %v: tensor<1x2x?x64xbf16>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>)
      -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>)
  return %o, %lse : tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
}

// Nothing differs from part to part.
// MISSED: [Missed] group-bounds | {{.*}}"the bounds of the loops are those of all parts of the rows"
// CHECK-LABEL: func.func @full(
// CHECK-NOT: tile.group_bounds
func.func @full(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}
