// Long code whose plan spills is not tried with a plan whose code is as long: the
// next one has half as many rows for each warp.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.long SPILLS="4 0" ENTRY=attention attn-compile %s --target=sm_80 --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s
// RUN: wc -l < %t.long | FileCheck %s --check-prefix=TWO
// CHECK: remark: plan #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2, q_in_registers = true> spills 4 bytes; #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2> is taken, which spills nothing
// TWO: {{^2$}}

!t = tensor<?x?x?x40xbf16>
!l = tensor<?x?x?xf32>
!n = tensor<?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %t0: !n) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%t0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !n) {
      %v0 = arith.constant 4 : i32
      %v1 = arith.cmpi slt, %j, %v0 : i32
      %v2 = arith.constant -4.000000e+00 : f32
      %v3 = arith.constant 0.000000e+00 : f32
      %v4 = arith.select %v1, %v2, %v3 : f32
      %v5 = arith.addf %x, %v4 : f32
      %v6 = math.absf %v5 : f32
      %v7 = math.sqrt %v6 : f32
      %v8 = arith.subf %v5, %v7 : f32
      %v9 = arith.constant 5.000000e+01 : f32
      %v10 = arith.divf %v8, %v9 : f32
      %v11 = math.tanh %v10 : f32
      %v12 = arith.mulf %v11, %v9 : f32
      %v13 = arith.subi %i, %j : i32
      %v14 = arith.constant 128 : i32
      %v15 = arith.addi %v13, %v14 : i32
      %v16 = arith.constant 0 : i32
      %v17 = arith.maxsi %v15, %v16 : i32
      %v18 = arith.constant 256 : i32
      %v19 = arith.minsi %v17, %v18 : i32
      %v20 = attn.capture_load %c0[%h, %v19] : !n
      %v21 = arith.addf %v12, %v20 : f32
      attn.yield %v21 : f32
    }
    : (!t, !t, !t, !n) -> (!t, !l)
  return %o, %lse : !t, !l
}
