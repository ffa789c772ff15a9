// Where the number of key blocks is known the loops of the role that copies must
// not fold: those of the role that computes depend on the group and do not.
// RUN: attn-opt %s --attn-sm90 | FileCheck %s
// RUN: attn-opt %s --attn-sm90=peel-masks=false | FileCheck %s
// RUN: attn-opt %s --attn-sm90="overlap-products=false persist=false" | FileCheck %s

// CHECK-LABEL: func.func @ragged(
// CHECK: gpu.launch_func
func.func @ragged(%q: tensor<1x2x300x32xbf16>, %k: tensor<1x2x129x32xbf16>,
                  %v: tensor<1x2x129x32xbf16>) -> (tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    : (tensor<1x2x300x32xbf16>, tensor<1x2x129x32xbf16>, tensor<1x2x129x32xbf16>)
      -> (tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>)
  return %o, %lse : tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>
}

// One block of keys.
// CHECK-LABEL: func.func @one(
// CHECK: gpu.launch_func
func.func @one(%q: tensor<1x1x100x64xbf16>, %k: tensor<1x1x5x64xbf16>,
               %v: tensor<1x1x5x64xbf16>) -> (tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>}
    : (tensor<1x1x100x64xbf16>, tensor<1x1x5x64xbf16>, tensor<1x1x5x64xbf16>)
      -> (tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>)
  return %o, %lse : tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>
}

// Blocks that a group passes over at both ends, of a range that is known.
// CHECK-LABEL: func.func @both_ends(
// CHECK: gpu.launch_func
func.func @both_ends(%q: tensor<1x1x512x64xbf16>, %k: tensor<1x1x100x64xbf16>,
                     %v: tensor<1x1x100x64xbf16>) -> (tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 0, right = 64>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x1x512x64xbf16>, tensor<1x1x100x64xbf16>, tensor<1x1x100x64xbf16>)
      -> (tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>)
  return %o, %lse : tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>
}

// The full blocks of all groups begin at one number, and all groups visit the
// same blocks.
// CHECK-LABEL: func.func @one_bound_of_two(
// CHECK: gpu.launch_func
func.func @one_bound_of_two(%q: tensor<?x?x512x64xbf16>, %k: tensor<?x?x1024x64xbf16>,
                            %v: tensor<?x?x1024x64xbf16>) -> (tensor<?x?x512x64xbf16>, tensor<?x?x512xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %first = arith.constant 5 : i32
      %end = arith.constant 1000 : i32
      %distance = arith.constant 600 : i32
      %is_after = arith.cmpi sge, %j, %first : i32
      %is_before = arith.cmpi slt, %j, %end : i32
      %last = arith.addi %i, %distance : i32
      %is_near = arith.cmpi sle, %j, %last : i32
      %is_either = arith.ori %is_before, %is_near : i1
      %is_seen = arith.andi %is_after, %is_either : i1
      attn.yield %is_seen : i1
    } : (tensor<?x?x512x64xbf16>, tensor<?x?x1024x64xbf16>, tensor<?x?x1024x64xbf16>)
      -> (tensor<?x?x512x64xbf16>, tensor<?x?x512xf32>)
  return %o, %lse : tensor<?x?x512x64xbf16>, tensor<?x?x512xf32>
}

// No keys, with gradients: every loop over blocks is empty.
// CHECK-LABEL: func.func @no_keys(
// CHECK: gpu.launch_func
func.func @no_keys(%q: tensor<1x4x245x80xbf16>, %k: tensor<1x2x0x80xbf16>, %v: tensor<1x2x0x80xbf16>,
                   %o: tensor<1x4x245x80xbf16>, %lse: tensor<1x4x245xf32>,
                   %do: tensor<1x4x245x80xbf16>) -> tensor<1x4x245x80xbf16> {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    : (tensor<1x4x245x80xbf16>, tensor<1x2x0x80xbf16>, tensor<1x2x0x80xbf16>, tensor<1x4x245x80xbf16>, tensor<1x4x245xf32>, tensor<1x4x245x80xbf16>)
      -> (tensor<1x4x245x80xbf16>, tensor<1x2x0x80xbf16>, tensor<1x2x0x80xbf16>)
  return %dq : tensor<1x4x245x80xbf16>
}
