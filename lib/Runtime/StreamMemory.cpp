//===- StreamMemory.cpp - memory that stays with a stream ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/StreamMemory.h"

using namespace attn::runtime;

static constexpr size_t kMaxStreams = 1024;

void *StreamMemory::find(CUstream stream) {
  void *none = nullptr;
  int captureStatus = 0;
  // A handle may come back with another stream, its number never does.
  unsigned long long number = 0;
  if (!driver.streamGetId || !driver.streamIsCapturing ||
      !driver.memAllocAsync ||
      driver.streamIsCapturing(stream, &captureStatus) != 0 ||
      captureStatus != 0 || driver.streamGetId(stream, &number) != 0)
    return none;
  std::lock_guard<std::mutex> guard(mutex);
  auto found = pieces.find(number);
  if (found != pieces.end())
    return reinterpret_cast<void *>(found->second);
  if (pieces.size() >= kMaxStreams)
    return none;
  CUdeviceptr piece = 0;
  // In the order of the stream: that does not disturb another one's capture.
  Status status = driver.check(driver.memAllocAsync(&piece, kMaxBytes, stream),
                               "allocating memory of a stream");
  if (status.ok())
    status = driver.check(driver.memsetD8Async(piece, 0, kMaxBytes, stream),
                          "clearing memory of a stream");
  if (!status.ok()) {
    if (piece)
      (void)driver.memFree(piece);
    return none; // a launch has other ways
  }
  pieces[number] = piece;
  return reinterpret_cast<void *>(piece);
}

StreamMemory::~StreamMemory() {
  // The driver waits for what uses it.
  for (auto &[number, piece] : pieces)
    (void)driver.memFree(piece);
}
