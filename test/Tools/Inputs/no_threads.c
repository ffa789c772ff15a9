/*===- no_threads.c - a process that may start no thread ------------------===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <errno.h>

int pthread_create(void *thread, const void *attributes, void *(*run)(void *),
                   void *argument) {
  (void)thread, (void)attributes, (void)run, (void)argument;
  return EAGAIN;
}
