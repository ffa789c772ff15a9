// RUN: attn-opt %s --warp-assign-resources | FileCheck %s
// RUN: not attn-opt %s --warp-assign-resources=shared-limit=65536 2>&1 | FileCheck %s --check-prefix=ERROR

// Offsets are multiples of 128, in program order, without overlap.
// CHECK-LABEL: @places
// CHECK: warp.kernel {{.*}} shared(65792)
// CHECK-NEXT: warp.alloc at 0 : <128x64xbf16>
// CHECK-NEXT: warp.ring at 16384 : <2, 64x80xbf16>
// CHECK-NEXT: warp.ring at 36864 : <2, 56x128xbf16>
// CHECK-NEXT: warp.alloc at 65536 : <8x16xf16>
// ERROR: [[@LINE+2]]:3: error: 'warp.kernel' op needs 65792 bytes of shared memory (1 x 16384 + 2 x 10240 + 2 x 14336 + 1 x 256), the target has 65536
func.func @places(%n: index) {
  warp.kernel @places blocks(%x, %h, %b) in (%n, %n, %n) warps(4) stages(2) {
    %q = warp.alloc : !warp.slot<128x64xbf16>
    %k = warp.ring : !warp.ring<2, 64x80xbf16>
    %v = warp.ring : !warp.ring<2, 56x128xbf16>
    %t = warp.alloc : !warp.slot<8x16xf16>
  }
  return
}

// CHECK-LABEL: @nothing
// CHECK: warp.kernel {{.*}} warps(1) shared(0)
func.func @nothing(%n: index) {
  warp.kernel @nothing blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
  }
  return
}

// Panels start at multiples of 1024; the barriers of three slots are at the end.
// CHECK-LABEL: @roles
// CHECK: warp.kernel {{.*}} shared(34864)
// CHECK-NEXT: warp.ring fills(@load) drains(@softmax) at 0 : <1, 64x16xbf16>
// CHECK-NEXT: warp.ring fills(@load) drains(@softmax) at 2048 : <2, 64x128xbf16, panels<128>>
func.func @roles(%n: index) {
  warp.kernel @roles blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    %t = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x16xbf16>
    %k = warp.ring fills(@load) drains(@softmax) : !warp.ring<2, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}
