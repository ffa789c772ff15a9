/*===- threads.c - the C API from several threads -------------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: ./capi-threads %cpu | FileCheck %s

#include "attn-c/attn.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *good =
    "func.func @f(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {\n"
    "  %o, %lse = attn.attention %q, %q, %q\n"
    "    : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)\n"
    "      -> (tensor<1x1x?x16xf32>, tensor<1x1x?xf32>)\n"
    "  return %o : tensor<1x1x?x16xf32>\n"
    "}\n";

enum { THREADS = 4 };
static const char *texts[THREADS];
static AttnCompileOptions options;
static char messages[THREADS][200];

// Compiles its text and keeps the message of its own thread.
static void *compile(void *data) {
  int number = *(int *)data;
  AttnKernel *kernel =
      attnCompileForCPU(texts[number], strlen(texts[number]), &options);
  snprintf(messages[number], sizeof(messages[number]), "%s: %s",
           kernel ? "compiled" : "refused", attnErrorMessage());
  attnKernelDestroy(kernel);
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  int i;
  options.struct_size = sizeof(options);
  options.cpu = argc > 1 ? argv[1] : NULL;
  texts[0] = good;
  texts[1] = "first";
  texts[2] = good;
  texts[3] = "func.func @second";
  for (i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, compile, &numbers[i]) != 0)
      return 1;
  }
  for (i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  // CHECK: {{^}}compiled: {{$}}
  // CHECK-NEXT: {{^}}refused: 1:1: error: {{.*}}
  // CHECK: {{^}}compiled: {{$}}
  // CHECK-NEXT: {{^}}refused: 1:17: error: {{.*}}
  for (i = 0; i < THREADS; ++i)
    printf("%s\n", messages[i]);
  // CHECK: main: ''
  printf("main: '%s'\n", attnErrorMessage());
  return 0;
}
