// Two warpgroups with fewer keys take less time than one, also where they spill.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.fewer SPILLS="0" ENTRY=attention attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: wc -l < %t.fewer | FileCheck %s --check-prefix=ONE
// FEWER: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2> spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2, consumer_registers = 240> is taken, which spills nothing

// With wide heads no plan with one slot for keys follows, either.
// RUN: env COUNT=%t.all SPILLS="176 0" ENTRY=attention attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: wc -l < %t.all | FileCheck %s --check-prefix=ONE
// ALL: remark: plan {{.*}} spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2, consumer_registers = 240> is taken, which spills 176 bytes
// ONE: {{^1$}}

// After three warpgroups 64 keys come first, whatever is estimated for them: mostly
// they spill nothing.
// RUN: sed s/256xf16/96xf16/ %s > %t.three.mlir
// RUN: env COUNT=%t.next SPILLS="0" ENTRY=attention attn-compile %t.three.mlir --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: block_q = 192, {{.*}}, warps = 12, {{.*}} spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240> is taken, which spills nothing

!t = tensor<?x?x?x256xf16>
!l = tensor<?x?x?xf32>
!n = tensor<?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %n0: !n, %n1: !n, %n2: !n) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%n0, %n1, %n2)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !n, %c1: !n, %c2: !n) {
      %zero = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %c512 = arith.constant 512 : i32
      %distance = arith.subi %i, %j : i32
      %a0 = arith.addi %distance, %c64 : i32
      %a1 = arith.maxsi %a0, %zero : i32
      %a2 = arith.minsi %a1, %c512 : i32
      %l0 = attn.capture_load %c0[%h, %a2] : !n
      %l1 = attn.capture_load %c1[%h, %a2] : !n
      %b0 = arith.addi %distance, %c512 : i32
      %b1 = arith.maxsi %b0, %zero : i32
      %b2 = arith.minsi %b1, %c512 : i32
      %l2 = attn.capture_load %c2[%h, %b2] : !n
      %s0 = arith.addf %x, %l0 : f32
      %s1 = arith.addf %s0, %l1 : f32
      %s2 = arith.addf %s1, %l2 : f32
      attn.yield %s2 : f32
    }
    : (!t, !t, !t, !n, !n, !n) -> (!t, !l)
  return %o, %lse : !t, !l
}
