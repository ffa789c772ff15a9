//===- StreamMemory.h - memory that stays with a stream ------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_STREAMMEMORY_H
#define ATTN_RUNTIME_STREAMMEMORY_H

#include "attn/Runtime/Driver.h"

#include <map>
#include <mutex>

namespace attn::runtime {

/// Memory for launches that ask for zeros only where they leave zeros behind (a
/// counter that wraps around). One piece for each stream, whose launches run
/// one after the other; cleared once. A launch that is captured in a graph gets
/// memory that no other launch ever has: what a graph repeats runs one after
/// the other, too. The context must be current in every call and at
/// destruction.
class StreamMemory {
public:
  /// What a piece may have.
  static constexpr size_t kMaxBytes = size_t(1) << 20;

  /// What a captured launch may have, and how many have some.
  static constexpr size_t kCapturedBytes = 256, kMaxCaptured = 1024;

  explicit StreamMemory(const Driver &driver) : driver(driver) {}
  StreamMemory(const StreamMemory &) = delete;
  StreamMemory &operator=(const StreamMemory &) = delete;
  ~StreamMemory();

  /// To be held while `find` is called, and until all kernels of a launch are
  /// on their way: what one leaves to the next must not be another launch's.
  std::unique_lock<std::mutex> lock() {
    return std::unique_lock<std::mutex>(mutex);
  }

  /// Sets memory aside for launches that are captured: while a stream is being
  /// captured nothing can be cleared before the graph runs. Without any they go
  /// other ways. To be called where RelaxedCapture is.
  void reserve();

  /// `bytes` of `stream`, at most `kMaxBytes`, of which the first `zeroBytes`
  /// are zero; null where there can be none: the stream is being captured and
  /// what was set aside is used up or too small, the driver does not tell
  /// streams apart or has no memory, or there are too many.
  void *find(CUstream stream, size_t zeroBytes, size_t bytes);

private:
  struct Piece {
    CUdeviceptr address = 0;
    size_t zeroBytes = 0, bytes = 0;
  };

  void *takeReserved(size_t bytes);

  const Driver &driver;
  std::mutex mutex;
  CUdeviceptr reserved = 0; // all zero
  size_t numTaken = 0;
  std::map<unsigned long long, Piece> pieces; // by number of the stream
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_STREAMMEMORY_H
