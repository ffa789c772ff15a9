// Where the compiler's pick spills, plans are tried that need fewer registers.
// RUN: rm -f %t.*
// The second try spills nothing: there is no third, and no warning.
// RUN: env COUNT=%t.second SPILLS="88 40 0 0 0" attn-compile %s --function=wanted --ptxas=%S/Inputs/counting-ptxas --dump-to=%t -o %t.attn 2>&1 | FileCheck %s --check-prefix=SECOND --implicit-check-not=warning
// RUN: wc -l < %t.second | FileCheck %s --check-prefix=THREE
// SECOND: remark: plan #attn.plan<target = sm_80, block_q = 128, block_k = 48, warps = 4, stages = 2> spills 88 bytes; #attn.plan<target = sm_80, [[TAKEN:[^>]*]]> is taken, which spills nothing
// THREE: 3

// What the rooms left is of the plan that was taken, once.
// RUN: FileCheck %s --check-prefix=KEPT < %t/9-manifest.json
// RUN: FileCheck %s --check-prefix=ROOM < %t/2-tile.mlir
// KEPT: "spill_store_bytes": 0
// KEPT-NOT: block_q = 128, block_k = 48
// ROOM-NOT: vector<128x48xf32>

// All spill: the one that spills least, with a warning, after three more. It is
// assembled once more with fewer registers for speed, and stays if that is not better.
// RUN: env COUNT=%t.all SPILLS="48 40 20 30 20" attn-compile %s --function=wanted --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: FileCheck %s --check-prefix=FIVE < %t.all
// ALL: remark: plan {{.*}} spills 48 bytes; {{.*}} is taken, which spills 20 bytes
// ALL: warning: kernel 'wanted' spills: 20 bytes of stores
// FIVE-COUNT-4: {{^-v -arch=sm_80 -O3 -o .*ptx --split-compile=0$}}
// FIVE-NEXT: {{^-v .*ptx --register-usage-level=0 --split-compile=0$}}
// FIVE-NOT: -v
// RUN: env COUNT=%t.sparing SPILLS="48 40 20 30 0" attn-compile %s --function=wanted --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=SPARING --implicit-check-not=warning
// SPARING: remark: plan {{.*}} spills 48 bytes; {{.*}} is taken, which spills nothing
// What spills much would do so again.
// RUN: env COUNT=%t.much SPILLS="480 400 200 300 0" attn-compile %s --function=wanted --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=MUCH
// RUN: FileCheck %s --check-prefix=USUAL < %t.much
// MUCH: warning: kernel 'wanted' spills: 200 bytes of stores
// USUAL-NOT: register-usage-level
// USUAL: -v -arch=sm_80

// The first one stays where none is better; with --strict that is an error.
// RUN: env COUNT=%t.none SPILLS="88 88 90 91 88" attn-compile %s --function=wanted --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: env COUNT=%t.strict SPILLS="88 88 90 91 88" not attn-compile %s --function=wanted --strict --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=STRICT
// NONE-NOT: remark
// NONE: warning: kernel 'wanted' spills: 88 bytes of stores
// STRICT: error: kernel 'wanted' spills: 88 bytes of stores

// Where ptxas spills for one more block on a multiprocessor, it does so again,
// and may take all registers. The PTX says so.
// RUN: env COUNT=%t.blocks SPILLS="48 0" attn-compile %s --function=wanted --ptxas=%S/Inputs/saving-ptxas --dump-to=%t-more -o %t.attn 2>&1 | count 0
// RUN: wc -l < %t.blocks | FileCheck %s --check-prefix=TWO
// RUN: FileCheck %s --check-prefix=BLOCKS < %t-more/7-kernel.ptx
// RUN: FileCheck %s --check-prefix=REGISTERS < %t-more/9-manifest.json
// TWO: {{^2$}}
// BLOCKS: .entry wanted(
// BLOCKS: .maxntid 128, 1, 1
// BLOCKS-NEXT: .minnctapersm 1
// BLOCKS-NEXT: {
// REGISTERS: "registers": 200
// RUN: env COUNT=%t.given-blocks SPILLS="48 0" attn-compile %s --function=own --ptxas=%S/Inputs/saving-ptxas -o %t.attn 2>&1 | count 0
// RUN: wc -l < %t.given-blocks | FileCheck %s --check-prefix=TWO

