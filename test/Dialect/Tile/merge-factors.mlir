// RUN: attn-opt %s --allow-unregistered-dialect --tile-merge-factors --split-input-file | FileCheck %s
// RUN: attn-opt %s --allow-unregistered-dialect --tile-merge-factors --split-input-file --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64>
!tile = vector<128x64xf32>

// The gradient of a softcap: 20 tanh(x / 20) and g 20 (1 - t t) / 20.
// REMARK: merge-factors{{.*}}factors=5
// CHECK-LABEL: func.func @softcap
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<128x64xf32>, %[[G:[a-z0-9]+]]: vector<128x64xf32>, %[[L:[a-z0-9]+]]: vector<128x64xf32>
// CHECK: %[[IN:.*]] = arith.constant dense<6.250000e-03>
// CHECK: %[[U:.*]] = arith.mulf %[[S]], %[[IN]]
// CHECK: %[[T:.*]] = math.tanh %[[U]]
// CHECK: %[[OUT:.*]] = arith.constant dense<2.885390e+01>
// CHECK: %[[E:.*]] = math.fma %[[T]], %[[OUT]], %[[L]]
// CHECK: %[[P:.*]] = math.exp2 %[[E]]
// CHECK: %[[N:.*]] = arith.negf %[[T]]
// CHECK: %[[D:.*]] = math.fma %[[N]], %[[T]]
// CHECK: %[[B:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK: "test.use"(%[[P]], %[[B]])
func.func @softcap(%s: !tile, %g: !tile, %l: !tile) {
  %c1 = arith.constant 1 : index
  tile.kernel @softcap plan(#plan) grid(%batch, %head, %block) in (%c1, %c1, %c1) {
    %scale = arith.constant dense<0.125> : !tile
    %cap = arith.constant dense<20.0> : !tile
    %one = arith.constant dense<1.0> : !tile
    %log2e = arith.constant dense<1.44269502> : !tile
    %x = arith.mulf %s, %scale : !tile
    %u = arith.divf %x, %cap : !tile
    %t = math.tanh %u : !tile
    %y = arith.mulf %t, %cap : !tile
    %e = math.fma %y, %log2e, %l : !tile
    %p = math.exp2 %e : !tile
    %a = arith.mulf %g, %cap : !tile
    %q = arith.mulf %t, %t : !tile
    %d = arith.subf %one, %q : !tile
    %b = arith.mulf %a, %d : !tile
    %r = arith.divf %b, %cap : !tile
    "test.use"(%p, %r) : (!tile, !tile) -> ()
  }
  return
}

// -----

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64>
!tile = vector<128x64xf32>

// A positive factor passes the choice of hidden scores, a negative one does not.
// CHECK-LABEL: func.func @choices
// CHECK: %[[C:.*]] = arith.select %{{.*}}, %[[S:[a-z0-9]+]], %{{.*}}
// CHECK: math.fma %[[C]], %{{.*}}, %{{.*}}
// CHECK: %[[M:.*]] = arith.mulf %[[S]]
// CHECK: %[[D:.*]] = arith.select %{{.*}}, %[[M]]
// CHECK: math.fma %[[D]]
func.func @choices(%s: !tile, %l: !tile, %m: vector<128x64xi1>) {
  %c1 = arith.constant 1 : index
  tile.kernel @choices plan(#plan) grid(%batch, %head, %block) in (%c1, %c1, %c1) {
    %hidden = arith.constant dense<0xFF800000> : !tile
    %two = arith.constant dense<2.0> : !tile
    %minus = arith.constant dense<-2.0> : !tile
    %three = arith.constant dense<3.0> : !tile
    %a = arith.mulf %s, %two : !tile
    %b = arith.select %m, %a, %hidden : vector<128x64xi1>, !tile
    %c = math.fma %b, %three, %l : !tile
    %d = arith.mulf %s, %minus : !tile
    %e = arith.select %m, %d, %hidden : vector<128x64xi1>, !tile
    %f = math.fma %e, %three, %l : !tile
    "test.use"(%c, %f) : (!tile, !tile) -> ()
  }
  return
}

