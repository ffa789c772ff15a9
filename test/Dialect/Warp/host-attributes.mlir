// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @counter
func.func @counter() {
  // CHECK: memref.alloc() {warp.drawn, warp.restored, warp.zeroed}
  %m = memref.alloc() {warp.zeroed, warp.restored, warp.drawn} : memref<1xi32>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%map: !llvm.ptr) kernel {
      gpu.return
    }
    // CHECK: gpu.func @copy() kernel attributes {warp.relayout = array<i64: 2, 4096>}
    gpu.func @copy() kernel attributes {warp.relayout = array<i64: 2, 4096>} {
      gpu.return
    }
  }
  func.func @launch(%n: index, %p: !llvm.ptr) {
    // CHECK: gpu.launch_func
    // CHECK-SAME: warp.resident
    // CHECK-SAME: warp.tensor_maps = [#warp.tensor_map<argument = 0, rows = 64, columns = 32, swizzle = 64, panels = 2>]
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%p : !llvm.ptr)
        {warp.resident, warp.tensor_maps = [#warp.tensor_map<argument = 0, rows = 64, columns = 32, swizzle = 64, panels = 2>]}
    return
  }
}

// -----

func.func @unknown() {
  // expected-error @below {{unknown attribute 'warp.zeroes' of the warp dialect}}
  %m = memref.alloc() {warp.zeroes} : memref<1xi32>
  return
}

// -----

// expected-error @below {{unknown attribute 'warp.zeroed' of the warp dialect on argument 0}}
func.func @on_argument(%m: memref<1xi32> {warp.zeroed}) {
  return
}

// -----

// expected-error @below {{unknown attribute 'warp.zeroed' of the warp dialect on result 0}}
func.func private @on_result() -> (memref<1xi32> {warp.zeroed})

// -----

func.func @zeroed_place() {
  // expected-error @below {{'warp.zeroed' stands on a memref.alloc, got 'memref.alloca'}}
  %m = memref.alloca() {warp.zeroed} : memref<1xi32>
  return
}

// -----

func.func @zeroed_value() {
  // expected-error @below {{'warp.zeroed' must be a unit, got true}}
  %m = memref.alloc() {warp.zeroed = true} : memref<1xi32>
  return
}

// -----

func.func @restored_alone() {
  // expected-error @below {{'warp.restored' stands beside 'warp.zeroed', got none}}
  %m = memref.alloc() {warp.restored} : memref<1xi32>
  return
}

// -----

func.func @drawn_from_what_is_left() {
  // expected-error @below {{'warp.drawn' stands beside 'warp.restored', got none}}
  %m = memref.alloc() {warp.zeroed, warp.drawn} : memref<1xi32>
  return
}

// -----

// expected-error @below {{'warp.tensor_maps' stands on a gpu.launch_func, got 'func.func'}}
func.func @maps_place() attributes {warp.tensor_maps = []} {
  return
}

// -----

// expected-error @below {{'warp.resident' stands on a gpu.launch_func, got 'func.func'}}
func.func @resident_place() attributes {warp.resident} {
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%map: !llvm.ptr) kernel {
      gpu.return
    }
  }
  func.func @maps_value(%n: index, %p: !llvm.ptr) {
    // expected-error @below {{'warp.tensor_maps' must be an array of #warp.tensor_map, got [array<i64: 0, 64, 32, 64, 2>]}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%p : !llvm.ptr)
        {warp.tensor_maps = [array<i64: 0, 64, 32, 64, 2>]}
    return
  }
}

// -----

func.func @relayout_place() {
  // expected-error @below {{'warp.relayout' stands on a function, got 'memref.alloc'}}
  %m = memref.alloc() {warp.relayout = array<i64: 2, 4096>} : memref<1xi32>
  return
}

// -----

// expected-error @below {{'warp.relayout' must be an array of two i64 above 0, got array<i64: 2, 0>}}
func.func @relayout_value() attributes {warp.relayout = array<i64: 2, 0>} {
  return
}

// -----

// expected-error @below {{a tensor map of argument -1, expected at least 0}}
func.func @map_argument() attributes {a = #warp.tensor_map<argument = -1, rows = 64, columns = 64, swizzle = 128, panels = 1>} {
  return
}

// -----

// expected-error @below {{a tensor map with a box of 0 panels of 64 x 32 elements, expected at least 1 of each}}
func.func @map_box() attributes {a = #warp.tensor_map<argument = 0, rows = 64, columns = 32, swizzle = 128, panels = 0>} {
  return
}

// -----

// expected-error @below {{a tensor map with a swizzle of 48 bytes, expected 16, 32, 64 or 128, or 0 for one row}}
func.func @map_swizzle() attributes {a = #warp.tensor_map<argument = 0, rows = 64, columns = 64, swizzle = 48, panels = 1>} {
  return
}
