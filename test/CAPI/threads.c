/*===- threads.c - the C API from several threads -------------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// What must hold in any program, and, with -DATTN_SANITIZE=thread, that nothing
// is shared without a lock while threads compile.
//
// RUN: rm -rf %t
// RUN: ./capi-threads %cpu %t | FileCheck %s

#include "attn-c/attn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] =
    "func.func @f(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {\n"
    "  %o, %lse = attn.attention %q, %q, %q\n"
    "    : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)\n"
    "      -> (tensor<1x1x?x16xf32>, tensor<1x1x?xf32>)\n"
    "  return %o : tensor<1x1x?x16xf32>\n"
    "}\n";

enum { THREADS = 4 };
static int numbers[THREADS] = {0, 1, 2, 3};
static const char *texts[THREADS] = {good, "first", good, "func.func @second"};
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

// For GPUs: each thread has a program of its own, and one that all have.
static const char *captured =
    "!t = tensor<1x2x?x64xbf16>\n"
    "func.func @f%d(%%q: !t, %%ids: tensor<?xi32>) -> !t {\n"
    "  %%o, %%lse = attn.attention %%q, %%q, %%q captures(%%ids)\n"
    "    mask(%%b: i32, %%h: i32, %%i: i32, %%j: i32, %%c: tensor<?xi32>) {\n"
    "      %%x = attn.capture_load %%c[%%i] : tensor<?xi32>\n"
    "      %%y = attn.capture_load %%c[%%j] : tensor<?xi32>\n"
    "      %%same = arith.cmpi eq, %%x, %%y : i32\n"
    "      attn.yield %%same : i1\n"
    "    } : (!t, !t, !t, tensor<?xi32>) -> (!t, tensor<1x2x?xf32>)\n"
    "  return %%o : !t\n"
    "}\n";
enum { PROGRAMS = 2 };
static const char *cache;
static AttnArtifact *artifacts[THREADS][PROGRAMS];

static void *compile_for_gpus(void *data) {
  int number = *(int *)data, i;
  AttnCompileOptions own;
  memset(&own, 0, sizeof(own));
  own.struct_size = sizeof(own);
  own.cache_directory = cache;
  for (i = 0; i < PROGRAMS; ++i) {
    char text[1000];
    int is_own = i == PROGRAMS - 1;
    snprintf(text, sizeof(text), captured, is_own ? number : THREADS);
    own.target = is_own && number % 2 ? "sm_90a" : "sm_80";
    artifacts[number][i] = attnCompile(text, strlen(text), &own);
    snprintf(messages[number], sizeof(messages[number]), "%s",
             attnErrorMessage());
    if (!artifacts[number][i])
      return NULL;
  }
  return NULL;
}

// Tells what the threads made: the bytes of each program, and how often it came
// from the cache.
static void tell(void) {
  int number, i, different = 0, kept = 0;
  for (number = 0; number < THREADS; ++number)
    for (i = 0; i < PROGRAMS; ++i) {
      size_t size, first_size;
      const void *bytes, *first;
      if (!artifacts[number][i]) {
        printf("thread %d: %s\n", number, messages[number]);
        exit(1);
      }
      bytes = attnArtifactGetBytes(artifacts[number][i], &size);
      first = attnArtifactGetBytes(artifacts[0][i], &first_size);
      if (i < PROGRAMS - 1)
        different += size != first_size || memcmp(bytes, first, size) != 0;
      kept += attnArtifactIsFromCache(artifacts[number][i]);
    }
  for (number = 0; number < THREADS; ++number)
    for (i = 0; i < PROGRAMS; ++i)
      attnArtifactDestroy(artifacts[number][i]);
  printf("different: %d, from the cache: %d\n", different, kept);
}

static void in_threads(void *(*work)(void *)) {
  pthread_t threads[THREADS];
  int i;
  for (i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
      exit(1);
  for (i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
  int i;
  if (argc != 3)
    return 1;
  options.struct_size = sizeof(options);
  options.cpu = argv[1];
  cache = argv[2];
  in_threads(compile);
  // CHECK: {{^}}compiled: {{$}}
  // CHECK-NEXT: {{^}}refused: 1:1: error: {{.*}}
  // CHECK: {{^}}compiled: {{$}}
  // CHECK-NEXT: {{^}}refused: 1:17: error: {{.*}}
  for (i = 0; i < THREADS; ++i)
    printf("%s\n", messages[i]);

  // One may find what another one has just made.
  // CHECK: different: 0, from the cache: {{[0-3]$}}
  in_threads(compile_for_gpus);
  tell();
  // CHECK-NEXT: different: 0, from the cache: 8
  in_threads(compile_for_gpus);
  tell();

  // CHECK-NEXT: main: ''
  printf("main: '%s'\n", attnErrorMessage());
  return 0;
}
