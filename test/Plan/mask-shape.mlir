// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s
// At d = 64 a mask that shows keys here and there has smaller tiles.

!t = tensor<2x8x?x64xbf16>
!l = tensor<2x8x?xf32>

// CHECK-LABEL: func.func @window
// CHECK: block_q = 256, block_k = 64
func.func @window(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %left = arith.constant 100 : i32
      %first = arith.subi %i, %left : i32
      %above = arith.cmpi sle, %j, %i : i32
      %below = arith.cmpi sle, %first, %j : i32
      %m = arith.andi %above, %below : i1
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// Both conditions bound the keys from above: one interval.
// CHECK-LABEL: func.func @prefix
// CHECK: block_q = 256, block_k = 64
func.func @prefix(%q: !t, %k: !t, %lengths: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%lengths)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ends: tensor<?xi32>) {
      %end = attn.capture_load %ends[%b] : tensor<?xi32>
      %causal = arith.cmpi sge, %i, %j : i32
      %within = arith.cmpi slt, %j, %end : i32
      %m = arith.ori %causal, %within : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// One condition bounds them from above, the other from below.
// CHECK-LABEL: func.func @first_and_near
// CHECK: block_q = 128, block_k = 128
func.func @first_and_near(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %left = arith.constant 100 : i32
      %count = arith.constant 4 : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %distance, %left : i32
      %first = arith.cmpi slt, %j, %count : i32
      %m = arith.ori %near, %first : i1
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @every_fourth
// CHECK: block_q = 128, block_k = 128
func.func @every_fourth(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %four = arith.constant 4 : i32
      %zero = arith.constant 0 : i32
      %distance = arith.subi %i, %j : i32
      %rest = arith.remsi %distance, %four : i32
      %m = arith.cmpi eq, %rest, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// The same remainder, as Python's // gives it.
// CHECK-LABEL: func.func @every_fourth_by_division
// CHECK: block_q = 128, block_k = 128
func.func @every_fourth_by_division(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %four = arith.constant 4 : i32
      %quarter = arith.floordivsi %j, %four : i32
      %multiple = arith.muli %quarter, %four : i32
      %m = arith.cmpi eq, %multiple, %j : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// A chunk is one interval.
// CHECK-LABEL: func.func @chunks
// CHECK: block_q = 256, block_k = 64
func.func @chunks(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 512 : i32
      %own = arith.divsi %i, %size : i32
      %other = arith.divsi %j, %size : i32
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// Data that are read by position.
// CHECK-LABEL: func.func @documents
// CHECK: block_q = 128, block_k = 128
func.func @documents(%q: !t, %k: !t, %ids: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: tensor<?xi32>) {
      %own = attn.capture_load %d[%i] : tensor<?xi32>
      %other = attn.capture_load %d[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}
