/*===- launch_loop.c - launches of a C program, timed --------------- C -*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* launch_cost.py makes a library of it, to time what Python takes no part in.*|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "attn-c/attn.h"

#include <time.h>

typedef int (*Launch)(const AttnKernel *, const AttnArgument *, size_t, void *);

/* Seconds of `count` launches on the arguments of each of `numSets` sets in
   turn; below 0 where one failed. */
double timeLaunches(Launch launch, const AttnKernel *kernel,
                    const AttnArgument *const *sets, int numSets,
                    size_t numArguments, void *stream, int count) {
  struct timespec start, stop;
  int i;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (i = 0; i < count; ++i)
    if (launch(kernel, sets[i % numSets], numArguments, stream))
      return -1;
  clock_gettime(CLOCK_MONOTONIC, &stop);
  return (double)(stop.tv_sec - start.tv_sec) +
         1e-9 * (double)(stop.tv_nsec - start.tv_nsec);
}
