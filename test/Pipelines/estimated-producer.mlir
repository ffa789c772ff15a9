// A consumer lacks few registers, and a producer that gathers lacks some beside
// it: together they surely spill, and the assembler runs for the next plan only.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.both SPILLS="0" attn-compile %s --function=both --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not=warning
// RUN: wc -l < %t.both | FileCheck %s --check-prefix=ONE
// BOTH: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2> spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, {{[^>]*}}> is taken, which spills nothing
// ONE: {{^1$}}

// Where only the producer lacks them, the assembler may find a way;
// RUN: env COUNT=%t.one SPILLS="0" attn-compile %s --function=producer --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | count 0
// RUN: wc -l < %t.one | FileCheck %s --check-prefix=ONE

// and so where a producer has no more than one that only copies (two plans; that of
// 192 rows leaves it 32).
// RUN: env COUNT=%t.usual SPILLS="0" attn-compile %s --function=usual --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=USUAL --implicit-check-not=spills
// RUN: wc -l < %t.usual | FileCheck %s --check-prefix=ONE
// USUAL: remark: compiled in 2 variants: {{.*}}block_q = 192,

!b = tensor<?x?x?x64xbf16>
!h = tensor<?x?x?x64xf16>
!w = tensor<?x?x?x72xbf16>
!n = tensor<?xi32>
!l = tensor<?x?x?xf32>

func.func @both(%q: !b, %k: !b, %v: !b, %t0: !n, %t1: !n) -> (!b, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0, %t1) {sorted_captures = array<i64: 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c0: !n, %c1: !n) {
      %v0 = attn.capture_load %c0[%b] : !n
      %v1 = arith.cmpi slt, %j, %v0 : i32
      %v2 = arith.constant true
      %v3 = arith.xori %v1, %v2 : i1
      %v4 = arith.constant 8 : i32
      %v5 = arith.divui %i, %v4 : i32
      %v6 = arith.divui %j, %v4 : i32
      %v7 = arith.cmpi ne, %v5, %v6 : i32
      %v8 = attn.capture_load %c1[%i] : !n
      %v9 = attn.capture_load %c1[%j] : !n
      %v10 = arith.cmpi eq, %v8, %v9 : i32
      %v11 = arith.andi %v7, %v10 : i1
      %v12 = arith.ori %v3, %v11 : i1
      attn.yield %v12 : i1
    }
    : (!b, !b, !b, !n, !n) -> (!b, !l)
  return %o, %lse : !b, !l
}

func.func @producer(%q: !h, %k: !h, %v: !h, %t0: !n) -> (!h, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c0: !n) {
      %v0 = arith.constant 100 : i32
      %v1 = arith.cmpi sge, %i, %v0 : i32
      %v2 = attn.capture_search %c0[], %i : !n
      %v3 = attn.capture_search %c0[], %j : !n
      %v4 = arith.cmpi eq, %v2, %v3 : i32
      %v5 = arith.constant true
      %v6 = arith.xori %v4, %v5 : i1
      %v7 = arith.andi %v1, %v6 : i1
      attn.yield %v7 : i1
    }
    : (!h, !h, !h, !n) -> (!h, !l)
  return %o, %lse : !h, !l
}

func.func @usual(%q: !w, %k: !w, %v: !w, %t0: !n) -> (!w, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c0: !n) {
      %v0 = attn.capture_search %c0[], %i : !n
      %v1 = attn.capture_search %c0[], %j : !n
      %v2 = arith.cmpi eq, %v0, %v1 : i32
      %v3 = arith.subi %j, %i : i32
      %v4 = arith.constant 16 : i32
      %v5 = arith.cmpi sge, %v3, %v4 : i32
      %v6 = arith.constant 64 : i32
      %v7 = arith.cmpi slt, %j, %v6 : i32
      %v8 = arith.ori %v5, %v7 : i1
      %v9 = arith.divui %i, %v6 : i32
      %v10 = arith.divui %j, %v6 : i32
      %v11 = arith.cmpi ne, %v9, %v10 : i32
      %v12 = arith.andi %v8, %v11 : i1
      %v13 = arith.ori %v2, %v12 : i1
      attn.yield %v13 : i1
    }
    : (!w, !w, !w, !n) -> (!w, !l)
  return %o, %lse : !w, !l
}
