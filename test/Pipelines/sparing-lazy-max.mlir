// Where a plan of few rows and a wide head spills a little, its next one has the same
// tiles without lazy maxima: fewer keys would free few registers.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.little SPILLS="52 0" ENTRY=attention attn-compile %s --target=sm_80 --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s
// RUN: wc -l < %t.little | FileCheck %s --check-prefix=TWO
// CHECK: remark: plan #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4> spills 52 bytes; #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, without = ["tile-lazy-max"]> is taken, which spills nothing
// TWO: {{^2$}}

// What spills more takes smaller tiles.
// RUN: env COUNT=%t.much SPILLS="80 0" ENTRY=attention attn-compile %s --target=sm_80 --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=MUCH
// MUCH: spills 80 bytes; #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2> is taken

!t = tensor<?x?x?x192xf16>
!l = tensor<?x?x?xf32>
!n = tensor<?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %near: !n) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%near)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !n) {
      %distance = arith.subi %i, %j : i32
      %c256 = arith.constant 256 : i32
      %zero = arith.constant 0 : i32
      %positive = arith.maxsi %distance, %zero : i32
      %bounded = arith.minsi %positive, %c256 : i32
      %bias = attn.capture_load %c0[%h, %bounded] : !n
      %y = arith.addf %x, %bias : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, !n) -> (!t, !l)
  return %o, %lse : !t, !l
}
