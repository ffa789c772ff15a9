//===- Memory.cpp - simulated shared and global memory --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <cstring>

using namespace attn::simulator;

std::string SharedMemory::check(int64_t address, int64_t size) const {
  if (address < 0 || address + size > int64_t(bytes.size()))
    return "touches byte " + std::to_string(address) + " of " +
           std::to_string(bytes.size()) + " bytes of shared memory";
  if (address % size != 0)
    return "touches " + std::to_string(size) + " bytes at byte " +
           std::to_string(address) + " of shared memory, misaligned";
  return "";
}

std::string SharedMemory::read(int64_t address, int64_t size, int64_t warp,
                               void *to) {
  if (std::string message = check(address, size); !message.empty())
    return message;
  for (int64_t i = address / 4; i <= (address + size - 1) / 4; ++i) {
    Word &word = words[i];
    if (word.copies != 0)
      return "reads byte " + std::to_string(4 * i) +
             " of shared memory while a copy to it is in flight";
    if (!word.isWritten)
      return "reads byte " + std::to_string(4 * i) +
             " of shared memory, which nobody wrote";
    if (word.writeEpoch == epoch && word.writer != warp)
      return "race: warp " + std::to_string(warp) + " reads byte " +
             std::to_string(4 * i) + " of shared memory that warp " +
             std::to_string(word.writer) + " wrote, with no barrier in between";
    if (word.readEpoch != epoch)
      word.readers = 0;
    word.readEpoch = epoch;
    word.readers |= 1u << warp;
  }
  std::memcpy(to, &bytes[address], size);
  return "";
}

std::string SharedMemory::noteWrite(Word &word, int64_t warp) {
  uint32_t others = word.readers & ~(1u << warp);
  if (word.readEpoch == epoch && others != 0)
    return "race: warp " + std::to_string(warp) +
           " writes shared memory that another warp reads, with no barrier in "
           "between";
  if (word.writeEpoch == epoch && word.writer != warp)
    return "race: warps " + std::to_string(warp) + " and " +
           std::to_string(word.writer) +
           " write the same shared memory, with no barrier in between";
  word.writeEpoch = epoch;
  word.writer = warp;
  return "";
}

std::string SharedMemory::write(int64_t address, int64_t size, int64_t warp,
                                const void *from) {
  if (std::string message = check(address, size); !message.empty())
    return message;
  for (int64_t i = address / 4; i <= (address + size - 1) / 4; ++i) {
    if (words[i].copies != 0)
      return "writes shared memory while a copy to it is in flight";
    if (std::string message = noteWrite(words[i], warp); !message.empty())
      return message;
    words[i].isWritten = true;
  }
  std::memcpy(&bytes[address], from, size);
  return "";
}

std::string SharedMemory::beginCopy(int64_t address, int64_t size,
                                    int64_t warp) {
  if (std::string message = check(address, size); !message.empty())
    return message;
  for (int64_t i = address / 4; i < (address + size) / 4; ++i) {
    if (words[i].copies != 0)
      return "starts a copy to shared memory while another is in flight";
    if (std::string message = noteWrite(words[i], warp); !message.empty())
      return message;
    ++words[i].copies;
  }
  ++inFlight;
  return "";
}

std::string SharedMemory::finishCopy(int64_t address, int64_t size,
                                     int64_t warp, const void *from) {
  for (int64_t i = address / 4; i < (address + size) / 4; ++i) {
    --words[i].copies;
    words[i].isWritten = true;
    words[i].writeEpoch = epoch;
    words[i].writer = warp;
  }
  std::memcpy(&bytes[address], from, size);
  --inFlight;
  return "";
}

std::string GlobalMemory::check(uint64_t address, int64_t size) const {
  if (address % size != 0)
    return "touches " + std::to_string(size) +
           " bytes of global memory, misaligned";
  for (const std::array<uint64_t, 2> &range : ranges)
    if (address >= range[0] && address + size <= range[0] + range[1])
      return "";
  return "touches global memory outside of the arguments";
}
