/*===- artifact.c - artifacts through the C API ---------------------- C
-*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: ./capi-artifact | FileCheck %s

#include "attn-c/attn.h"

#include <stdio.h>
#include <string.h>

static void expect(int condition, const char *what) {
  if (!condition)
    printf("FAILED: %s (%s)\n", what, attnErrorMessage());
}

int main(void) {
  // CHECK-NOT: FAILED
  AttnArtifact *artifact;
  const char *text = "not an artifact";
  expect(attnGetApiVersion() == ATTN_API_VERSION, "API version");
  expect(strcmp(attnErrorMessage(), "") == 0, "no error at the start");

  artifact = attnArtifactParse(text, strlen(text));
  expect(artifact == NULL, "text is no artifact");
  // CHECK: parse: not an attn artifact (wanted a file that starts with
  printf("parse: %s\n", attnErrorMessage());

  expect(attnArtifactParse(NULL, 0) == NULL, "NULL is no artifact");
  // CHECK-NEXT: parse: attnArtifactParse: bytes is NULL
  printf("parse: %s\n", attnErrorMessage());

  expect(attnLoad(NULL, -1) == NULL, "NULL cannot be loaded");
  // CHECK-NEXT: load: attnLoad: artifact is NULL
  printf("load: %s\n", attnErrorMessage());

  expect(attnLaunch(NULL, NULL, 0, NULL) != 0, "NULL cannot be launched");
  // CHECK-NEXT: launch: attnLaunch: kernel or arguments is NULL
  printf("launch: %s\n", attnErrorMessage());

  attnArtifactDestroy(NULL);
  attnKernelDestroy(NULL);
  // CHECK: done
  // CHECK-NOT: FAILED
  printf("done\n");
  return 0;
}
