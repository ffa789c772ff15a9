//===- MachineMemory.cpp - how much a process may have --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/MachineMemory.h"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

int64_t attn::memoryLimit() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = static_cast<int64_t>(
        std::min(static_cast<rlim_t>(bytes), limit.rlim_cur));
  return bytes;
}
