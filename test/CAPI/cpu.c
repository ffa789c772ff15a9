/*===- cpu.c - attention on the CPU through the C API ---------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: ./capi-cpu %cpu | FileCheck %s

#include "attn-c/attn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *program =
    "func.func @causal(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>,\n"
    "                  %v: tensor<?x?x?x8xf32>)\n"
    "    -> (tensor<?x?x?x8xf32>, tensor<?x?x?xf32>) {\n"
    "  %o, %lse = attn.attention %q, %k, %v\n"
    "      {scale = 0.5 : f64, variants = [#attn.causal]}\n"
    "    : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>)\n"
    "      -> (tensor<?x?x?x8xf32>, tensor<?x?x?xf32>)\n"
    "  return %o, %lse : tensor<?x?x?x8xf32>, tensor<?x?x?xf32>\n"
    "}\n";

static AttnArgument tensor(void *data, int64_t rank, const int64_t *sizes,
                           const int64_t *strides) {
  AttnArgument argument;
  memset(&argument, 0, sizeof(argument));
  argument.kind = ATTN_TENSOR;
  argument.value.tensor.data = data;
  argument.value.tensor.rank = rank;
  argument.value.tensor.sizes = sizes;
  argument.value.tensor.strides = strides;
  return argument;
}

enum { LENGTH = 5, DIM = 8, HEADS = 1 << 10 };

// Results lie before what is read: below, k and v are said to be far
// larger than they are, and a result inside of them would be refused for that
// (a result has memory of its own). Apart, variables lie in any order: another
// one with sanitizers than without.
static struct {
  float outputs[HEADS][DIM], head_lse[HEADS], o[LENGTH][DIM], lse[LENGTH];
  float heads[HEADS][DIM], q[LENGTH][DIM], k[LENGTH][DIM], v[LENGTH][DIM];
} memory;

int main(int argc, char **argv) {
  float (*q)[DIM] = memory.q, (*k)[DIM] = memory.k, (*v)[DIM] = memory.v;
  float (*o)[DIM] = memory.o, *lse = memory.lse;
  const int64_t sizes[] = {1, 1, LENGTH, DIM};
  const int64_t strides[] = {LENGTH * DIM, LENGTH * DIM, DIM, 1};
  const int64_t across[] = {0, 0, 1, LENGTH};
  const char *text = NULL;
  const int64_t lse_strides[] = {LENGTH, LENGTH, 1};
  const int64_t dense[] = {LENGTH * DIM, LENGTH * DIM, DIM - 1, 1};
  const int64_t nothing[] = {1 << 30, 1, 0, DIM};
  const int64_t too_many[] = {INT64_C(1) << 40, 1, 0, DIM};
  const int64_t rows[] = {1, HEADS, 1, DIM};
  const int64_t row_strides[] = {HEADS * DIM, DIM, DIM, 1};
  const int64_t row_lse_strides[] = {HEADS, 1, 1};
  const int64_t many[] = {1, HEADS, 1 << 30, DIM};
  const int64_t short_sizes[] = {1, 1, LENGTH - 1, DIM};
  AttnArgument arguments[5];
  AttnCompileOptions options;
  AttnKernel *kernel;
  size_t workspace = 1;
  int i, j, d;

  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.cpu = argc > 1 ? argv[1] : NULL;
  options.plan = "#attn.plan<target = cpu, block_q = 16, block_k = 16>";
  kernel = attnCompileForCPU(program, strlen(program), &options);
  if (!kernel) {
    printf("FAILED: %s\n", attnErrorMessage());
    return 1;
  }
  // CHECK: "name": "causal"
  // CHECK: "target": "cpu"
  // CHECK: "plan": "#attn.plan<target = cpu, block_q = 16, block_k = 16>"
  printf("%s", attnKernelGetManifest(kernel));

  // All scores are equal, so row i is the mean of the first i + 1 values.
  for (i = 0; i < LENGTH; ++i)
    for (d = 0; d < DIM; ++d) {
      q[i][d] = 1;
      k[i][d] = 0;
      v[i][d] = (float)(i * DIM + d);
      o[i][d] = NAN;
    }
  arguments[0] = tensor(q, 4, sizes, strides);
  arguments[1] = tensor(k, 4, sizes, strides);
  arguments[2] = tensor(v, 4, sizes, strides);
  arguments[3] = tensor(o, 4, sizes, strides);
  arguments[4] = tensor(lse, 3, sizes, lse_strides);
  // CHECK: launch: 0
  printf("launch: %d\n", attnLaunch(kernel, arguments, 5, NULL));
  for (i = 0; i < LENGTH; ++i) {
    double error = fabs(lse[i] - log(i + 1.0));
    for (d = 0; d < DIM; ++d) {
      double mean = 0;
      for (j = 0; j <= i; ++j)
        mean += v[j][d] / (i + 1.0);
      error = fmax(error, fabs(o[i][d] - mean));
    }
    // CHECK-NEXT: row 0 is right
    // CHECK-NEXT: row 1 is right
    // CHECK-NEXT: row 2 is right
    // CHECK-NEXT: row 3 is right
    // CHECK-NEXT: row 4 is right
    printf("row %d is %s\n", i, error < 1e-5 ? "right" : "wrong");
  }

  // CHECK-NEXT: synchronize: 0, registers -1, log ''
  printf("synchronize: %d, registers %d, log '%s'\n", attnSynchronize(kernel),
         attnKernelGetRegisters(kernel), attnKernelGetLog(kernel));

  // No kernel for the CPU needs a workspace.
  // CHECK-NEXT: workspace: 0, 0 bytes; launch: 0
  i = attnGetWorkspaceBytes(kernel, arguments, 5, &workspace);
  printf("workspace: %d, %d bytes; launch: %d\n", i, (int)workspace,
         attnLaunchWithWorkspace(kernel, arguments, 5, NULL, 0, NULL));
  // CHECK-NEXT: workspace: 1, attnGetWorkspaceBytes: bytes is NULL
  i = attnGetWorkspaceBytes(kernel, arguments, 5, NULL);
  printf("workspace: %d, %s\n", i, attnErrorMessage());

  // CHECK-NEXT: describe: 0, '', 0 copies
  i = attnDescribeLaunch(kernel, arguments, 5, &text);
  printf("describe: %d, '%s', %d copies\n", i, text,
         (int)attnKernelGetRelayouts(kernel));
  // CHECK-NEXT: describe: 0, 'k' is copied first: stride of dimension 3 is 5,
  arguments[1] = tensor(k, 4, short_sizes, across);
  arguments[2] = tensor(v, 4, short_sizes, strides);
  i = attnDescribeLaunch(kernel, arguments, 5, &text);
  printf("describe: %d, %s", i, text);
  arguments[2] = tensor(v, 4, sizes, strides);
  // CHECK-NEXT: describe: 1, attnDescribeLaunch: text is NULL
  i = attnDescribeLaunch(kernel, arguments, 5, NULL);
  printf("describe: %d, %s\n", i, attnErrorMessage());

  // CHECK-NEXT: launch: 1, kernel 'causal' takes 5 arguments
  i = attnLaunch(kernel, arguments, 3, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());

  arguments[1] = tensor(k, 4, short_sizes, strides);
  // CHECK-NEXT: launch: 1, {{.*}}(5 against 4)
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());

  arguments[1] = tensor(k, 4, NULL, strides);
  // CHECK-NEXT: launch: 1, argument 1 ('k'): sizes or strides are missing
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());
  arguments[1] = tensor(k, 4, sizes, NULL);
  // CHECK-NEXT: launch: 1, argument 1 ('k'): sizes or strides are missing
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());

  // A result has memory of its own, and each of its elements has.
  arguments[1] = tensor(k, 4, sizes, strides);
  arguments[3] = tensor(v, 4, sizes, strides);
  // CHECK-NEXT: launch: 1, argument 3 ('o') overlaps argument 2 ('v'): a result
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());
  arguments[3] = tensor(o, 4, sizes, dense);
  // CHECK-NEXT: launch: 1, {{.*}} may not overlap, got strides 40, 40, 7, 1 for
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());
  arguments[3] = tensor(o, 4, sizes, strides);

  // Batches of nothing are done at once, as many as positions count.
  for (i = 0; i < 5; ++i)
    arguments[i] = tensor(NULL, i < 4 ? 4 : 3, nothing, strides);
  // CHECK-NEXT: launch: 0
  printf("launch: %d\n", attnLaunch(kernel, arguments, 5, NULL));
  for (i = 0; i < 5; ++i)
    arguments[i] = tensor(NULL, i < 4 ? 4 : 3, too_many, strides);
  // CHECK-NEXT: launch: 1, dimension 0 of 'q' is more than positions count
  // (1099511627776 against 1073741824)
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());

  // More than there is memory for the copy of a tensor that lies across.
  arguments[0] = tensor(memory.heads, 4, rows, row_strides);
  arguments[1] = arguments[2] = tensor(k, 4, many, across);
  arguments[3] = tensor(memory.outputs, 4, rows, row_strides);
  arguments[4] = tensor(memory.head_lse, 3, rows, row_lse_strides);
  // CHECK-NEXT: launch: 1, copies of {{[0-9]+}} bytes do not fit the memory
  // CHECK-NEXT: 'k' is copied first
  // CHECK-NEXT: 'v' is copied first
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());

  arguments[1].kind = 7;
  // CHECK-NEXT: launch: 1, attnLaunch: argument 1 has unknown kind 7
  i = attnLaunch(kernel, arguments, 5, NULL);
  printf("launch: %d, %s\n", i, attnErrorMessage());
  attnKernelDestroy(kernel);

  // CHECK-NEXT: compile: 1:1: error:
  if (!attnCompileForCPU("nonsense", 8, NULL))
    printf("compile: %s\n", attnErrorMessage());

  // CHECK: compile: error: cannot compile for the processor: unknown processor
  // CHECK-SAME: 'abacus', expected native, {{.*}}x86-64
  options.cpu = "abacus";
  if (!attnCompileForCPU(program, strlen(program), &options))
    printf("compile: %s\n", attnErrorMessage());

  options.struct_size = 4;
  // CHECK: compile: attnCompile: struct_size of the options is 4,
  if (!attnCompileForCPU(program, strlen(program), &options))
    printf("compile: %s\n", attnErrorMessage());
  return 0;
}
