// A header for C programs: the artifact, and functions that load and launch it.
// RUN: attn-compile %s --emit=header -o %t.h
// RUN: FileCheck %s < %t.h
// RUN: %cc -fsyntax-only -std=c99 -Wall -Wextra -Werror -Wno-unused-function -I%attn_src_root/include -x c %t.h

// CHECK: /* attend for sm_80, made by attn
// CHECK-NEXT: #attn.plan<target = sm_80
// CHECK-NEXT: q: f16, ?x8x?x64, aligned to 16 bytes
// CHECK: c0: i32, ?x?
// CHECK: arg4: i32
// CHECK: arg5: f32
// CHECK: o: f16, ?x8x?x64, aligned to 16 bytes (result)
// CHECK: #ifndef ATTN_KERNEL_attend_sm_80_{{[0-9a-f]+}}_H
// CHECK: #include "attn-c/attn.h"
// CHECK: static const unsigned char attend_sm_80_artifact[{{[0-9]+}}] = {
// "attn-artifact 7"
// CHECK-NEXT: 97,116,116,110,45,97,114,116,105,102,97,99,116,32,55,10,
// CHECK: static inline AttnKernel *attend_sm_80_load(int device) {
// CHECK: static inline int attend_sm_80_launch(const AttnKernel *kernel,
// CHECK-NEXT: AttnTensor arg_q,
// CHECK: AttnTensor arg_c0,
// CHECK-NEXT: int64_t arg_arg4,
// CHECK-NEXT: double arg_arg5,
// CHECK-NEXT: AttnTensor arg_o,
// CHECK-NEXT: AttnTensor arg_lse,
// CHECK-NEXT: void *stream) {
// CHECK: arguments[4].kind = ATTN_INTEGER;
// CHECK: return attnLaunch(kernel, arguments, 8, stream);
// CHECK: #endif

func.func @attend(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>,
                  %ids: tensor<?x?xi32>, %n: i32, %f: f32)
    -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %m: tensor<?x?xi32>) {
      %mine = attn.capture_load %m[%b, %i] : tensor<?x?xi32>
      %theirs = attn.capture_load %m[%b, %j] : tensor<?x?xi32>
      %same = arith.cmpi eq, %mine, %theirs : i32
      attn.yield %same : i1
    }
    : (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x?xi32>)
      -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}
