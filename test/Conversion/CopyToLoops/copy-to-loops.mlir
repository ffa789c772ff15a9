// RUN: attn-opt %s --convert-copy-to-loops | FileCheck %s

// CHECK-LABEL: func @strided
// CHECK-SAME: %[[A:.*]]: memref<?x4xf32, strided<[?, ?], offset: ?>>, %[[B:.*]]: memref<?x4xf32>
func.func @strided(%a: memref<?x4xf32, strided<[?, ?], offset: ?>>, %b: memref<?x4xf32>) {
  // CHECK: %[[M:.*]] = memref.dim %[[A]], %c0
  // CHECK: %[[N:.*]] = memref.dim %[[A]], %c1
  // CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %[[M]]
  // CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %[[N]]
  // CHECK: %[[X:.*]] = memref.load %[[A]][%[[I]], %[[J]]]
  // CHECK: memref.store %[[X]], %[[B]][%[[I]], %[[J]]]
  // CHECK-NOT: memref.copy
  memref.copy %a, %b : memref<?x4xf32, strided<[?, ?], offset: ?>> to memref<?x4xf32>
  return
}

// CHECK-LABEL: func @scalar
func.func @scalar(%a: memref<f32>, %b: memref<f32>) {
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: %[[X:.*]] = memref.load %arg0[]
  // CHECK-NEXT: memref.store %[[X]], %arg1[]
  memref.copy %a, %b : memref<f32> to memref<f32>
  return
}

// The rank is not known here.
// CHECK-LABEL: func @unranked
func.func @unranked(%a: memref<*xf32>, %b: memref<*xf32>) {
  // CHECK: memref.copy
  memref.copy %a, %b : memref<*xf32> to memref<*xf32>
  return
}
