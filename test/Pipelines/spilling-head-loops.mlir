// Where blocks of keys that go through the query heads which share them would
// spill, those of one head are taken at all sizes. Who asks for the pass has it.
//
// RUN: rm -f %t.* && env COUNT=%t.fits SPILLS=0 attn-compile %s --backward --target=sm_90a --ptxas=%S/Inputs/loops-ptxas --dump-to=%t-fits -o %t.attn 2>&1 | FileCheck %s --check-prefix=FITS --implicit-check-not=warning
// RUN: FileCheck %s --check-prefix=BOTH < %t-fits/9-manifest.json
// RUN: env COUNT=%t.spills SPILLS=888 attn-compile %s --backward --target=sm_90a --ptxas=%S/Inputs/loops-ptxas --dump-to=%t-spills -o %t.attn 2>&1 | FileCheck %s --check-prefix=SPILLS --implicit-check-not=warning
// RUN: FileCheck %s --check-prefix=APART < %t-spills/9-manifest.json
// RUN: env COUNT=%t.asked SPILLS=888 attn-compile %s --backward --target=sm_90a --enable-pass=tile-loop-heads --ptxas=%S/Inputs/loops-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=ASKED
//
// FITS: compiled in 2 variants: {{.*}} -> #attn.plan<{{[^>]*}} with = ["tile-loop-heads"]>; {{.*}}; #attn.plan<{{[^>]*}} stages = 2>
// BOTH: "entry": "shared_backward_d_key_value"
// BOTH: "entry": "shared_backward_variant1_d_key_value"
// BOTH: "entry": "shared_backward_variant1_sum_value"
//
// SPILLS: remark: plan {{.*}}tile-loop-heads{{.*}} spills 888 bytes; it is tried without tile-loop-heads
// SPILLS-NOT: variants
// APART-NOT: variant1
// APART: "entry": "shared_backward_d_key_value"
// APART: "entry": "shared_backward_sum_value"
//
// ASKED-NOT: it is tried without
// ASKED: warning: kernel 'shared_backward_d_key_value' spills: 888 bytes of stores

!q = tensor<?x?x?x128xbf16>
!l = tensor<?x?x?xf32>

func.func @shared(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
