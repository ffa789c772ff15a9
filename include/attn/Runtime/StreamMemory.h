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

/// Zeros for launches that leave zeros behind: a counter that wraps around. One
/// piece for each stream, whose launches run one after the other; cleared once.
/// The context must be current in every call and at destruction.
class StreamMemory {
public:
  /// What a piece may have.
  static constexpr size_t kMaxBytes = 4096;

  explicit StreamMemory(const Driver &driver) : driver(driver) {}
  StreamMemory(const StreamMemory &) = delete;
  StreamMemory &operator=(const StreamMemory &) = delete;
  ~StreamMemory();

  /// The piece of `stream`; null where there can be none: the stream is being
  /// captured (a graph keeps memory of its own), the driver does not tell
  /// streams apart or has no memory, or there are too many.
  void *find(CUstream stream);

private:
  const Driver &driver;
  std::mutex mutex;
  std::map<unsigned long long, CUdeviceptr> pieces; // by number of the stream
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_STREAMMEMORY_H
