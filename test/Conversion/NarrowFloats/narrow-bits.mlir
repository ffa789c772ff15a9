// RUN: attn-opt %s --llvm-narrow-floats-to-bits | FileCheck %s

// CHECK-LABEL: llvm.func @moved(
// CHECK-SAME: %[[X:.*]]: i16, %[[FLAG:.*]]: i1, %[[AT:.*]]: !llvm.ptr) -> i16
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(16256 : i16) : i16
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[AT]][1] : (!llvm.ptr) -> !llvm.ptr, i16
// CHECK: llvm.load %[[PLACE]] : !llvm.ptr -> i16
// CHECK: llvm.cond_br %[[FLAG]], ^[[END:.*]](%{{.*}} : i16), ^[[END]](%[[X]] : i16)
// CHECK: ^[[END]](%[[CHOSEN:.*]]: i16):
// CHECK: llvm.return %{{.*}} : i16
llvm.func @moved(%x: bf16, %flag: i1, %at: !llvm.ptr) -> bf16 {
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  %place = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, bf16
  %y = llvm.load %place : !llvm.ptr -> bf16
  %z = llvm.select %flag, %one, %y : i1, bf16
  llvm.cond_br %flag, ^end(%z : bf16), ^end(%x : bf16)
^end(%chosen: bf16):
  %bits = llvm.bitcast %chosen : bf16 to i16
  llvm.store %bits, %place : i16, !llvm.ptr
  llvm.return %chosen : bf16
}

// CHECK-LABEL: llvm.func @vectors
// CHECK: llvm.mlir.constant(dense<15360> : vector<4xi16>) : vector<4xi16>
llvm.func @vectors() -> vector<4xf16> {
  %ones = llvm.mlir.constant(dense<1.0> : vector<4xf16>) : vector<4xf16>
  llvm.return %ones : vector<4xf16>
}

// CHECK-LABEL: llvm.func @wide(%{{.*}}: f32) -> f64
llvm.func @wide(%x: f32) -> f64 {
  %y = llvm.fpext %x : f32 to f64
  llvm.return %y : f64
}
