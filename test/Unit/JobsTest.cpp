//===- JobsTest.cpp - independent work on several threads -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Jobs.h"

#include "llvm/Support/CrashRecoveryContext.h"

#include "gtest/gtest.h"

#include <atomic>
#include <locale.h>
#include <numeric>
#include <vector>

using namespace attn;

TEST(Jobs, EachOnce) {
  for (size_t count : {0, 1, 3, 100})
    for (unsigned threads : {0u, 1u, 2u, 7u}) {
      std::vector<std::atomic<int>> done(count);
      runJobs(count, threads, [&](size_t number) { ++done[number]; });
      for (std::atomic<int> &times : done)
        EXPECT_EQ(times, 1) << count << " jobs, " << threads << " threads";
    }
}

TEST(Jobs, OneThreadKeepsTheOrder) {
  std::vector<size_t> order, expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  runJobs(20, 1, [&](size_t number) { order.push_back(number); });
  EXPECT_EQ(order, expected);
}

// Two that wait for each other need two threads.
TEST(Jobs, BesideEachOther) {
  std::atomic<int> begun = 0;
  runJobs(2, 2, [&](size_t) {
    ++begun;
    while (begun < 2) {
    }
  });
  EXPECT_EQ(begun, 2);
}

TEST(Jobs, LocaleOfTheCaller) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  locale_t before = uselocale(plain);
  std::atomic<int> begun = 0, same = 0;
  runJobs(2, 2, [&](size_t) {
    ++begun;
    while (begun < 2) {
    }
    same += uselocale(nullptr) == plain;
  });
  uselocale(before);
  freelocale(plain);
  EXPECT_EQ(same, 2);
}

// A fault on any thread is one of the caller, who may survive it.
TEST(Jobs, FaultOfTheCaller) {
  llvm::CrashRecoveryContext::Enable();
  for (size_t broken : {0, 1}) {
    std::atomic<int> begun = 0;
    bool isDone = llvm::CrashRecoveryContext().RunSafely([&] {
      runJobs(2, 2, [&](size_t number) {
        ++begun;
        while (begun < 2) {
        }
        if (number == broken)
          __builtin_trap();
      });
    });
    EXPECT_FALSE(isDone) << broken;
  }
  llvm::CrashRecoveryContext::Disable();
}
