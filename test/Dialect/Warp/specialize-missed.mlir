// RUN: attn-opt %s --warp-specialize --remarks-filter=warp-specialize -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-opt %s -o %t.in
// RUN: attn-opt %s --warp-specialize -o %t.out
// RUN: cmp %t.in %t.out
// RUN: not attn-opt %s --warp-specialize=depth=-1 2>&1 | FileCheck %s --check-prefix=DEPTH

// DEPTH: '-1' value invalid for uint argument!

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!flat = memref<?x?x?x?x128xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
!t = !warp.slot<64x128xbf16, panels<128>>
!f = !warp.frag<64x128xbf16, a, 4>
!pitched = !warp.slot<64x128xbf16>
!s = !warp.frag<64x64xf32, acc, 4>

func.func @no_copy(%n: index) {
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="no tile is copied"
  warp.kernel @no_copy blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
  }
  return
}

func.func @pitched(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a slot has no panels"
  warp.kernel @pitched blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !pitched
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !pitched
    %f = warp.load_frag %ks : !pitched -> !f
  }
  return
}

func.func @rank(%n: index, %k: !flat) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a view has more dimensions than a tensor map"
  warp.kernel @rank blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %b, %h, %x, %c0] to %ks : !flat, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

func.func @rows(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a tile has more rows than one copy of a tensor map"
  warp.kernel @rows blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !warp.slot<320x128xbf16, panels<128>>
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !warp.slot<320x128xbf16, panels<128>>
    %f = warp.load_frag %ks : !warp.slot<320x128xbf16, panels<128>> -> !warp.frag<320x128xbf16, a, 4>
  }
  return
}

func.func @branch(%n: index, %k: !view, %c: i1) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copy stands under something else than loops"
  warp.kernel @branch blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    scf.if %c {
      warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  return
}

func.func @not_read(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copied tile is not read in the block that copies it"
  warp.kernel @not_read blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
  }
  return
}

func.func @read_before(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a slot is read where it was not copied"
  warp.kernel @read_before blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %n step %c1 {
      %e = warp.load_frag %ks : !t -> !f
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  return
}

func.func @warps(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="the warps do not form groups of 4, or leave no room for another"
  warp.kernel @warps blocks(%x, %h, %b) in (%n, %n, %n) warps(2) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !warp.frag<64x128xbf16, a, 2>
  }
  return
}

// Which box is copied is a scalar of the loop, but one with an effect.
func.func @box_with_effect(%n: index, %k: !view, %m: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a copied box depends on more than scalars"
  warp.kernel @box_with_effect blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %one = arith.constant 1 : i32
    %ticket = memref.atomic_rmw addi %one, %m[%c0] : (i32, memref<?xi32>) -> i32
    %i = arith.index_cast %ticket : i32 to index
    warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// What is written to the second slot nobody reads.
func.func @unread(%n: index, %k: !view, %f: bf16) {
  %c0 = arith.constant 0 : index
  // CHECK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="a tile that the kernel writes to a slot is not read by one product that follows"
  warp.kernel @unread blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %ds = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %a = warp.load_frag %ks : !t -> !f
    %d = warp.splat %f : !warp.frag<64x128xbf16, acc, 4>
    warp.store_frag %d to %ds : !warp.frag<64x128xbf16, acc, 4>, !t
  }
  return
}
