// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s
// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_90a" | FileCheck %s --check-prefix=STEPS

!rows = !warp.frag<64x1xf32, acc, 4>

// CHECK-LABEL: gpu.func @math
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%{{.*}}) : (f32) -> f32
// CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[X]])
// CHECK: %[[L:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// CHECK: arith.mulf %[[L]], %cst
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK: llvm.call_intrinsic "llvm.fabs"
// CHECK: llvm.intr.fma
// CHECK-NOT: math.
// CHECK-NOT: arith.divf
// CHECK: gpu.return
func.func @math(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @math blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !rows
    %a = math.exp2 %f : !rows
    %b = math.exp %a : !rows
    %c = math.log %b : !rows
    %d = arith.divf %c, %f : !rows
    %e = math.absf %d : !rows
    %g = math.fma %e, %e, %e : !rows
    warp.store %g, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// Softcap: accurate, not tanh.approx.
// CHECK-LABEL: gpu.func @tanh
// CHECK: llvm.nvvm.ex2.approx.ftz
// CHECK: llvm.nvvm.rcp.approx.ftz.f
// CHECK-NOT: math.tanh
func.func @tanh(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @tanh blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !rows
    %a = math.tanh %f : !rows
    warp.store %a, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// Where an error that is small beside 1 is allowed: 1 - 2 / (exp(2 x) + 1) for
// all x, and one factor with what x is a product of.
// CHECK-LABEL: gpu.func @approximate_tanh
// CHECK: %[[FACTOR:.*]] = arith.constant 1.442695{{.*}} : f32
// CHECK: %[[Y:.*]] = arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[Y]])
// CHECK: %[[SUM:.*]] = arith.addf %[[E]], %{{.*}}
// CHECK: %[[SHARE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SUM]])
// CHECK: llvm.intr.fma(%[[SHARE]]
// CHECK-NOT: arith.select
// CHECK: gpu.return
//
// From SM90 on the quotient is multiplications, too.
// STEPS-LABEL: gpu.func @approximate_tanh
// STEPS: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// STEPS: %[[SUM:.*]] = arith.addf %[[E]], %{{.*}}
// STEPS: %[[D:.*]] = arith.minimumf %[[SUM]], %{{.*}}
// STEPS: %[[BITS:.*]] = arith.bitcast %[[D]] : f32 to i32
// STEPS: %[[LESS:.*]] = arith.subi %{{.*}}, %[[BITS]]
// STEPS: %[[GUESS:.*]] = arith.bitcast %[[LESS]] : i32 to f32
// STEPS: %[[MINUS:.*]] = arith.negf %[[D]]
// STEPS: %[[STEP:.*]] = llvm.intr.fma(%[[MINUS]], %[[GUESS]], %{{.*}})
// STEPS: %[[NEAR:.*]] = arith.mulf %[[GUESS]], %[[STEP]]
// STEPS: %[[REST:.*]] = llvm.intr.fma(%[[MINUS]], %[[NEAR]], %{{.*}})
// STEPS: %[[BOTH:.*]] = llvm.intr.fma(%[[REST]], %[[REST]], %[[REST]])
// STEPS: %[[SHARE:.*]] = llvm.intr.fma(%[[NEAR]], %[[BOTH]], %[[NEAR]])
// STEPS: llvm.intr.fma(%[[SHARE]]
// STEPS-NOT: rcp
// STEPS: gpu.return
func.func @approximate_tanh(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  warp.kernel @approximate_tanh blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %y = arith.mulf %x, %half : f32
    %a = math.tanh %y fastmath<afn> : f32
    %f = warp.splat %a : !rows
    warp.store %f, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// Where it is a factor of a sum, one operation then makes both.
// CHECK-LABEL: gpu.func @tanh_in_a_sum
// CHECK: llvm.nvvm.rcp.approx.ftz.f
// CHECK-COUNT-2: llvm.intr.fma
// CHECK: gpu.return
// STEPS-LABEL: gpu.func @tanh_in_a_sum
// STEPS-COUNT-3: llvm.intr.fma
// STEPS: %[[SHARE:.*]] = llvm.intr.fma
// STEPS: %[[REST:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// STEPS: %[[SCALE:.*]] = arith.constant -6.000000e+00 : f32
// STEPS: llvm.intr.fma(%[[SHARE]], %[[SCALE]], %[[REST]])
// STEPS-NOT: llvm.intr.fma
// STEPS: gpu.return
func.func @tanh_in_a_sum(%x: f32, %b: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %three = arith.constant 3.0 : f32
  warp.kernel @tanh_in_a_sum blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %a = math.tanh %x fastmath<afn> : f32
    %y = math.fma %a, %three, %b : f32
    %f = warp.splat %y : !rows
    warp.store %f, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// A power that all elements share is accurate: a polynomial for what is left of
// the nearest integer, and 2 to the integer.
// CHECK-LABEL: gpu.func @shared_power
// CHECK: %[[N:.*]] = llvm.call_intrinsic "llvm.roundeven"(%[[X:.*]]) : (f32) -> f32
// CHECK: %[[R:.*]] = arith.subf %[[X]], %[[N]] : f32
// CHECK: %[[REST:.*]] = arith.select %{{.*}}, %[[R]], %{{.*}} : f32
// CHECK-COUNT-8: llvm.intr.fma(%{{.*}}, %[[REST]], %{{.*}})
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[HALF:.*]] = arith.subf %[[N]], %[[ONE]] : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[HALF]])
// CHECK-NOT: ex2.approx
// CHECK: gpu.return
func.func @shared_power(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @shared_power blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %y = math.exp2 %x : f32
    %f = warp.splat %y : !rows
    warp.store %f, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// f16 scalars (what a kernel computes per head) go through f32.
// CHECK-LABEL: gpu.func @half
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: llvm.nvvm.ex2.approx.ftz
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f16, %o: memref<?xf16>) {
  %c1 = arith.constant 1 : index
  warp.kernel @half blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %y = math.exp2 %x : f16
    %f = warp.splat %y : !warp.frag<64x1xf16, acc, 4>
    warp.store %f, %o[%i] rows : !warp.frag<64x1xf16, acc, 4>, memref<?xf16>
  }
  return
}

