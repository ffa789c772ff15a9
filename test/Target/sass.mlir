// REQUIRES: ptxas, nvdisasm
// RUN: attn-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: nvdisasm -c %t.cubin | python3 %S/loops.py | FileCheck %s
// RUN: attn-compile %s --target=sm_90a --disable-pass=warp-double-buffer --emit=cubin -o %t.one.cubin
// RUN: nvdisasm -c %t.one.cubin | python3 %S/loops.py | FileCheck %s --check-prefix=ONE

// The order of machine instructions in the loop over whole key blocks: both
// products in one turn, then the scores are waited for, and no maximum is
// computed. (The exponentials after the first vote are those of the redone
// block, which votes, too.)
// Two steps in one iteration, and every exponential runs beside P V.
// CHECK: loop
// CHECK-NEXT: meet
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: pass on
// CHECK-NEXT: wait 1
// CHECK-NEXT: 64 exponentials
// CHECK-NEXT: vote
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: vote
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: wait 0
// CHECK-NEXT: meet
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: fence
// CHECK-NEXT: 8 products
// CHECK-NEXT: pass on
// CHECK-NEXT: wait 1
// CHECK-NEXT: 64 exponentials
// CHECK-NEXT: vote
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: vote
// CHECK-NEXT: {{[0-9]+}} exponentials
// CHECK-NEXT: wait 0
// CHECK-NEXT: loop

// With one set of weights the assembler waits for P V amid the exponentials.
// ONE: loop
// ONE-NEXT: meet
// ONE-NEXT: fence
// ONE-NEXT: 8 products
// ONE-NEXT: fence
// ONE-NEXT: 8 products
// ONE-NEXT: pass on
// ONE-NEXT: wait 1
// ONE-NEXT: {{[0-9]+}} exponentials
// ONE-NEXT: wait 0
// ONE-NEXT: {{[0-9]+}} exponentials
// ONE-NEXT: vote
// ONE-NEXT: {{[0-9]+}} exponentials
// ONE-NEXT: vote
// ONE-NEXT: {{[0-9]+}} exponentials
// ONE-NEXT: loop
func.func @plain(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                 %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>}
    : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>)
      -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
