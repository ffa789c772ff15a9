// Masks of positions alone are run for some queries: the tiles whose blocks
// cost least are taken, where blocks of some sizes are empty, and where whole
// blocks are shown or each is in part.
//
// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!w = tensor<1x8x?x128xbf16>
!l = tensor<1x8x?xf32>

// The last 16 keys of each 128: every second block of 64 keys is empty.
// CHECK-LABEL: @last_of_128
// CHECK: block_q = 256, block_k = 64, warps = 16, stages = 4>
func.func @last_of_128(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 128 : i32
      %start = arith.constant 112 : i32
      %rest = arith.remsi %j, %size : i32
      %m = arith.cmpi sge, %rest, %start : i32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// Tiles of 128 queries lie within the chunks of 128 that see each other, others
// across: each visits one block or more.
// CHECK-LABEL: @chunks
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @chunks(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 128 : i32
      %own = arith.divsi %i, %size : i32
      %other = arith.divsi %j, %size : i32
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// All blocks in part: the remainders of rows and of columns of an image.
// CHECK-LABEL: @wide_axial
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @wide_axial(%q: !w) -> !w {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %width = arith.constant 64 : i32
      %row = arith.divsi %i, %width : i32
      %other_row = arith.divsi %j, %width : i32
      %column = arith.remsi %i, %width : i32
      %other_column = arith.remsi %j, %width : i32
      %same_row = arith.cmpi eq, %row, %other_row : i32
      %same_column = arith.cmpi eq, %column, %other_column : i32
      %m = arith.ori %same_row, %same_column : i1
      attn.yield %m : i1
    } : (!w, !w, !w) -> (!w, !l)
  return %o : !w
}

// Heads that see all and heads that see what is near: the first and the sixth
// are run.
// CHECK-LABEL: @heads
// CHECK: block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @heads(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %two = arith.constant 2 : i32
      %zero = arith.constant 0 : i32
      %reach = arith.constant 64 : i32
      %rest = arith.remsi %h, %two : i32
      %whole = arith.cmpi eq, %rest, %zero : i32
      %distance = arith.subi %i, %j : i32
      %far = math.absi %distance : i32
      %near = arith.cmpi slt, %far, %reach : i32
      %m = arith.ori %whole, %near : i1
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// Data decide: the form of the mask tells.
// CHECK-LABEL: @data
// CHECK: block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @data(%q: !q, %ids: tensor<?xi32>) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xi32>) {
      %own = attn.capture_load %t[%i] : tensor<?xi32>
      %other = attn.capture_load %t[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!q, !q, !q, tensor<?xi32>) -> (!q, !l)
  return %o : !q
}
