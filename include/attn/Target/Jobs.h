//===- Jobs.h - independent work on several threads -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_JOBS_H
#define ATTN_TARGET_JOBS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace attn {

/// On how many processors the threads of this process may run.
unsigned countProcessors();

/// Does `job(0)`, … `job(count - 1)`, each once, on at most `threads` threads,
/// of which this is one, and waits for all. One thread does them in order; that
/// is also what happens where the machine gives no more of them. Jobs must not
/// depend on each other, and leave an MLIRContext without threads to one of
/// them. They run in the locale of this thread. A fault in one is a fault of
/// this thread, once all have ended.
void runJobs(size_t count, unsigned threads,
             llvm::function_ref<void(size_t)> job);

} // namespace attn

#endif // ATTN_TARGET_JOBS_H
