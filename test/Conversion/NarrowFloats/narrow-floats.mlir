// RUN: attn-opt %s --convert-narrow-floats | FileCheck %s
// Nothing is left that wants an instruction for 16 bits, or a function.
// RUN: attn-opt %s --convert-narrow-floats | FileCheck %s --check-prefix=NONE
// NONE-NOT: {{arith.(extf|truncf|addf|mulf|maximumf|cmpf|sitofp|uitofp|fptosi).*b?f16}}
// NONE-NOT: {{math.* : b?f16}}

// CHECK-LABEL: @bf16_to_f32
func.func @bf16_to_f32(%x: bf16) -> f32 {
  // CHECK: %[[HALF:.*]] = arith.bitcast %{{.*}} : bf16 to i16
  // CHECK: %[[BITS:.*]] = arith.extui %[[HALF]] : i16 to i32
  // CHECK: %[[MOVED:.*]] = arith.shli %[[BITS]], %{{.*}} : i32
  // CHECK: arith.bitcast %[[MOVED]] : i32 to f32
  %y = arith.extf %x : bf16 to f32
  return %y : f32
}

// CHECK-LABEL: @f32_to_bf16
func.func @f32_to_bf16(%x: f32) -> bf16 {
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X:.*]], %[[X]] : f32
  // CHECK: %[[BITS:.*]] = arith.select %[[NAN]]
  // CHECK: %[[HALF:.*]] = arith.trunci %[[BITS]] : i32 to i16
  // CHECK: arith.bitcast %[[HALF]] : i16 to bf16
  %y = arith.truncf %x : f32 to bf16
  return %y : bf16
}

// Through f32, and not rounded twice: the last bit says that there was more.
// CHECK-LABEL: @f64_to_f16
func.func @f64_to_f16(%x: f64) -> f16 {
  // CHECK: %[[NEAREST:.*]] = arith.truncf %{{.*}} : f64 to f32
  // CHECK: arith.extf %[[NEAREST]] : f32 to f64
  // CHECK: arith.cmpf one
  // CHECK: arith.bitcast %{{.*}} : i16 to f16
  %y = arith.truncf %x : f64 to f16
  return %y : f16
}

// CHECK-LABEL: @i32_to_bf16
func.func @i32_to_bf16(%x: i32) -> bf16 {
  // CHECK: arith.sitofp %{{.*}} : i32 to f64
  // CHECK: arith.bitcast %{{.*}} : i16 to bf16
  %y = arith.sitofp %x : i32 to bf16
  return %y : bf16
}

// Every step is rounded: no conversion is left that could be folded away.
// CHECK-LABEL: @arithmetic
func.func @arithmetic(%x: bf16, %y: bf16) -> (bf16, i1) {
  // CHECK: arith.mulf %{{.*}} : f32
  // CHECK: arith.trunci
  // CHECK: arith.addf %{{.*}} : f32
  // CHECK: arith.trunci
  // CHECK: arith.cmpf olt, %{{.*}} : f32
  %a = arith.mulf %x, %y : bf16
  %b = arith.addf %a, %y : bf16
  %c = arith.cmpf olt, %b, %x : bf16
  return %b, %c : bf16, i1
}

// CHECK-LABEL: @functions
func.func @functions(%x: f16) -> f16 {
  // CHECK: math.floor %{{.*}} : f32
  // CHECK: math.absf %{{.*}} : f32
  %a = math.floor %x : f16
  %b = math.absf %a : f16
  return %b : f16
}

// What is only moved stays.
// CHECK-LABEL: @moved
// CHECK-NEXT: arith.constant 1.000000e+00 : bf16
// CHECK-NEXT: arith.select %{{.*}} : bf16
// CHECK-NEXT: arith.bitcast %{{.*}} : bf16 to i16
// CHECK-NEXT: return
func.func @moved(%x: bf16, %flag: i1) -> i16 {
  %one = arith.constant 1.0 : bf16
  %y = arith.select %flag, %x, %one : bf16
  %z = arith.bitcast %y : bf16 to i16
  return %z : i16
}

// Wider numbers are none of its business.
// CHECK-LABEL: @wide
// CHECK-NEXT: arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT: arith.addf %{{.*}} : f32
// CHECK-NEXT: return
func.func @wide(%x: f64) -> f32 {
  %y = arith.truncf %x : f64 to f32
  %z = arith.addf %y, %y : f32
  return %z : f32
}

// CHECK-LABEL: @vectors
func.func @vectors(%x: vector<4xf32>) -> vector<4xf16> {
  // CHECK: arith.trunci %{{.*}} : vector<4xi32> to vector<4xi16>
  // CHECK: arith.bitcast %{{.*}} : vector<4xi16> to vector<4xf16>
  %y = arith.truncf %x : vector<4xf32> to vector<4xf16>
  return %y : vector<4xf16>
}

// What has a type of another room stays: fragments of i32 there are none of.
// CHECK-LABEL: @fragments
// CHECK: math.isfinite %{{.*}} : !warp.frag<64x64xf16, a, 4>
func.func @fragments(%f: !warp.frag<64x64xf16, a, 4>) -> !warp.frag<64x64xi1, a, 4> {
  %c = math.isfinite %f : !warp.frag<64x64xf16, a, 4>
  return %c : !warp.frag<64x64xi1, a, 4>
}
