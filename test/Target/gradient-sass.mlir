// REQUIRES: ptxas, nvdisasm
// DEFINE: %{plan} = --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>"
// RUN: attn-compile %s --backward %{plan} --target=sm_90a --emit=cubin -o %t.cubin
// RUN: nvdisasm -c %t.cubin | python3 %S/loops.py | FileCheck %s
// RUN: attn-compile %s --backward %{plan} --target=sm_90a --disable-pass=tile-fold-exp2 --emit=cubin -o %t.plain.cubin
// RUN: nvdisasm -c %t.plain.cubin | python3 %S/loops.py | FileCheck %s --check-prefix=PLAIN

// The order of machine instructions in a step of gradients. The weights (with
// those of far rows, half of the exponentials) are made while dO V^T runs;
// between the last three products nothing is computed, and no group waits for
// the others' turns.
// CHECK: vote
// CHECK: wait 1
// CHECK-NEXT: 64 exponentials
// CHECK-NEXT: wait 0
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: fence
// CHECK-NEXT: 4 products
// CHECK-NEXT: fence
// CHECK-NEXT: 4 products
// CHECK-NEXT: wait 2
// CHECK-NEXT: wait 1
// CHECK-NEXT: wait 0

// Without the branch ptxas computes most weights when dO V^T is done.
// PLAIN: wait 1
// PLAIN-NEXT: {{[0-9]+}} exponentials
// PLAIN-NEXT: wait 0
// PLAIN-NEXT: {{[0-9]+}} exponentials
// PLAIN-NEXT: fence
func.func @plain(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                 %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    {numerics = #attn.numerics<deterministic = false>}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
