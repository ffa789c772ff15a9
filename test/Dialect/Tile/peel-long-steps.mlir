// RUN: attn-compile %s --emit=tile --target=sm_80 --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4>" --function=wide | FileCheck %s --check-prefix=ONE
// RUN: attn-compile %s --emit=tile --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 4>" --function=wide | FileCheck %s --check-prefix=ONE
// RUN: attn-compile %s --emit=tile --target=sm_80 --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4>" --function=wide --enable-pass=tile-peel-masks | FileCheck %s --check-prefix=TWO
// RUN: attn-compile %s --emit=tile --target=sm_80 --function=short | FileCheck %s --check-prefix=TWO
// RUN: attn-compile %s --emit=tile --target=sm_80 --function=narrow | FileCheck %s --check-prefix=TWO
// RUN: attn-compile %s --emit=tile --target=cpu --function=wide | FileCheck %s --check-prefix=TWO
// RUN: attn-compile %s --emit=tile --target=sm_80 --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4>" --function=pieces | FileCheck %s --check-prefix=ONE

// Two copies of a step of 128 x 32 x 128 f32 products are more code than a
// multiprocessor keeps: one loop, from the first block that shows anything to
// the last, masks each. Nothing else is that long: steps of half the columns,
// those of 16-bit elements, those of a processor.

// ONE: tile.kernel
// ONE: arith.minsi
// ONE: scf.for
// ONE: tile.load %key
// ONE: arith.select
// ONE-NOT: tile.load %key
// ONE: tile.store

// TWO: tile.kernel
// TWO: scf.for
// TWO: tile.load %key
// TWO: scf.for
// TWO: tile.load %key
// TWO: tile.store

func.func @wide(%q: tensor<?x?x?x128xf32>, %k: tensor<?x?x?x128xf32>, %v: tensor<?x?x?x128xf32>)
    -> (tensor<?x?x?x128xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32>)
      -> (tensor<?x?x?x128xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xf32>, tensor<?x?x?xf32>
}

func.func @short(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>)
    -> (tensor<?x?x?x64xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>)
      -> (tensor<?x?x?x64xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
}

func.func @narrow(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}

// Visits that are counted, through two intervals: their loop is one, too.
func.func @pieces(%q: tensor<?x?x?x128xf32>, %k: tensor<?x?x?x128xf32>, %v: tensor<?x?x?x128xf32>)
    -> (tensor<?x?x?x128xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c64 = arith.constant 64 : i32
      %c512 = arith.constant 512 : i32
      %low = arith.subi %i, %c512 : i32
      %first = arith.cmpi slt, %j, %c64 : i32
      %near = arith.cmpi sgt, %j, %low : i32
      %any = arith.ori %first, %near : i1
      attn.yield %any : i1
    }
    : (tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32>)
      -> (tensor<?x?x?x128xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xf32>, tensor<?x?x?xf32>
}
