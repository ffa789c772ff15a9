// Where a kernel spills whose producer alone lacks registers, the tiles stay and
// the producer gets some of the consumer's.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.once SPILLS="400 0" ENTRY=once attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=ONCE --implicit-check-not=warning
// RUN: wc -l < %t.once | FileCheck %s --check-prefix=TWO
// ONCE: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4> spills 400 bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4, consumer_registers = 192> is taken, which spills nothing
// TWO: {{^2$}}

// A further plan leaves more registers than the one before it that spilled.
// RUN: env COUNT=%t.again SPILLS="400 400 0" ENTRY=once attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=AGAIN --implicit-check-not=warning
// RUN: wc -l < %t.again | FileCheck %s --check-prefix=THREE
// AGAIN: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4> spills 400 bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2> is taken, which spills nothing
// THREE: {{^3$}}

!h = tensor<?x?x?x128xf16>
!keep = tensor<?x?xi1>
!of = tensor<?x?xf32>
!l = tensor<?x?x?xf32>

func.func @once(%q: !h, %k: !h, %v: !h, %t0: !keep, %t1: !of) -> (!h, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0, %t1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !keep, %c1: !of) {
      %0 = attn.capture_load %c1[%b, %j] : !of
      %1 = arith.addf %x, %0 : f32
      attn.yield %1 : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c0: !keep, %c1: !of) {
      %distance = arith.subi %i, %j : i32
      %away = math.absi %distance : i32
      %c100 = arith.constant 100 : i32
      %near = arith.cmpi sle, %away, %c100 : i32
      %c128 = arith.constant 128 : i32
      %column = arith.remui %j, %c128 : i32
      %c67 = arith.constant 67 : i32
      %left = arith.cmpi slt, %column, %c67 : i32
      %both = arith.andi %near, %left : i1
      %kept = attn.capture_load %c0[%b, %j] : !keep
      %seen = arith.ori %both, %kept : i1
      attn.yield %seen : i1
    }
    : (!h, !h, !h, !keep, !of) -> (!h, !l)
  return %o, %lse : !h, !l
}
