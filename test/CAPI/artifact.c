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

  // Every getter says that it was given nothing.
  {
    size_t size = 1;
    expect(attnArtifactGetBytes(NULL, &size) == NULL && size == 0, "bytes");
    // CHECK-NEXT: get: attnArtifactGetBytes: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetBytes(NULL, NULL) == NULL, "bytes");
    size = 1;
    expect(attnArtifactGetCubin(NULL, &size) == NULL && size == 0, "cubin");
    // CHECK-NEXT: get: attnArtifactGetCubin: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetManifest(NULL) == NULL, "manifest");
    // CHECK-NEXT: get: attnArtifactGetManifest: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetPTX(NULL) == NULL, "PTX");
    // CHECK-NEXT: get: attnArtifactGetPTX: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetLog(NULL) == NULL, "log");
    // CHECK-NEXT: get: attnArtifactGetLog: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactIsFromCache(NULL) == -1, "from the cache");
    // CHECK-NEXT: get: attnArtifactIsFromCache: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetFunctionCount(NULL) == -1, "functions");
    // CHECK-NEXT: get: attnArtifactGetFunctionCount: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactGetName(NULL, 0) == NULL, "name");
    // CHECK-NEXT: get: attnArtifactGetName: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnArtifactCopyFunction(NULL, 0) == NULL, "function");
    // CHECK-NEXT: get: attnArtifactCopyFunction: artifact is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnKernelGetManifest(NULL) == NULL, "kernel's manifest");
    // CHECK-NEXT: get: attnKernelGetManifest: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnKernelGetLog(NULL) == NULL, "kernel's log");
    // CHECK-NEXT: get: attnKernelGetLog: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnKernelGetRegisters(NULL) == -1, "registers");
    // CHECK-NEXT: get: attnKernelGetRegisters: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnKernelGetLocalBytes(NULL) == -1, "local bytes");
    // CHECK-NEXT: get: attnKernelGetLocalBytes: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnKernelGetRelayouts(NULL) == -1, "relayouts");
    // CHECK-NEXT: get: attnKernelGetRelayouts: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
    expect(attnSynchronize(NULL) != 0, "synchronize");
    // CHECK-NEXT: get: attnSynchronize: kernel is NULL
    printf("get: %s\n", attnErrorMessage());
  }

  attnArtifactDestroy(NULL);
  attnKernelDestroy(NULL);
  // CHECK: done
  // CHECK-NOT: FAILED
  printf("done\n");
  return 0;
}
