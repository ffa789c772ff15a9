// RUN: attn-opt %s --convert-warp-to-gpu --split-input-file --verify-diagnostics

func.func @unplaced() {
  %c1 = arith.constant 1 : index
  warp.kernel @unplaced blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    // expected-error @below {{convert-warp-to-gpu needs warp-placed, got memory without a place; run it after warp-assign-resources}}
    %slot = warp.alloc : !warp.slot<64x64xbf16>
  }
  return
}

// -----

// Barriers lie at the end of a kernel's memory.
func.func @unplaced_barriers() {
  %c1 = arith.constant 1 : index
  // expected-error @below {{convert-warp-to-gpu needs warp-placed, got memory without a place; run it after warp-assign-resources}}
  warp.kernel @unplaced_barriers blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(8) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<2, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}

// -----

func.func @misplaced() {
  %c1 = arith.constant 1 : index
  warp.kernel @misplaced blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(9000) {
    // expected-error @below {{expected an offset that is a multiple of 128, got 16}}
    // expected-error @below {{failed to legalize}}
    %slot = warp.alloc at 16 : !warp.slot<64x64xbf16>
  }
  return
}

// -----

func.func @nested(%n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %c1 to %n step %c1 {
    // expected-error @below {{expected the kernel in the entry block of a function}}
    warp.kernel @nested blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(0) {
    }
  }
  return
}

// -----

func.func @captured_effect(%m: memref<4xf32>, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{a kernel cannot capture the result of an operation with effects}}
  %x = memref.load %m[%c1] : memref<4xf32>
  warp.kernel @captured_effect blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !warp.frag<64x1xf32, acc, 4>
    warp.store %f, %o[%i] rows : !warp.frag<64x1xf32, acc, 4>, memref<?xf32>
  }
  return
}

// -----

func.func @math(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @math blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !warp.frag<64x1xf32, acc, 4>
    %b = arith.fptosi %x : f32 to i32
    // expected-error @below {{'math.cttz' on 'i32' cannot be computed on the GPU}}
    %c = math.cttz %b : i32
    %d = arith.sitofp %c : i32 to f32
    %g = warp.splat %d : !warp.frag<64x1xf32, acc, 4>
    warp.store %g, %o[%i] rows : !warp.frag<64x1xf32, acc, 4>, memref<?xf32>
  }
  return
}

// -----

func.func @drawn_without_roles(%n: index, %counter: memref<1xi32>) {
  warp.kernel @drawn_without_roles blocks(%x, %h, %b) in (%n, %n, %n) warps(4) resident {
    // expected-error@+1 {{'warp.draw' op in a kernel without roles: run warp-specialize first}}
    %t = warp.draw %counter below %n : memref<1xi32>
  }
  return
}

// -----

func.func @size_from_kernel(%n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sizes = memref.alloc(%c1) : memref<?xi32>
  warp.kernel @early blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(1) shared(0) {
    memref.store %n, %sizes[%c0] : memref<?xi32>
  }
  // expected-error @below {{makes the size of a workspace, expected one that is known before the first kernel}}
  %read = memref.load %sizes[%c0] : memref<?xi32>
  %size = arith.index_cast %read : i32 to index
  %second = memref.alloc(%size) : memref<?xi32>
  warp.kernel @late blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(1) shared(0) {
    memref.store %n, %second[%c0] : memref<?xi32>
  }
  return
}

// -----

func.func @start(%n: index) {
  warp.kernel @first blocks(%x, %y, %z) in (%n, %n, %n) warps(1) shared(0) {
  }
  // expected-error @below {{'warp.kernel' op starts(early), which sm_80 cannot; expected sm_90a}}
  warp.kernel @second blocks(%x, %y, %z) in (%n, %n, %n) warps(1) shared(0) starts(early) {
  }
  return
}
