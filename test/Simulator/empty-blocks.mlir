// Chunks of 128 keys before the row's own: of the first 128 rows no block is
// visited, and none that is visited is masked. The first block is computed
// before the loops all the same, and nothing of it shall stay.
// DEFINE: %{plan} = --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>"
// RUN: attn-simulate %s %{plan} --seeds=2 | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --seeds=2 | FileCheck %s
// RUN: attn-simulate %s --target=sm_80 --seeds=2 | FileCheck %s

// CHECK: 2 schedules: error {{.*}}, bound

func.func @earlier_chunks(%q: tensor<1x1x384x64xbf16>, %k: tensor<1x1x384x64xbf16>, %v: tensor<1x1x384x64xbf16>)
    -> (tensor<1x1x384x64xbf16>, tensor<1x1x384xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c128 = arith.constant 128 : i32
      %row = arith.floordivsi %i, %c128 : i32
      %key = arith.floordivsi %j, %c128 : i32
      %m = arith.cmpi sgt, %row, %key : i32
      attn.yield %m : i1
    }
    : (tensor<1x1x384x64xbf16>, tensor<1x1x384x64xbf16>, tensor<1x1x384x64xbf16>)
      -> (tensor<1x1x384x64xbf16>, tensor<1x1x384xf32>)
  return %o, %lse : tensor<1x1x384x64xbf16>, tensor<1x1x384xf32>
}
