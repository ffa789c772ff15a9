// A plan that was picked and will surely spill is not assembled: that takes
// longest of all. The next one is; it spills nothing.
// RUN: rm -f %t.*
// RUN: env COUNT=%t.next SPILLS="0" attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas --dump-to=%t -o %t.attn 2>&1 | FileCheck %s --check-prefix=NEXT --implicit-check-not=warning
// RUN: wc -l < %t.next | FileCheck %s --check-prefix=ONE
// NEXT: remark: plan #attn.plan<target = sm_90a, block_q = 128, block_k = 96, warps = 8, stages = 2> spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, {{[^>]*}}> is taken, which spills nothing
// ONE: {{^1$}}

// Values that live from one block to another count: inside of each, the
// assembler may order instructions so that they need not live at once.
// RUN: env COUNT=%t.80 SPILLS="0" attn-compile %s --target=sm_80 --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=NEXT80 --implicit-check-not=warning
// RUN: wc -l < %t.80 | FileCheck %s --check-prefix=ONE
// NEXT80: remark: plan #attn.plan<target = sm_80, block_q = 128, block_k = 48, warps = 4, stages = 2> spills about {{[0-9]+}} bytes; #attn.plan<target = sm_80, {{[^>]*}}> is taken, which spills nothing

// What the rooms left is of the plan that was taken, once.
// RUN: FileCheck %s --check-prefix=KEPT < %t/9-manifest.json
// RUN: FileCheck %s --check-prefix=ROOM < %t/7-kernel.ptx
// KEPT-NOT: block_k = 96
// ROOM: .entry wanted
// ROOM-NOT: .entry wanted(

// Where the others spill more than is estimated for one that was not assembled, it
// is assembled at last, and what it spills is said.
// RUN: env COUNT=%t.all SPILLS="9000 8000" attn-compile %s --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: wc -l < %t.all | FileCheck %s --check-prefix=TWO
// ALL: remark: plan {{.*}} spills about {{[0-9]+}} bytes; #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240> is taken, which spills 8000 bytes
// ALL: warning: kernel 'wanted' spills: 8000 bytes of stores
// TWO: {{^2$}}
// RUN: rm -f %t.failed && not attn-compile %s --target=sm_90a --ptxas=%S/../Target/Inputs/failing-ptxas -o %t.failed 2>&1 | FileCheck %s --check-prefix=FAILED
// RUN: test ! -e %t.failed
// FAILED: error: {{.*}}failing-ptxas failed

// A plan that somebody wants is assembled, whatever it spills.
// RUN: env COUNT=%t.given SPILLS="88" attn-compile %s --target=sm_90a '--plan=#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>' --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=GIVEN --implicit-check-not=remark
// RUN: wc -l < %t.given | FileCheck %s --check-prefix=ONE
// GIVEN: warning: kernel 'wanted' spills: 88 bytes of stores

// Without an assembler the plan that was picked stays.
// RUN: attn-compile %s --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | count 0

!t = tensor<?x?x?x128xbf16>
!l = tensor<?x?x?xf32>

func.func @wanted(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?x?x?xf32>, %of: tensor<?x?xf32>,
                  %near: tensor<?x?xf32>, %more: tensor<?x?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias, %of, %near, %more)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: tensor<?x?x?x?xf32>,
          %c1: tensor<?x?xf32>, %c2: tensor<?x?xf32>, %c3: tensor<?x?xf32>) {
      %most = arith.constant 1024 : i32
      %least = arith.constant 0 : i32
      %half = arith.constant 512 : i32
      %two = arith.constant 2 : i32
      %twice = arith.muli %j, %two : i32
      %v0 = attn.capture_load %c0[%b, %h, %i, %twice] : tensor<?x?x?x?xf32>
      %s0 = arith.addf %x, %v0 : f32
      %v1 = attn.capture_load %c1[%b, %twice] : tensor<?x?xf32>
      %s1 = arith.addf %s0, %v1 : f32
      %distance = arith.subi %j, %i : i32
      %shifted = arith.addi %distance, %half : i32
      %above = arith.maxsi %shifted, %least : i32
      %row = arith.minsi %above, %most : i32
      %v2 = attn.capture_load %c2[%h, %row] : tensor<?x?xf32>
      %s2 = arith.addf %s1, %v2 : f32
      %size = math.absf %s2 : f32
      %root = math.sqrt %size : f32
      %s3 = arith.subf %s2, %root : f32
      %v3 = attn.capture_load %c3[%b, %twice] : tensor<?x?xf32>
      %s4 = arith.addf %s3, %v3 : f32
      attn.yield %s4 : f32
    }
    : (!t, !t, !t, tensor<?x?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
