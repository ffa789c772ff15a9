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
#include <cstdint>
#include <vector>

/// A call of cuTensorMapEncodeTiled.
struct FakeTensorMap {
  int type = -1, swizzle = -1;
  void *data = nullptr;
  std::vector<uint64_t> sizes, strides;
  std::vector<unsigned> box;
};

struct FakeRecord {
  /// Alive now.
  int modules = 0, buffers = 0, streams = 0, events = 0;
  int launches = 0, sharedLimit = -1;
  /// Allocations in the order of a stream, and whether there are any.
  bool hasMemoryPools = true;
  int orderedAllocations = 0, streamWaits = 0, clearedBytes = 0;
  bool isCapturing = false;
  /// Of all launches.
  std::vector<std::array<unsigned, 3>> grids;
  /// The last launch.
  std::array<unsigned, 3> grid = {0, 0, 0};
  unsigned threads = 0, shared = 0;
  attn::runtime::CUstream stream = nullptr;
  /// As many 8-byte parameters are read as there is room for.
  std::vector<uint64_t> parameters;
  /// Those that were made; each starts with its number here.
  std::vector<FakeTensorMap> tensorMaps;
};

/// To be read and written where no other thread calls the driver.
FakeRecord *fakeRecord();

/// Contexts are those of a thread.
struct FakeThread {
  attn::runtime::CUcontext current = nullptr, pushedOver = nullptr;
  int pushes = 0;
};

FakeThread *fakeThread();

#endif // ATTN_TEST_UNIT_INPUTS_FAKEDRIVER_H
