// RUN: attn-compile %s --target=sm_80 --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>" | FileCheck %s --check-prefix=TALL
// RUN: attn-compile %s --target=sm_80 --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=HALF
// RUN: attn-compile %s --target=sm_80 --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>" | FileCheck %s --check-prefix=KEPT
// RUN: attn-compile %s --target=sm_80 --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>" | FileCheck %s --check-prefix=SHORT
// RUN: attn-compile %s --target=sm_80 --backward --function=wide --emit=tile --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>" | FileCheck %s --check-prefix=WIDE
// RUN: attn-compile %s --target=sm_80 --backward --function=narrow_values --emit=tile --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>" | FileCheck %s --check-prefix=QUERIES
// RUN: attn-compile %s --target=sm_90a --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>" | FileCheck %s --check-prefix=GROUPS
// RUN: attn-compile %s --target=sm_90a --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=THREE
// RUN: attn-compile %s --target=sm_90a --backward --function=causal --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=CAUSAL
// RUN: attn-compile %s --target=sm_90a --backward --function=first_or_near --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=MASKED
// RUN: attn-compile %s --target=sm_90a --backward --function=first_or_near_before --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=MIXED
// RUN: attn-compile %s --target=sm_90a --backward --function=wide_documents --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=DOCUMENTS
// RUN: attn-compile %s --target=sm_90a --backward --function=softcap --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=SCORED
// RUN: attn-compile %s --target=sm_90a --backward --function=slopes --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=SLOPES
// RUN: attn-compile %s --target=sm_90a --backward --function=capped --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=CAPPED
// RUN: attn-compile %s --target=sm_90a --backward --function=window --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s --check-prefix=WINDOW
// RUN: attn-compile %s --target=sm_90a --backward --function=causal --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>" --disable-pass=warp-make-async | FileCheck %s --check-prefix=WAITING
// RUN: attn-compile %s --target=sm_90a --backward --function=narrow --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>" | FileCheck %s --check-prefix=ONCE
// RUN: attn-compile %s --target=sm_90a --backward --function=wide --emit=tile --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>" | FileCheck %s --check-prefix=FEW

// A warp of mma.sync has 32 rows of d_query where it has 16 of d_key and of
// d_value.
// TALL: tile.kernel @narrow_backward_d_query plan(#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>)
// TALL: tile.load %query[{{.*}}, vector<128x64xbf16>
// TALL: tile.load %key[{{.*}}, vector<32x64xbf16>
// TALL: tile.kernel @narrow_backward_d_key_value plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>)

// With many warps half of them do.
// HALF: @narrow_backward_d_query plan(#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>)

// It has them already, or half of the columns are too few.
// KEPT: @narrow_backward_d_query plan(#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>)
// SHORT: @narrow_backward_d_query plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>)

// One sum of wide heads takes what two take of others.
// WIDE: @wide_backward_d_query plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>)

// d_query has the columns of queries, whatever values have.
// QUERIES: @narrow_values_backward_d_query plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>)

// GROUPS: @narrow_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>)

// Three warpgroups where the plan has two, with the columns for which they have
// registers.
// THREE: @narrow_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 2>)
// THREE: @narrow_backward_d_key_value plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>)
// CAUSAL: @causal_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 2>)

// Two sums of 128 columns leave no registers for bounds of warpgroups: not where
// rows see all keys on one side. Fewer columns do; a score function, or keys
// between two bounds, are worth them; without products in flight nothing was
// measured.
// CAUSAL: @causal_backward_d_key_value plan({{.*}}, stages = 2, without = ["tile-group-bounds"]>)
// CAUSAL-NOT: tile.group_bounds
// THREE: tile.group_bounds
// CAPPED: @capped_backward_d_key_value plan({{[^"]*}}, stages = 2>)
// WINDOW: @window_backward_d_key_value plan({{[^"]*}}, stages = 2>)
// WAITING: @causal_backward_d_key_value plan({{.*}}, without = ["warp-make-async"]>)

// Beside other masks and scores, which take registers, 64 columns.
// MASKED: @first_or_near_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 2>)
// SCORED: @softcap_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 2>)

// Not beside masks that mix conditions, or read memory at d = 128, nor scores
// that do; where tiles are not loaded ahead; nor where fewer columns than the
// plan's are left.
// MIXED: @first_or_near_before_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>)
// DOCUMENTS: @wide_documents_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>)
// SLOPES: @slopes_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>)
// ONCE: @narrow_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>)
// FEW: @wide_backward_d_query plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>)
func.func @narrow(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @wide(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>)
      -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
}

func.func @narrow_values(%q: tensor<?x?x?x192xbf16>, %k: tensor<?x?x?x192xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}

func.func @softcap(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0>]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @first_or_near(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %c256 = arith.constant 256 : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %distance, %c256 : i32
      %seen = arith.ori %first, %near : i1
      attn.yield %seen : i1
    }
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @first_or_near_before(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %c256 = arith.constant 256 : i32
      %before = arith.cmpi sge, %i, %j : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %distance, %c256 : i32
      %either = arith.ori %first, %near : i1
      %seen = arith.andi %before, %either : i1
      attn.yield %seen : i1
    }
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @wide_documents(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %ids: tensor<?xi32>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%ids) {}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %id: tensor<?xi32>) {
      %query = attn.capture_load %id[%i] : tensor<?xi32>
      %key = attn.capture_load %id[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %query, %key : i32
      attn.yield %same : i1
    }
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?xi32>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}

func.func @slopes(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %slopes: tensor<?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%slopes) {}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>) {
      %slope = attn.capture_load %s[%h] : tensor<?xf32>
      %y = arith.mulf %x, %slope : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?xf32>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @window(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 255, right = 0>]}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}

func.func @capped(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<30.0>]}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
