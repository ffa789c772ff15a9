//===- x - FakeDriver.h - what the fake driver wrote down ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_FAKEDRIVER_H
#define ATTN_TEST_UNIT_INPUTS_FAKEDRIVER_H

#include "attn/Runtime/Driver.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

/// A call of cuTensorMapEncodeTiled.
struct FakeTensorMap {
  int type = -1, swizzle = -1;
  void *data = nullptr;
  std::vector<uint64_t> sizes, strides;
  std::vector<unsigned> box;
};

/// Counts in several threads, and keeps none of them waiting: a lock here would
/// hide where one is missing.
class Counter {
public:
  Counter(int start = 0) : count(start) {}
  Counter(const Counter &other) : count(other) {}
  Counter &operator=(const Counter &other) {
    count.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator int() const { return count.load(std::memory_order_relaxed); }
  void operator+=(int more) {
    count.fetch_add(more, std::memory_order_relaxed);
  }
  void operator++() { *this += 1; }
  void operator--() { *this += -1; }

private:
  std::atomic<int> count;
};

struct FakeRecord {
  /// By several threads: launches are counted, not written down. First here, as
  /// Python sets it.
  bool isShared = false;
  /// Alive now.
  Counter modules, buffers, streams, events, launches;
  int sharedLimit = -1;
  /// Allocations in the order of a stream, and whether there are any.
  bool hasMemoryPools = true;
  Counter orderedAllocations, streamWaits, clearedBytes;
  bool isCapturing = false;
  /// Whether a launch may still run, and how often memory of a pool, which goes
  /// at once, was freed then.
  bool mayRun = false;
  int freedWhileRunning = 0;
  /// Of all launches.
  std::vector<std::array<unsigned, 3>> grids;
  /// The numbers of those that need not wait for the one before.
  std::vector<int> earlyLaunches;
  /// The last launch.
  std::array<unsigned, 3> grid = {0, 0, 0};
  unsigned threads = 0, shared = 0;
  attn::runtime::CUstream stream = nullptr;
  /// As many 8-byte parameters are read as there is room for.
  std::vector<uint64_t> parameters;
  /// Offset and bytes of each parameter of every kernel; empty: of none.
  std::vector<std::pair<size_t, size_t>> layout;
  /// How often somebody asked for a parameter that there is not.
  int wrongParameters = 0;
  /// Whether the last launch had its parameters in one buffer.
  bool isBuffered = false;
  /// Those that were made; each starts with its number here.
  std::vector<FakeTensorMap> tensorMaps;
};

FakeRecord *fakeRecord();

/// Contexts are those of a thread.
struct FakeThread {
  attn::runtime::CUcontext current = nullptr, pushedOver = nullptr;
  int pushes = 0;
  /// 0, global: no memory while a stream is being captured; 2, relaxed.
  int captureMode = 0;
};

FakeThread *fakeThread();

#endif // ATTN_TEST_UNIT_INPUTS_FAKEDRIVER_H