// Upstream's formulae, where there is no instruction.
// CHECK-LABEL: gpu.func @others
// CHECK-NOT: math.
// CHECK: gpu.return
func.func @others(%x: f32, %n: i32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @others blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %m = math.absi %n : i32
    %y = arith.sitofp %m : i32 to f32
    %f = warp.splat %x : !rows
    %g = warp.splat %y : !rows
    %a = math.sin %f : !rows
    %b = math.erf %a : !rows
    %c = math.powf %b, %g : !rows
    %d = math.atan %c : !rows
    %e = math.cosh %d : !rows
    %h = math.round %e : !rows
    %l = math.log10 %h : !rows
    warp.store %l, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// A quotient of which an integer or a choice is made is rounded once, and so is
// a position as a float; others are as quick as the rest allows.
// CHECK-LABEL: gpu.func @exact_quotients
// CHECK-SAME: %[[X:[^:]*]]: f32, %[[H:[^:]*]]: f16
// CHECK-DAG: %[[HEAD:.*]] = llvm.call_intrinsic "llvm.nvvm.div.rn.f"(%[[X]], %[[X]]) : (f32, f32) -> f32
// CHECK-DAG: arith.cmpf olt, %[[HEAD]], %[[X]]
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.div.full"(%[[X]], %[[X]]) : (f32, f32) -> f32
// CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.div.rn.f"
// CHECK: %[[NARROW:.*]] = arith.truncf %[[Q]] : f32 to f16
// CHECK: arith.fptosi %[[NARROW]] : f16 to i32
// CHECK-NOT: arith.divf
// CHECK: gpu.return
func.func @exact_quotients(%x: f32, %h: f16, %o: memref<?xf32>, %n: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @exact_quotients blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %exact = arith.divf %x, %x : f32
    %less = arith.cmpf olt, %exact, %x : f32
    %quick = arith.divf %x, %x : f32
    %y = arith.select %less, %x, %quick : f32
    %f = warp.splat %y : !rows
    warp.store %f, %o[%i] rows : !rows, memref<?xf32>
    %a = warp.splat %h : !warp.frag<64x1xf16, acc, 4>
    %q = arith.divf %a, %a : !warp.frag<64x1xf16, acc, 4>
    %z = warp.cast fptosi %q : !warp.frag<64x1xf16, acc, 4> to !warp.frag<64x1xi32, acc, 4>
    warp.store %z, %n[%i] rows : !warp.frag<64x1xi32, acc, 4>, memref<?xi32>
  }
  return
}

// Whether a number is infinite is no choice that a rounding changes: scores that
// are hidden are found so.
// CHECK-LABEL: gpu.func @infinite_quotients
// CHECK-NOT: div.rn
// CHECK-COUNT-2: llvm.nvvm.div.full
// CHECK: gpu.return
func.func @infinite_quotients(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %hidden = arith.constant 0xFF800000 : f32
  warp.kernel @infinite_quotients blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %shared = arith.divf %x, %x : f32
    %is_hidden = arith.cmpf oeq, %shared, %hidden : f32
    %y = arith.select %is_hidden, %x, %shared : f32
    %f = warp.splat %y : !rows
    %none = warp.splat %hidden : !rows
    %q = arith.divf %f, %f : !rows
    %is_none = arith.cmpf une, %q, %none : !rows
    %z = warp.select %is_none, %q, %f : !warp.frag<64x1xi1, acc, 4>, !rows
    warp.store %z, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}

// A root for each element is an approximation, which has no branch; one of
// which a choice is made, or that all elements share, is rounded right.
// CHECK-LABEL: gpu.func @roots
// CHECK-SAME: %[[X:[^:]*]]: f32
// CHECK: %[[SHARED:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"(%[[X]])
// CHECK-NOT: sqrt.rn
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"
// CHECK-DAG: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"
// CHECK-DAG: arith.fptosi %[[Q]] : f32 to i32
// CHECK-NOT: math.sqrt
// CHECK: gpu.return
func.func @roots(%x: f32, %o: memref<?xf32>, %n: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @roots blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %shared = math.sqrt %x : f32
    %a = warp.splat %shared : !rows
    %quick = math.sqrt %a : !rows
    warp.store %quick, %o[%i] rows : !rows, memref<?xf32>
    %b = arith.addf %a, %a : !rows
    %exact = math.sqrt %b : !rows
    %z = warp.cast fptosi %exact : !rows to !warp.frag<64x1xi32, acc, 4>
    warp.store %z, %n[%i] rows : !warp.frag<64x1xi32, acc, 4>, memref<?xi32>
  }
  return
}

// Beside products of ieee all are.
// CHECK-LABEL: gpu.func @precise_roots
// CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"
// CHECK-NOT: sqrt.approx
// CHECK: gpu.return
func.func @precise_roots(%x: f32, %o: memref<?xf32>) attributes {attn.numerics = #attn.numerics<f32_products = ieee>} {
  %c1 = arith.constant 1 : index
  warp.kernel @precise_roots blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %a = warp.splat %x : !rows
    %r = math.sqrt %a : !rows
    warp.store %r, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}
