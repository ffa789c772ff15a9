// RUN: attn-opt %s --warp-buffer --remarks-filter=warp-buffer -o /dev/null 2>&1 | FileCheck %s

!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!q = !warp.slot<64x64xbf16>
!tile = !warp.slot<32x64xbf16>
!s = !warp.frag<64x32xf32, acc, 4>

func.func @no_loop(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="there is no loop over blocks"
  warp.kernel @no_loop blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
  }
  return
}

func.func @step(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a loop over blocks does not count them one by one"
  warp.kernel @step blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c2 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @gap(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a loop over blocks does not start where the one before ends"
  warp.kernel @gap blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %mid step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
    scf.for %n = %c1 to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @different_tiles(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="the loops do not copy the same tiles"
  warp.kernel @different_tiles blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %mid step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
    scf.for %n = %mid to %hi step %c1 {
      %other = arith.addi %n, %c1 : index
      warp.copy %k[%b, %h, %other, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @different_number(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="the loops do not copy the same tiles"
  warp.kernel @different_number blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %mid step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
    scf.for %n = %mid to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @late_bound(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="the last upper bound is computed after the first loop"
  warp.kernel @late_bound blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %mid step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
    %end = arith.addi %mid, %c2 : index
    scf.for %n = %mid to %end step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @carried_box(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copied box is not a function of the block number"
  warp.kernel @carried_box blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    %r = scf.for %n = %lo to %hi step %c1 iter_args(%row = %c0) -> (index) {
      warp.copy %k[%b, %h, %row, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
      %next = arith.addi %row, %c2 : index
      scf.yield %next : index
    }
  }
  return
}

func.func @box_in_memory(%k: !view, %lo: index, %mid: index, %hi: index, %table: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copied box is not a function of the block number"
  warp.kernel @box_in_memory blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c1 {
      %row = memref.load %table[%n] : memref<?xindex>
      warp.copy %k[%b, %h, %row, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @read_first(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a slot is used outside the bodies that copy it"
  warp.kernel @read_first blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c1 {
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
    }
  }
  return
}

func.func @read_behind(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a slot is used outside the bodies that copy it"
  warp.kernel @read_behind blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
    %t = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
  }
  return
}

func.func @not_read(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copied tile is not read"
  warp.kernel @not_read blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(2) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
    }
  }
  return
}

func.func @one_tile_one_slot(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="the schedule needs a depth of at least 2"
  warp.kernel @one_tile_one_slot blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(1) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    scf.for %n = %lo to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}

func.func @early_order(%k: !view, %lo: index, %mid: index, %hi: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a tile is copied before the one before is used up"
  warp.kernel @early_order blocks(%x, %h, %b) in (%hi, %hi, %hi) warps(4) stages(1) {
    %qs = warp.alloc : !q
    %ks = warp.alloc : !tile
    %s0 = warp.splat %zero : !s
    %vs = warp.alloc : !tile
    scf.for %n = %lo to %hi step %c1 {
      warp.copy %k[%b, %h, %n, %c0] to %ks : !view, !tile
      warp.copy %k[%b, %h, %n, %c0] to %vs : !view, !tile
      %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !q, !tile, !s
      %t = warp.mma mma_sync %qs, %vs, %s0 transpose_b : !q, !tile, !s
    }
  }
  return
}
