/*===- compile.c - artifacts for GPUs through the C API -------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: rm -rf %t
// RUN: ./capi-compile %t | FileCheck %s
// RUN: ls %t | count 1

#include "attn-c/attn.h"

#include <stdio.h>
#include <string.h>

static const char *program =
    "func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,\n"
    "                  %v: tensor<?x?x?x64xbf16>)\n"
    "    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {\n"
    "  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}\n"
    "    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,\n"
    "       tensor<?x?x?x64xbf16>)\n"
    "      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)\n"
    "  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>\n"
    "}\n";

#define PLAN(rows)                                                             \
  "#attn.plan<target = sm_80, block_q = " rows ", block_k = 32, warps = 4>"

static AttnArtifact *compile(const AttnCompileOptions *options) {
  AttnArtifact *artifact = attnCompile(program, strlen(program), options);
  if (artifact)
    printf("compiled, from the cache: %d\n", attnArtifactIsFromCache(artifact));
  else
    printf("refused: %s\n", attnErrorMessage());
  return artifact;
}

// The artifact file, read back, is the same.
static void reread(const AttnArtifact *artifact) {
  size_t size, again_size;
  const void *bytes = attnArtifactGetBytes(artifact, &size), *again_bytes;
  AttnArtifact *again = attnArtifactParse(bytes, size);
  again_bytes = attnArtifactGetBytes(again, &again_size);
  printf("read back: %s\n",
         size == again_size && memcmp(bytes, again_bytes, size) == 0
             ? "the same"
             : "different");
  attnArtifactDestroy(again);
}

int main(int argc, char **argv) {
  AttnCompileOptions options;
  AttnLaunchSizes sizes;
  AttnArtifact *artifact;
  AttnKernel *kernel;
  size_t size;
  if (argc != 2)
    return 1;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);

  // CHECK: compiled, from the cache: 0
  artifact = compile(NULL);
  if (!artifact)
    return 1;
  // CHECK: "name": "causal"
  // CHECK: "target": "sm_80"
  // CHECK: "plan": "#attn.plan<target = sm_80
  printf("%s", attnArtifactGetManifest(artifact));
  // CHECK: entry 1, target 1
  printf("entry %d, target %d\n",
         strstr(attnArtifactGetPTX(artifact), ".entry") != NULL,
         strstr(attnArtifactGetPTX(artifact), ".target sm_80") != NULL);
  // CHECK-NEXT: cubin: 0 bytes
  attnArtifactGetCubin(artifact, &size);
  printf("cubin: %d bytes\n", (int)size);
  // CHECK-NEXT: read back: the same
  reread(artifact);

  // Where there is no GPU, loading says so.
  kernel = attnLoad(artifact, -1);
  // CHECK-NEXT: load: {{loaded|no }}
  printf("load: %s\n", kernel ? "loaded" : attnErrorMessage());
  attnKernelDestroy(kernel);
  attnArtifactDestroy(artifact);

  // CHECK: compiled, from the cache: 0
  // CHECK-NEXT: compiled, from the cache: 1
  // CHECK-NEXT: read back: the same
  options.cache_directory = argv[1];
  attnArtifactDestroy(compile(&options));
  artifact = compile(&options);
  reread(artifact);
  attnArtifactDestroy(artifact);

  // CHECK-NEXT: refused: error: unknown GPU 'sm_1'
  options.target = "sm_1";
  compile(&options);

  // CHECK: refused: attnCompile: a program for the CPU is no artifact
  options.target = "cpu";
  compile(&options);

  // CHECK: refused: {{.*}}nothing
  options.target = NULL;
  options.plan = "#attn.plan<nothing>";
  compile(&options);

  // One variant of a rule.
  options.plan = "query_length <= 100 -> " PLAN("64") "; " PLAN("128");
  options.sizes = &sizes;
  memset(&sizes, 0, sizeof(sizes));
  // CHECK: refused: attnCompile: struct_size of the sizes is 0, this library
  compile(&options);
  sizes.struct_size = sizeof(sizes);
  sizes.query_length = 101;
  // CHECK: refused: attnCompile: sizes: multiprocessors is 0, wanted 1 or more
  compile(&options);
  sizes.multiprocessors = 1;
  // CHECK: compiled, from the cache: 0
  // CHECK: "of_rule": "query_length <= 100 -> 0; 1"
  // CHECK: "variant_of_rule": 1
  options.cache_directory = NULL;
  artifact = compile(&options);
  printf("%s", attnArtifactGetManifest(artifact));
  attnArtifactDestroy(artifact);
  // CHECK: cpu: attnCompileForCPU: got sizes of a launch
  options.plan = NULL;
  if (!attnCompileForCPU(program, strlen(program), &options))
    printf("cpu: %s\n", attnErrorMessage());
  return 0;
}
