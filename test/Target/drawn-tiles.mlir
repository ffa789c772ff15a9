// Blocks of a causal kernel draw their tiles from a counter. Memory for it is
// asked for, and cleared, only where there are more tiles than multiprocessors:
// else each tile has a block, and none is drawn.
// REQUIRES: numpy
// RUN: rm -rf %t && attn-compile --target=sm_90a %s --dump-to=%t -o %t.attn
// RUN: %numpy_python -c "import json; print(json.load(open('%t/9-manifest.json'))['variants'][0]['workspaces'])" | FileCheck %s

// CHECK: [{'element': 'i32', 'sizes': [
// CHECK-SAME: ['min', ['max', 0, ['sub', ['mul', ['mul', ['ceildiv', ['dim', 0, 2], 128], 8], ['dim', 0, 0]], ['multiprocessors']]], 1]
// CHECK-SAME: ], 'zeroed': True, 'restored': True}]

func.func @f(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>)
    -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    {variants = [#attn.causal], plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    : (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
      -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}
