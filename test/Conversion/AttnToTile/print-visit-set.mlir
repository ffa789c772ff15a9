// RUN: attn-opt %s --attn-expand-variants --attn-print-visit-set -o /dev/null | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --convert-attn-to-tile --tile-peel-masks --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!t = tensor<?x8x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<2x8x8192x64xbf16>

// CHECK-LABEL: // @top_left
// CHECK-NEXT: // visit set, 128 queries by 64 keys, block n of [0, blocks)
// CHECK-NEXT: //   visited: n <= 2 block + 1
// CHECK-NEXT: //   masked:  n >= 2 block
// CHECK-NEXT: //     or n >= ceil((keys - 63) / 64)
// CHECK-NEXT: //   every row sees a key in its first block: yes
func.func @top_left(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal<top_left>],
      plan = #attn.plan<target = cpu, block_q = 128, block_k = 64>}
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// The rows of a block belong to documents s0 to s1; its keys start with the
// first of s0 (number s0 - 1 has no key after s4) and end with the last of s1.
// CHECK-LABEL: // @documents
// CHECK: //   s0: the least of the rows of {{.*}} = tile.search
// CHECK: //   s1: the greatest of the rows of {{.*}} = tile.search
// CHECK: //   s2: the number of keys not above s1 in
// CHECK: //   s3: the number of keys not above s0 in
// CHECK: //   s4: the number of keys not above s0 - 1 in
// CHECK: //   s5: the number of keys not above s1 - 1 in
// CHECK: //   visited: {{.*}}n <= 2 block + 1, n <= floor((s2 - 1) / 64), n >= ceil((s4 - 63) / 64)
// CHECK: //   masked:  n >= ceil((s3 - 63) / 64)
// CHECK: //     or n <= floor((s5 - 1) / 64)
// CHECK: //     or n >= 2 block
// CHECK: //     or n >= ceil((keys - 63) / 64)
// CHECK: //   every row sees a key in its first block: not always
func.func @documents(%q: !t, %k: !t, %v: !t, %offsets: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %v captures(%offsets) {
      plan = #attn.plan<target = cpu, block_q = 128, block_k = 64>}
  mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?xi32>) {
    %x = attn.capture_search %c[], %i : tensor<?xi32>
    %y = attn.capture_search %c[], %j : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %causal = arith.cmpi sle, %j, %i : i32
    %m = arith.andi %same, %causal : i1
    attn.yield %m : i1
  } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// A window of 13 by 13 in rows of 128: exactly 6 blocks on either side.
// CHECK-LABEL: // @neighbours
// CHECK: //   visited: n >= block - 6, n <= block + 6
// CHECK: //   masked:  all
// CHECK: //   of 4096 pairs of blocks 790 are visited, 790 of them masked
// REMARK: key-blocks{{.*}}masked=790, skipped=3306, visited=790
func.func @neighbours(%q: !s, %k: !s, %v: !s) -> !s {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 128, block_k = 128>}
  mask(%b: i32, %h: i32, %i: i32, %j: i32) {
    %width = arith.constant 128 : i32
    %reach = arith.constant 6 : i32
    %iy = arith.divui %i, %width : i32
    %ix = arith.remui %i, %width : i32
    %jy = arith.divui %j, %width : i32
    %jx = arith.remui %j, %width : i32
    %dy = arith.subi %iy, %jy : i32
    %dx = arith.subi %ix, %jx : i32
    %ay = math.absi %dy : i32
    %ax = math.absi %dx : i32
    %my = arith.cmpi sle, %ay, %reach : i32
    %mx = arith.cmpi sle, %ax, %reach : i32
    %m = arith.andi %my, %mx : i1
    attn.yield %m : i1
  } : (!s, !s, !s) -> (!s, tensor<2x8x8192xf32>)
  return %o : !s
}

// Causal by a mask of one's own is the same set.
// CHECK-LABEL: // @causal_by_region
// CHECK: //   visited: n <= block
// CHECK: //   masked:  n >= block
// CHECK: //   every row sees a key in its first block: yes
// CHECK: //   of 4096 pairs of blocks 2080 are visited, 64 of them masked
// REMARK: key-blocks{{.*}}masked=64, skipped=2016, visited=2080
func.func @causal_by_region(%q: !s, %k: !s, %v: !s) -> !s {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 128, block_k = 128>}
  mask(%b: i32, %h: i32, %i: i32, %j: i32) {
    %m = arith.cmpi sge, %i, %j : i32
    attn.yield %m : i1
  } : (!s, !s, !s) -> (!s, tensor<2x8x8192xf32>)
  return %o : !s
}

// Global keys and a window: two intervals, and nothing known of the flags.
// CHECK-LABEL: // @global_and_window
// CHECK: //   visited: n <= 1
// CHECK-NEXT: //     or keys - 128 block + 299 >= 0, n >= 2 block - 5, n <= 2 block + 6
// CHECK-NEXT: //   masked:  all
// CHECK: //   part of the mask is opaque
// REMARK: peel-masks{{.*}}intervals=2, rows-seen=0, segments=1, unmasked=0
func.func @global_and_window(%q: !t, %k: !t, %v: !t, %flags: tensor<?x?xi1>) -> !t {
  %o, %lse = attn.attention %q, %k, %v captures(%flags) {plan = #attn.plan<target = cpu, block_q = 128, block_k = 64>}
  mask(%b: i32, %h: i32, %i: i32, %j: i32, %f: tensor<?x?xi1>) {
    %global = arith.constant 100 : i32
    %reach = arith.constant 300 : i32
    %a = arith.cmpi slt, %j, %global : i32
    %d = arith.subi %i, %j : i32
    %e = math.absi %d : i32
    %c = arith.cmpi sle, %e, %reach : i32
    %n = arith.ori %a, %c : i1
    %flag = attn.capture_load %f[%b, %j] : tensor<?x?xi1>
    %m = arith.andi %n, %flag : i1
    attn.yield %m : i1
  } : (!t, !t, !t, tensor<?x?xi1>) -> (!t, !l)
  return %o : !t
}

// The chunk of a query block is computed before the loop; its keys follow.
// CHECK-LABEL: // @chunks
// CHECK: //   s0: floor((128 block) / 1024)
// CHECK: //   visited: {{.*}}n <= block, n >= 8 s0
// CHECK: //   masked:  n >= block
// CHECK: //   of 4096 pairs of blocks 288 are visited, 64 of them masked
func.func @chunks(%q: !s, %k: !s, %v: !s) -> !s {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 128, block_k = 128>}
  mask(%b: i32, %h: i32, %i: i32, %j: i32) {
    %size = arith.constant 1024 : i32
    %x = arith.divui %i, %size : i32
    %y = arith.divui %j, %size : i32
    %same = arith.cmpi eq, %x, %y : i32
    %causal = arith.cmpi sle, %j, %i : i32
    %m = arith.andi %same, %causal : i1
    attn.yield %m : i1
  } : (!s, !s, !s) -> (!s, tensor<2x8x8192xf32>)
  return %o : !s
}
