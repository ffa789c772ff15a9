//===- Jobs.cpp - independent work on several threads -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Jobs.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>
#include <locale.h>
#include <pthread.h>

using namespace attn;

unsigned attn::countProcessors() {
  return llvm::hardware_concurrency().compute_thread_count();
}

namespace {
/// The jobs, and what their threads share.
struct Team {
  size_t count;
  llvm::function_ref<void(size_t)> job;
  locale_t locale;
  std::atomic<size_t> next = 0;
  std::atomic<int> faultStatus = 0;

  void work() {
    // A fault must not leave this function: the other threads are still in it.
    llvm::CrashRecoveryContext guard;
    guard.DumpStackAndCleanupOnFailure = true;
    bool isDone = guard.RunSafely([&] {
      for (size_t number = next++; number < count; number = next++)
        job(number);
    });
    if (!isDone)
      faultStatus = guard.RetCode;
  }
};
} // namespace

static void *join(void *data) {
  auto *team = static_cast<Team *>(data);
  uselocale(team->locale);
  team->work();
  return nullptr;
}

/// False if the machine gives none.
static bool startThread(Team &team, pthread_t &thread) {
  constexpr size_t stackBytes = 8 << 20; // as the first thread's
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return false;
  bool isStarted = pthread_attr_setstacksize(&attributes, stackBytes) == 0 &&
                   pthread_create(&thread, &attributes, join, &team) == 0;
  pthread_attr_destroy(&attributes);
  return isStarted;
}

void attn::runJobs(size_t count, unsigned threads,
                   llvm::function_ref<void(size_t)> job) {
  size_t wanted = std::min<size_t>(count, threads);
  if (wanted <= 1) {
    for (size_t number = 0; number < count; ++number)
      job(number);
    return;
  }
  Team team{count, job, uselocale(nullptr)};
  llvm::SmallVector<pthread_t> others;
  for (pthread_t thread; others.size() + 1 < wanted;) {
    if (!startThread(team, thread))
      break;
    others.push_back(thread);
  }
  team.work();
  for (pthread_t thread : others)
    pthread_join(thread, nullptr);
  llvm::CrashRecoveryContext::throwIfCrash(team.faultStatus);
}
