// Where a consumer with fewer registers than it can have spills little, the tiles
// stay and it gets these: 8 registers more for up to 32 bytes.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.little SPILLS="32 0" ENTRY=biased attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=LITTLE --implicit-check-not=warning
// RUN: wc -l < %t.little | FileCheck %s --check-prefix=TWO
// LITTLE: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2> spills 32 bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240> is taken, which spills nothing
// TWO: {{^2$}}

// With all of them it gets smaller tiles, as where it spills much.
// RUN: env COUNT=%t.still SPILLS="32 8 0" ENTRY=biased attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=SMALLER --implicit-check-not=warning
// RUN: wc -l < %t.still | FileCheck %s --check-prefix=THREE
// RUN: env COUNT=%t.much SPILLS="36 0" ENTRY=biased attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=SMALLER --implicit-check-not=warning
// RUN: wc -l < %t.much | FileCheck %s --check-prefix=TWO
// SMALLER: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2> spills {{.*}} block_k = 32, {{.*}} is taken, which spills nothing
// THREE: {{^3$}}

!h = tensor<?x?x?x192xf16>
!near = tensor<?x?xf32>
!l = tensor<?x?x?xf32>

func.func @biased(%q: !h, %k: !h, %v: !h, %t0: !near, %t1: !near) -> (!h, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0, %t1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !near, %c1: !near) {
      %of = attn.capture_load %c0[%b, %j] : !near
      %0 = arith.addf %x, %of : f32
      %distance = arith.subi %j, %i : i32
      %c32 = arith.constant 32 : i32
      %c0_i32 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %moved = arith.addi %distance, %c32 : i32
      %low = arith.maxsi %moved, %c0_i32 : i32
      %place = arith.minsi %low, %c64 : i32
      %near = attn.capture_load %c1[%h, %place] : !near
      %1 = arith.addf %0, %near : f32
      attn.yield %1 : f32
    }
    : (!h, !h, !h, !near, !near) -> (!h, !l)
  return %o, %lse : !h, !l
}
