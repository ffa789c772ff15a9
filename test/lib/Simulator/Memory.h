//===- Memory.h - simulated shared and global memory ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_MEMORY_H
#define ATTN_TEST_SIMULATOR_MEMORY_H

#include "attn/Support/LLVM.h"
#include <array>
#include <string>
#include <vector>

namespace attn::simulator {

/// The shared memory of one block, with what is needed to see races.
class SharedMemory {
public:
  explicit SharedMemory(int64_t bytes) : bytes(bytes), words((bytes + 3) / 4) {}

  /// All of these give what is wrong, or nothing.
  std::string read(int64_t address, int64_t size, int64_t warp, void *to);
  std::string write(int64_t address, int64_t size, int64_t warp,
                    const void *from);
  std::string beginCopy(int64_t address, int64_t size, int64_t warp);
  std::string finishCopy(int64_t address, int64_t size, int64_t warp,
                         const void *from);

  void barrier() { ++epoch; }
  bool hasCopiesInFlight() const { return inFlight != 0; }

private:
  /// A word of four bytes: its last accesses, by epoch of barriers.
  struct Word {
    int32_t writeEpoch = -1, readEpoch = -1;
    uint32_t readers = 0;
    int16_t writer = -1, copies = 0;
    bool isWritten = false;
  };
  std::string check(int64_t address, int64_t size) const;
  std::string noteWrite(Word &word, int64_t warp);

  std::vector<uint8_t> bytes;
  std::vector<Word> words;
  int32_t epoch = 0;
  int64_t inFlight = 0;
};

/// What a program may touch of the process: the tensors it was given.
class GlobalMemory {
public:
  void add(const void *data, int64_t bytes) {
    ranges.push_back({reinterpret_cast<uint64_t>(data), uint64_t(bytes)});
  }
  /// Memory that it owns, not empty, each byte of which is `fill`.
  void *allocate(int64_t bytes, uint8_t fill) {
    own.emplace_back(bytes + 1, fill);
    add(own.back().data(), bytes);
    return own.back().data();
  }
  std::string check(uint64_t address, int64_t size) const;

private:
  std::vector<std::array<uint64_t, 2>> ranges;
  std::vector<std::vector<uint8_t>> own;
};

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_MEMORY_H
