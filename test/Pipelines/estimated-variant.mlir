// Of two plans the second one will surely spill: the assembler never sees its
// kernels, and the first one, which it is then run for, serves all sizes.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.first SPILLS=88 OTHERS=0 attn-compile %s --target=sm_90a --ptxas=%S/Inputs/variant-ptxas -o %t.attn 2>&1 | FileCheck %s --implicit-check-not=warning
// RUN: wc -l < %t.first | FileCheck %s --check-prefix=ONE
// RUN: FileCheck %s --check-prefix=PTX --implicit-check-not=_variant1 < %t.first.ptx
// CHECK: remark: plan query_length <= [[LENGTH:.*]] -> #attn.plan<[[PLAN:.*]]>; #attn.plan<{{.*}}, warps = 12, {{.*}}> spills about {{[0-9]+}} bytes; #attn.plan<[[PLAN]]> is taken, which spills nothing
// ONE: {{^1$}}
// PTX-DAG: .entry attention(
// PTX-DAG: .entry attention_block_states(
// PTX-DAG: .entry attention_relayout32(
// One warp may have all registers: for more blocks at a time it would spill.
// RUN: sed -n '/entry attention_block_states(/,/^{/p' %t.first.ptx | FileCheck %s --check-prefix=STATES
// STATES: .maxntid 32, 1, 1
// STATES-NEXT: .minnctapersm 1

// An assembler that fails is an error.
// RUN: rm -f %t.failed && not attn-compile %s --target=sm_90a --ptxas=%S/../Target/Inputs/failing-ptxas -o %t.failed 2>&1 | FileCheck %s --check-prefix=FAILED
// RUN: test ! -e %t.failed
// FAILED: error: {{.*}}failing-ptxas failed

// Where that one spills, too, the next one is tried.
// RUN: env COUNT=%t.next SPILLS=88 OTHERS=40 attn-compile %s --target=sm_90a --ptxas=%S/Inputs/variant-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=NEXT
// NEXT: warning: kernel 'attention' spills: 40 bytes of stores

!t = tensor<?x?x?x72xbf16>
!l = tensor<?x?x?xf32>
!n = tensor<?x?xf32>
!s = tensor<?xf32>
!i = tensor<?xi32>

func.func @attention(%q: !t, %k: !t, %v: !t, %t0: !i, %t1: !i, %t2: !n, %t3: !s) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0, %t1, %t2, %t3) {sorted_captures = array<i64: 0>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !i, %c1: !i, %c2: !n, %c3: !s) {
      %v0 = arith.subi %i, %j : i32
      %v1 = arith.constant 512 : i32
      %v2 = arith.addi %v0, %v1 : i32
      %v3 = arith.constant 0 : i32
      %v4 = arith.maxsi %v2, %v3 : i32
      %v5 = arith.constant 1024 : i32
      %v6 = arith.minsi %v4, %v5 : i32
      %v7 = attn.capture_load %c2[%h, %v6] : !n
      %v8 = arith.addf %x, %v7 : f32
      %v9 = arith.subi %i, %j : i32
      %v10 = arith.sitofp %v9 : i32 to f32
      %v11 = attn.capture_load %c3[%h] : !s
      %v12 = arith.mulf %v10, %v11 : f32
      %v13 = arith.addf %v8, %v12 : f32
      attn.yield %v13 : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c0: !i, %c1: !i, %c2: !n, %c3: !s) {
      %v0 = attn.capture_load %c0[%i] : !i
      %v1 = attn.capture_load %c0[%j] : !i
      %v2 = arith.cmpi eq, %v0, %v1 : i32
      %v3 = arith.constant 4 : i32
      %v4 = arith.cmpi sge, %i, %v3 : i32
      %v5 = arith.constant 1024 : i32
      %v6 = arith.cmpi slt, %j, %v5 : i32
      %v7 = arith.andi %v4, %v6 : i1
      %v8 = attn.capture_load %c1[%i] : !i
      %v9 = attn.capture_load %c1[%j] : !i
      %v10 = arith.cmpi eq, %v8, %v9 : i32
      %v11 = arith.ori %v7, %v10 : i1
      %v12 = arith.andi %v2, %v11 : i1
      attn.yield %v12 : i1
    }
    : (!t, !t, !t, !i, !i, !n, !s) -> (!t, !l)
  return %o, %lse : !t, !l
}