// -----

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64>
!tile = vector<128x64xf32>
!row = vector<128x1xf32>

// Rounded as it is written: what leads to a decision, and what is computed once
// for a row. Factors that another one uses stay, too.
// CHECK-LABEL: func.func @near_misses
// CHECK: %[[Q:.*]] = arith.divf %{{.*}} : vector<128x64xf32>
// CHECK: arith.cmpf olt, %[[Q]]
// CHECK: arith.divf %{{.*}} : vector<128x1xf32>
// CHECK: %[[U:.*]] = arith.mulf
// CHECK: %[[V:.*]] = arith.mulf %[[U]]
// CHECK: "test.use"(%{{.*}}, %{{.*}}, %[[U]], %[[V]])
func.func @near_misses(%s: !tile, %r: !row) {
  %c1 = arith.constant 1 : index
  tile.kernel @near_misses plan(#plan) grid(%batch, %head, %block) in (%c1, %c1, %c1) {
    %three = arith.constant dense<3.0> : !tile
    %threes = arith.constant dense<3.0> : !row
    %q = arith.divf %s, %three : !tile
    %less = arith.cmpf olt, %q, %three : !tile
    %x = arith.divf %r, %threes : !row
    %u = arith.mulf %s, %three : !tile
    %v = arith.mulf %u, %three : !tile
    "test.use"(%less, %x, %u, %v) : (vector<128x64xi1>, !row, !tile, !tile) -> ()
  }
  return
}

// -----

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64>
!tile = vector<128x64xf32>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// p * d * r with r known as early as p, before d: p * r is one number to keep.
// Where all are known together, the order is the one that is written.
// CHECK-LABEL: func.func @early_factors_first
// CHECK: %[[S:.*]] = vector.contract
// CHECK: %[[D:.*]] = vector.contract
// CHECK: %[[P:.*]] = math.exp2 %[[S]]
// CHECK: %[[R:.*]] = math.cos %[[S]]
// CHECK: %[[PR:.*]] = arith.mulf %[[P]], %[[R]]
// CHECK: %[[ALL:.*]] = arith.mulf %[[PR]], %[[D]]
// CHECK: %[[PP:.*]] = arith.mulf %[[P]], %[[P]]
// CHECK: %[[PPR:.*]] = arith.mulf %[[PP]], %[[R]]
// CHECK: "test.use"(%[[ALL]], %[[PPR]])
func.func @early_factors_first(%a: vector<128x32xbf16>, %b: vector<64x32xbf16>) {
  %c1 = arith.constant 1 : index
  tile.kernel @early_factors_first plan(#plan) grid(%batch, %head, %block) in (%c1, %c1, %c1) {
    %zero = arith.constant dense<0.0> : !tile
    %s = vector.contract {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %zero : vector<128x32xbf16>, vector<64x32xbf16> into !tile
    %d = vector.contract {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %s : vector<128x32xbf16>, vector<64x32xbf16> into !tile
    %p = math.exp2 %s : !tile
    %r = math.cos %s : !tile
    %pd = arith.mulf %p, %d : !tile
    %all = arith.mulf %pd, %r : !tile
    %pp = arith.mulf %p, %p : !tile
    %ppr = arith.mulf %pp, %r : !tile
    "test.use"(%all, %ppr) : (!tile, !tile) -> ()
  }
  return
}

// -----

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64>
!tile = vector<128x64xf32>

// CHECK-LABEL: func.func @precise
// CHECK: arith.divf
func.func @precise(%s: !tile) attributes {attn.numerics = #attn.numerics<fast_math = false>} {
  %c1 = arith.constant 1 : index
  tile.kernel @precise plan(#plan) grid(%batch, %head, %block) in (%c1, %c1, %c1) {
    %three = arith.constant dense<3.0> : !tile
    %q = arith.divf %s, %three : !tile
    "test.use"(%q) : (!tile) -> ()
  }
  return
}
