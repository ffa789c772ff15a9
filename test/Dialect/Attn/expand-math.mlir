// RUN: attn-opt %s --attn-expand-math | FileCheck %s

!t = tensor<1x2x8x16xf16>
!l = tensor<1x2x8xf32>

// CHECK-LABEL: func.func @classes
// CHECK: arith.cmpf uno, %[[X:.*]], %[[X]] : f32
// CHECK: %[[A:.*]] = math.absf %[[X]] : f32
// CHECK: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: arith.cmpf oeq, %[[A]], %[[INF]] : f32
// CHECK: arith.cmpf olt, %{{.*}} : f32
// CHECK-DAG: %[[SMALL:.*]] = arith.constant 1.17549435E-38 : f32
// CHECK-DAG: %[[NORMAL:.*]] = arith.cmpf oge, %{{.*}}, %[[SMALL]] : f32
// CHECK: %[[FINITE:.*]] = arith.cmpf olt
// CHECK: arith.andi %[[NORMAL]], %[[FINITE]] : i1
func.func @classes(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %nan = math.isnan %x : f32
      %inf = math.isinf %x : f32
      %finite = math.isfinite %x : f32
      %normal = math.isnormal %x : f32
      %a = arith.andi %nan, %inf : i1
      %c = arith.andi %finite, %normal : i1
      %d = arith.ori %a, %c : i1
      %y = arith.select %d, %x, %x : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @trailing_zeros
// CHECK: %[[NEG:.*]] = arith.subi %{{.*}}, %[[I:.*]] : i32
// CHECK: %[[LOW:.*]] = arith.andi %[[I]], %[[NEG]] : i32
// CHECK: %[[BELOW:.*]] = arith.subi %[[LOW]], %{{.*}} : i32
// CHECK: math.ctpop %[[BELOW]] : i32
// CHECK-NOT: math.cttz
func.func @trailing_zeros(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %n = math.cttz %i : i32
      %m = arith.cmpi sle, %n, %j : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @two_results
// CHECK-DAG: %[[SUM:.*]] = arith.addi %[[I:.*]], %[[J:.*]] : i32
// CHECK-DAG: arith.cmpi ult, %[[SUM]], %[[I]] : i32
// CHECK: arith.extui %[[I]] : i32 to i64
// CHECK: %[[P:.*]] = arith.muli %{{.*}} : i64
// CHECK: %[[H:.*]] = arith.shrui %[[P]], %{{.*}} : i64
// CHECK: arith.trunci %[[H]] : i64 to i32
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK-NOT: _extended
// CHECK: math.sin
// CHECK: math.cos
func.func @two_results(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %sum, %carry = arith.addui_extended %i, %j : i32, i1
      %low, %high = arith.mului_extended %i, %j : i32
      %slow, %shigh = arith.mulsi_extended %i, %j : i32
      %sin, %cos = math.sincos %x : f32
      %y = arith.select %carry, %sin, %cos : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// 7 bits of the exponent, and what a negative one gives.
// CHECK-LABEL: func.func @power
// CHECK-COUNT-14: arith.muli %{{.*}} : i8
// CHECK-NOT: arith.muli
// CHECK: %[[NEG:.*]] = arith.cmpi slt
// CHECK: arith.select %[[NEG]]
// CHECK-NOT: math.ipowi
func.func @power(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %r = arith.trunci %i : i32 to i8
      %s = arith.trunci %j : i32 to i8
      %p = math.ipowi %r, %s : i8
      %m = arith.cmpi sle, %p, %s : i8
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// Functions of 16 bits are those of f32, rounded; what is exact stays.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[R:.*]] = math.round %[[W]] : f32
// CHECK: %[[N:.*]] = arith.truncf %[[R]] : f32 to f16
// CHECK: math.floor %[[N]] : f16
// CHECK: %[[S:.*]] = math.sin %{{.*}} : f32
// CHECK: arith.truncf %[[S]] : f32 to f16
// CHECK: math.cos %{{.*}} : f32
// CHECK: math.round %{{.*}} : f32
// CHECK-NOT: math.{{.*}} : f16
func.func @narrow(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %narrow = arith.truncf %x : f32 to f16
      %r = math.round %narrow : f16
      %f = math.floor %r : f16
      %s, %c = math.sincos %f : f16
      %sum = arith.addf %s, %c : f16
      %wide = arith.extf %sum : f16 to f32
      %y = math.round %wide : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// A shift by what may be too much; by what is not; of one bit.

// CHECK-LABEL: func.func @shifts
// CHECK: %[[LAST:.*]] = arith.constant 31 : i32
// CHECK: %[[BY:.*]] = arith.minui %[[J:.*]], %[[LAST]] : i32
// CHECK: %[[LEFT:.*]] = arith.shli %[[I:.*]], %[[BY]] : i32
// CHECK: %[[IN:.*]] = arith.cmpi ule, %[[J]], %[[LAST]] : i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[A:.*]] = arith.select %[[IN]], %[[LEFT]], %[[ZERO]] : i32
// CHECK: %[[BY2:.*]] = arith.minui %[[J]], %{{.*}} : i32
// CHECK: arith.shrsi %[[A]], %[[BY2]] : i32
// CHECK-NOT: arith.select
// CHECK: %[[C3:.*]] = arith.constant 3 : i32
// CHECK: arith.shrui %{{.*}}, %[[C3]] : i32
// CHECK: %[[STAYS:.*]] = arith.xori %{{.*}}, %{{.*}} : i1
// CHECK: arith.andi %{{.*}}, %[[STAYS]] : i1
// CHECK-NOT: arith.shli
func.func @shifts(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %a = arith.shli %i, %j : i32
      %s = arith.shrsi %a, %j : i32
      %c3 = arith.constant 3 : i32
      %u = arith.shrui %s, %c3 : i32
      %f = arith.cmpi eq, %u, %h : i32
      %g = arith.cmpi eq, %j, %h : i32
      %m = arith.shli %f, %g : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// A clamp: the upper bound first, then the lower one.

// CHECK-LABEL: func.func @clamp
// CHECK: score(%[[X:.*]]: f32,
// CHECK: %[[LOW:.*]] = arith.constant -3.0
// CHECK: %[[HIGH:.*]] = arith.constant 2.0
// CHECK: %[[BELOW:.*]] = arith.minimumf %[[X]], %[[HIGH]] : f32
// CHECK: %[[INSIDE:.*]] = arith.maximumf %[[BELOW]], %[[LOW]] : f32
// CHECK: attn.yield %[[INSIDE]]
func.func @clamp(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %low = arith.constant -3.0 : f32
      %high = arith.constant 2.0 : f32
      %y = math.clampf %x to [%low, %high] : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}
