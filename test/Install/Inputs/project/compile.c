/*===- compile.c - a program that compiles ------------------------------ C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "attn-c/attn.h"

#include <stdio.h>
#include <string.h>

static const char *program =
    "func.func @f(%q: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {\n"
    "  %o, %lse = attn.attention %q, %q, %q\n"
    "    : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)\n"
    "      -> (tensor<1x1x?x16xf32>, tensor<1x1x?xf32>)\n"
    "  return %o : tensor<1x1x?x16xf32>\n"
    "}\n";

int main(void) {
  AttnKernel *kernel = attnCompileForCPU(program, strlen(program), NULL);
  printf("%s\n", kernel ? "compiled for cpu" : attnErrorMessage());
  attnKernelDestroy(kernel);
  return kernel == NULL;
}
