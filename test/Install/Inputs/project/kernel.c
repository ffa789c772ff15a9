/*===- kernel.c - a program with a compiled kernel ---------------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "causal.h"

#include <stdio.h>

int main(void) {
  AttnArtifact *artifact =
      attnArtifactParse(causal_sm_80_artifact, sizeof(causal_sm_80_artifact));
  AttnKernel *kernel;
  if (!artifact) {
    printf("not parsed: %s\n", attnErrorMessage());
    return 1;
  }
  printf("%s", attnArtifactGetManifest(artifact));
  attnArtifactDestroy(artifact);
  /* Where there is no GPU, that is the error. */
  kernel = causal_sm_80_load(-1);
  printf("load: %s\n", kernel ? "loaded" : attnErrorMessage());
  attnKernelDestroy(kernel);
  return 0;
}
