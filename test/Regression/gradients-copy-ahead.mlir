// RUN: attn-compile %s --target=sm_80 --backward --emit=warp | FileCheck %s

// The gradients of keys run in two loops, the second with the mask of the last
// keys. Both read lse in a branch; both copy their tiles ahead all the same.

// CHECK-LABEL: warp.kernel @attention_backward_d_key_value
// CHECK: warp.ring {{.*}}<2, 1x32xf32>
// CHECK: scf.for
// CHECK-NOT: warp.copy %
// CHECK-COUNT-4: warp.await
// CHECK-COUNT-4: warp.copy_async
// CHECK: scf.for
// CHECK-NOT: warp.copy %
// CHECK-COUNT-4: warp.await
// CHECK-COUNT-4: warp.copy_async
// CHECK-NOT: warp.copy %
// CHECK: warp.kernel
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
