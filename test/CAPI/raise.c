/*===- raise.c - attention in plain graphs through the C API -------- C -*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: ./capi-raise | FileCheck %s

#include "attn-c/attn.h"

#include <stdio.h>
#include <string.h>

#define S "tensor<32x48xf32>"
#define T "tensor<48x64xf32>"
#define U "tensor<32x64xf32>"

/* softmax(Q K) V; the softmax runs over queries (0) or keys (1). */
#define PROGRAM(dimension)                                                     \
  "func.func @graph(%q: " U ", %k: tensor<64x48xf32>, %v: " T ") -> " U " {\n" \
  "  %zero = arith.constant 0.0 : f32\n"                                       \
  "  %es = tensor.empty() : " S "\n"                                           \
  "  %s0 = linalg.fill ins(%zero : f32) outs(%es : " S ") -> " S "\n"          \
  "  %s = linalg.matmul ins(%q, %k : " U ", tensor<64x48xf32>) outs(%s0 : " S  \
  ") -> " S "\n"                                                               \
  "  %p = linalg.softmax dimension(" dimension ") ins(%s : " S                 \
  ") outs(%es : " S ") -> " S "\n"                                             \
  "  %eo = tensor.empty() : " U "\n"                                           \
  "  %o0 = linalg.fill ins(%zero : f32) outs(%eo : " U ") -> " U "\n"          \
  "  %o = linalg.matmul ins(%p, %v : " S ", " T ") outs(%o0 : " U ") -> " U    \
  "\n"                                                                         \
  "  return %o : " U "\n"                                                      \
  "}\n"

static void raise(const char *text) {
  AttnRaised *raised = attnRaise(text, strlen(text));
  if (!raised) {
    printf("failed: %s\n", attnErrorMessage());
    return;
  }
  printf("%d raised, %s attention, %s softmax\n", attnRaisedGetCount(raised),
         strstr(attnRaisedGetText(raised), "attn.attention") ? "an" : "no",
         strstr(attnRaisedGetText(raised), "linalg.softmax") ? "a" : "no");
  printf("%s\n", attnRaisedGetLog(raised));
  attnRaisedDestroy(raised);
}

int main(void) {
  // CHECK: 1 raised, an attention, no softmax
  // CHECK-NEXT: 9:8: raised: attention with scale 1
  raise(PROGRAM("1"));
  // CHECK-NEXT: 0 raised, no attention, a softmax
  // CHECK-NEXT: 9:8: not raised: the sum of the exponentials runs over another
  // CHECK-SAME: dimension than that of the keys
  raise(PROGRAM("0"));
  // CHECK-NEXT: failed: 1:1: error:
  raise("nonsense");
  // CHECK: NULL: attnRaise: text is NULL
  attnRaise(NULL, 0);
  printf("NULL: %s\n", attnErrorMessage());
  // CHECK-NEXT: -1: attnRaisedGetCount: raised is NULL
  printf("%d: ", attnRaisedGetCount(NULL));
  printf("%s\n", attnErrorMessage());
  attnRaisedDestroy(NULL);
  return 0;
}
