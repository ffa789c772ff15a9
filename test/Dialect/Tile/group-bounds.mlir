// RUN: attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-peel-masks --tile-group-bounds --tile-expand-scores | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-peel-masks --tile-group-bounds --tile-expand-scores --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: not attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile "--tile-group-bounds=rows=0" 2>&1 | FileCheck %s --check-prefix=ROWS

// ROWS: error: tile-group-bounds: got parts of 0 rows, expected at least 1

// Lengths that are multiples of the tile: only the diagonal differs. The part's
// last block is the one of its last row, those before that of its first row are
// full.
// CHECK-LABEL: func.func @causal(
// CHECK: %[[OWN:.*]]:3 = tile.group_bounds[%[[LO:.*]], %[[FULLHI:.*]], %[[HI:.*]]) of 64 {
// CHECK: ^bb0(%[[PART:.*]]: index):
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]] : index
// CHECK: %[[END:.*]] = arith.ceildivsi
// CHECK: %[[FULL:.*]] = arith.floordivsi
// CHECK: tile.yield %[[LO]], %{{.*}}, %{{.*}} : index, index, index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[OWN]]#1 step
// CHECK-NOT: mask
// CHECK: scf.for %{{.*}} = %[[OWN]]#1 to %[[OWN]]#2 step
func.func @causal(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                  %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// A window narrows both ends, and what is full between them widens.
// CHECK-LABEL: func.func @window(
// CHECK: %[[OWN:.*]]:4 = tile.group_bounds[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of 64
// CHECK: scf.for %{{.*}} = %[[OWN]]#0 to %[[OWN]]#1 step
// CHECK: scf.for %{{.*}} = %[[OWN]]#1 to %[[OWN]]#2 step
// CHECK: scf.for %{{.*}} = %[[OWN]]#2 to %[[OWN]]#3 step
func.func @window(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                  %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 511, right = 0>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// Of a window as wide as the tile no block is full for all rows, and some are for
// a part: three loops come of one, and who runs all rows stays in the first.
// CHECK-LABEL: func.func @narrow_window(
// CHECK: %[[OWN:.*]]:4 = tile.group_bounds[%{{.*}}, %[[HI:.*]], %[[HI]], %[[HI]]) of 64
// CHECK: scf.for %{{.*}} = %[[OWN]]#0 to %[[OWN]]#1 step
// CHECK: vector<256x64xi1>
// CHECK: scf.for %{{.*}} = %[[OWN]]#1 to %[[OWN]]#2 step
// CHECK-NOT: vector<256x64xi1>
// CHECK: scf.for %{{.*}} = %[[OWN]]#2 to %[[OWN]]#3 step
// CHECK: vector<256x64xi1>
func.func @narrow_window(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                         %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 255, right = 0>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// Of a window of 64 keys no block is full for 64 rows either.
// CHECK-LABEL: func.func @narrowest_window(
// CHECK: %[[OWN:.*]]:2 = tile.group_bounds
// CHECK: scf.for %{{.*}} = %[[OWN]]#0 to %[[OWN]]#1 step
// CHECK-NOT: scf.for
func.func @narrowest_window(%q: tensor<1x2x1024x64xbf16>, %k: tensor<1x2x1024x64xbf16>,
                            %v: tensor<1x2x1024x64xbf16>) -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 63, right = 0>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>, tensor<1x2x1024x64xbf16>)
      -> (tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>)
  return %o, %lse : tensor<1x2x1024x64xbf16>, tensor<1x2x1024xf32>
}

// The blocks that are full are those of memory: the same for all parts, but for
// the end of the queries.
// CHECK-LABEL: func.func @documents(
// CHECK-NOT: scf.for
// CHECK: tile.group_bounds[%[[LO:.*]], %[[HI:.*]]) of 64 {
// CHECK-NOT: tile.search
// CHECK: tile.yield
func.func @documents(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>,
                     %offsets: tensor<?xi32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%offsets)
    {plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %f: tensor<?xi32>) {
      %x = attn.capture_search %f[], %i : tensor<?xi32>
      %y = attn.capture_search %f[], %j : tensor<?xi32>
      %m = arith.cmpi eq, %x, %y : i32
      attn.yield %m : i1
    }
    : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<?xi32>)
      -> (tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>)
  return %o, %lse : tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>
}

// Parts after the end of the queries, of which there may be some: all loops end
// with the part.
// CHECK-LABEL: func.func @ragged(
// CHECK: %[[OWN:.*]]:3 = tile.group_bounds[%[[LO:.*]], %[[FULL:.*]], %[[HI:.*]]) of 64 {
// CHECK: ^bb0(%[[PART:.*]]: index):
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]] : index
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}} : index
// CHECK: %[[BEHIND:.*]] = arith.select %[[EXISTS]], %[[HI]], %[[LO]] : index
// CHECK: tile.yield %[[LO]], %[[FULL]], %[[BEHIND]] : index, index, index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[OWN]]#1 step
// CHECK: scf.for %{{.*}} = %[[OWN]]#1 to %[[OWN]]#2 step
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
