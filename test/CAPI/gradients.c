/*===- gradients.c - gradients on the CPU, in C -------------------- C -*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: ./capi-gradients %cpu | FileCheck %s

#include "attn-c/attn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *program =
    "!t = tensor<1x1x?x8xf32>\n"
    "func.func @plain(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x1x?xf32>) {\n"
    "  %o, %lse = attn.attention %q, %k, %v\n"
    "    : (!t, !t, !t) -> (!t, tensor<1x1x?xf32>)\n"
    "  return %o, %lse : !t, tensor<1x1x?xf32>\n"
    "}\n";

enum { LENGTH = 5, DIM = 8, COUNT = LENGTH * DIM };

static const int64_t sizes[] = {1, 1, LENGTH, DIM};
static const int64_t strides[] = {COUNT, COUNT, DIM, 1};
static const int64_t row_strides[] = {LENGTH, LENGTH, 1};

static AttnArgument tensor(float *data, int64_t rank) {
  AttnArgument argument;
  memset(&argument, 0, sizeof(argument));
  argument.kind = ATTN_TENSOR;
  argument.value.tensor.data = data;
  argument.value.tensor.rank = rank;
  argument.value.tensor.sizes = sizes;
  argument.value.tensor.strides = rank == 4 ? strides : row_strides;
  return argument;
}

/* q, k, v, o, d_o, d_q, d_k, d_v. */
static float data[8][COUNT], lse[LENGTH], d_lse[LENGTH];

/* sum(o d_o) + sum(lse d_lse). */
static double loss(const AttnKernel *forward) {
  AttnArgument arguments[5];
  double sum = 0;
  int i;
  for (i = 0; i < 4; ++i)
    arguments[i] = tensor(data[i], 4);
  arguments[4] = tensor(lse, 3);
  if (attnLaunch(forward, arguments, 5, NULL))
    printf("FAILED: %s\n", attnErrorMessage());
  for (i = 0; i < COUNT; ++i)
    sum += (double)data[3][i] * data[4][i];
  for (i = 0; i < LENGTH; ++i)
    sum += (double)lse[i] * d_lse[i];
  return sum;
}

static AttnKernel *compile(const AttnCompileOptions *options) {
  AttnKernel *kernel = attnCompileForCPU(program, strlen(program), options);
  if (!kernel)
    printf("compile: %s\n", attnErrorMessage());
  return kernel;
}

int main(int argc, char **argv) {
  // CHECK-NOT: FAILED
  AttnCompileOptions options;
  AttnKernel *forward, *backward;
  AttnArgument arguments[10];
  int i, tensor_number, numWrong = 0;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.cpu = argc > 1 ? argv[1] : NULL;
  forward = compile(&options);
  options.functions = ATTN_BACKWARD;
  options.lse_gradient = 1;
  backward = compile(&options);
  if (!forward || !backward)
    return 1;
  for (i = 0; i < COUNT; ++i)
    for (tensor_number = 0; tensor_number < 5; ++tensor_number)
      data[tensor_number][i] = (float)sin(i * (tensor_number + 1.5) + 1);
  for (i = 0; i < LENGTH; ++i)
    d_lse[i] = (float)cos(i);
  loss(forward);
  for (i = 0; i < 4; ++i)
    arguments[i] = tensor(data[i], 4);
  arguments[4] = tensor(lse, 3);
  arguments[5] = tensor(data[4], 4);
  arguments[6] = tensor(d_lse, 3);
  for (i = 5; i < 8; ++i)
    arguments[i + 2] = tensor(data[i], 4);
  if (attnLaunch(backward, arguments, 10, NULL))
    printf("FAILED: %s\n", attnErrorMessage());
  for (tensor_number = 0; tensor_number < 3; ++tensor_number)
    for (i = 0; i < COUNT; ++i) {
      float *x = &data[tensor_number][i], kept = *x;
      const double step = 1e-2;
      double slope;
      *x = (float)(kept + step);
      slope = loss(forward);
      *x = (float)(kept - step);
      slope = (slope - loss(forward)) / (2 * step);
      *x = kept;
      numWrong += !(fabs(slope - data[tensor_number + 5][i]) < 2e-3);
    }
  // CHECK: 0 of 120 differ from differences
  printf("%d of %d differ from differences\n", numWrong, 3 * COUNT);

  // CHECK-NEXT: compile: attnCompile: lse_gradient comes with ATTN_BACKWARD or
  // CHECK-SAME: ATTN_BOTH
  options.functions = ATTN_FORWARD;
  compile(&options);
  // CHECK-NEXT: compile: {{.*}}error: a program is one function: expected a
  // CHECK-SAME: function or its gradients, got both
  options.functions = ATTN_BOTH;
  compile(&options);
  // CHECK-NEXT: compile: attnCompile: functions is 4, wanted ATTN_FORWARD,
  // CHECK-SAME: ATTN_BACKWARD, ATTN_BOTH or ATTN_JVP (0 to 3)
  options.functions = 4;
  compile(&options);
  // CHECK-NEXT: compile: attnCompile: lse_gradient is 2, wanted 0 or 1
  options.functions = ATTN_BACKWARD;
  options.lse_gradient = 2;
  compile(&options);
  // CHECK-NEXT: compile: attnCompile: no_capture_gradients is -1, wanted 0 or 1
  options.lse_gradient = 0;
  options.no_capture_gradients = -1;
  compile(&options);
  // CHECK-NEXT: named plain_jvp
  options.functions = ATTN_JVP;
  options.no_capture_gradients = 0;
  attnKernelDestroy(forward);
  forward = compile(&options);
  printf("named %s\n",
         forward && strstr(attnKernelGetManifest(forward), "\"plain_jvp\"")
             ? "plain_jvp"
             : "otherwise");
  // What a caller of before does not have is not read.
  options.struct_size = offsetof(AttnCompileOptions, functions);
  attnKernelDestroy(forward);
  forward = compile(&options);
  // CHECK-NEXT: named plain
  printf("named %s\n",
         forward && strstr(attnKernelGetManifest(forward), "\"plain\"")
             ? "plain"
             : "otherwise");
  attnKernelDestroy(forward);
  attnKernelDestroy(backward);
  return 0;
}
