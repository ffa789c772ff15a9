// REQUIRES: ptxas, nvdisasm
// RUN: attn-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: nvdisasm -c %t.cubin | python3 %S/loops.py | FileCheck %s

// The order of machine instructions in the loop over whole key blocks: both
// products in one turn, then the scores are waited for, and no maximum is
// computed. (The exponentials behind the vote are those of the redone block.)
// CHECK: loop
// CHECK-NEXT: meet
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: pass on
// CHECK-NEXT: wait 1
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: wait 0
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: vote
// CHECK-NEXT: 66 exponentials
// CHECK-NEXT: loop
func.func @plain(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                 %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