// Of two plans the second one spills: the first one serves all sizes, and is not
// compiled anew.
// RUN: env COUNT=%t.first SPILLS=88 OTHERS=0 attn-compile %s --function=narrow --target=sm_90a --ptxas=%S/Inputs/variant-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=FIRST --implicit-check-not=warning
// RUN: wc -l < %t.first | FileCheck %s --check-prefix=TWO
// RUN: FileCheck %s --check-prefix=FIRST-PTX --implicit-check-not=_variant1 < %t.first.ptx
// RUN: sed -n 3,/^}/p %t.attn | FileCheck %s --check-prefix=FIRST-MANIFEST --implicit-check-not=_variant1
// FIRST: remark: plan query_length <= [[LENGTH:.*]] -> #attn.plan<[[PLAN:.*]]>; #attn.plan<{{.*}}> spills 88 bytes; #attn.plan<[[PLAN]]> is taken, which spills nothing
// FIRST-PTX: .address_size 64
// FIRST-PTX: .entry narrow(
// FIRST-PTX: .entry narrow_relayout32(
// FIRST-MANIFEST: "entry": "narrow"
// FIRST-MANIFEST: "spill_store_bytes": 0
// Who looks on sees the rooms of that plan alone.
// RUN: env COUNT=%t.watched SPILLS=88 OTHERS=0 attn-compile %s --function=narrow --target=sm_90a --ptxas=%S/Inputs/variant-ptxas --dump-to=%t-watched -o %t-watched.attn 2>/dev/null
// RUN: FileCheck %s --check-prefix=WATCHED --implicit-check-not=_variant1 < %t-watched/4-gpu.mlir
// WATCHED: gpu.func @narrow(
// Both have the same kernels, in whatever order, which labels have the number of.
// RUN: sed '/^$/d; s/L__BB[0-9]*_/L__BB_/' %t.first.ptx | sort > %t.sorted
// RUN: sed '/^$/d; s/L__BB[0-9]*_/L__BB_/' %t.watched.ptx | sort | diff %t.sorted -
// Where the first one spills, too, others are tried.
// RUN: env COUNT=%t.both SPILLS=88 OTHERS=40 attn-compile %s --function=narrow --target=sm_90a --ptxas=%S/Inputs/variant-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: warning: kernel 'narrow' spills: 40 bytes of stores

// A plan that somebody wants is kept: of the command line, of the operation, of
// a file of results.
// RUN: env COUNT=%t.given SPILLS="88 0" attn-compile %s --function=wanted '--plan=#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>' --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: env COUNT=%t.own SPILLS="88 0" attn-compile %s --function=own --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: env COUNT=%t.results SPILLS="88 0" attn-compile %s --function=wanted --results=%attn_src_root/share/attn/plans.json --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN-NOT: remark: plan
// GIVEN: warning: kernel 'wanted' spills: 88 bytes of stores

!t = tensor<?x?x?x128xbf16>
!l = tensor<?x?x?xf32>

func.func @wanted(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @own(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>}
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @narrow(%q: tensor<?x?x?x80xbf16>, %k: tensor<?x?x?x80xbf16>, %v: tensor<?x?x?x80xbf16>)
    -> (tensor<?x?x?x80xbf16>, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<30.0 : f32>]}
    : (tensor<?x?x?x80xbf16>, tensor<?x?x?x80xbf16>, tensor<?x?x?x80xbf16>) -> (tensor<?x?x?x80xbf16>, !l)
  return %o, %lse : tensor<?x?x?x80xbf16>, !l
}
