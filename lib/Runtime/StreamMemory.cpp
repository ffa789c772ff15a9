//===- StreamMemory.cpp - memory that stays with a stream ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/StreamMemory.h"

#include <algorithm>

using namespace attn::runtime;

static constexpr size_t kMaxStreams = 1024;
/// Of a piece.
static constexpr size_t kMinBytes = 4096;

void StreamMemory::reserve() {
  // Apart from everything else that the GPU does: CU_STREAM_NON_BLOCKING.
  constexpr unsigned kNonBlocking = 1;
  constexpr size_t size = kCapturedBytes * kMaxCaptured;
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  if (driver.streamCreate(&stream, kNonBlocking) != 0)
    return;
  if (driver.memAlloc(&address, size) == 0) {
    if (driver.memsetD8Async(address, 0, size, stream) == 0 &&
        driver.streamSynchronize(stream) == 0)
      reserved = address;
    else
      (void)driver.memFree(address);
  }
  (void)driver.streamDestroy(stream);
}

void *StreamMemory::takeReserved(size_t bytes) {
  if (!reserved || bytes > kCapturedBytes || numTaken == kMaxCaptured)
    return nullptr;
  return reinterpret_cast<void *>(reserved + numTaken++ * kCapturedBytes);
}

void *StreamMemory::find(CUstream stream, size_t zeroBytes, size_t bytes) {
  void *none = nullptr;
  int captureStatus = 0;
  // A handle may come back with another stream, its number never does.
  unsigned long long number = 0;
  if (!driver.streamIsCapturing ||
      driver.streamIsCapturing(stream, &captureStatus) != 0)
    return none;
  if (captureStatus != 0)
    return takeReserved(bytes);
  if (!driver.streamGetId || !driver.memAllocAsync || !driver.memFreeAsync ||
      driver.streamGetId(stream, &number) != 0)
    return none;
  auto found = pieces.find(number);
  Piece old;
  if (found != pieces.end())
    old = found->second;
  // After the zeros there may be anything.
  if (old.bytes >= bytes && old.zeroBytes == zeroBytes)
    return reinterpret_cast<void *>(old.address);
  if (found == pieces.end() && pieces.size() >= kMaxStreams)
    return none;
  Piece piece;
  piece.zeroBytes = zeroBytes;
  piece.bytes = kMinBytes;
  while (piece.bytes < std::max(bytes, old.bytes))
    piece.bytes *= 2;
  // In the order of the stream: that does not disturb another one's capture.
  Status status =
      driver.check(driver.memAllocAsync(&piece.address, piece.bytes, stream),
                   "allocating memory of a stream");
  if (status.ok() && zeroBytes != 0)
    status =
        driver.check(driver.memsetD8Async(piece.address, 0, zeroBytes, stream),
                     "clearing memory of a stream");
  if (!status.ok()) {
    if (piece.address)
      (void)driver.memFree(piece.address);
    return none; // a launch has other ways
  }
  if (old.address)
    (void)driver.memFreeAsync(old.address, stream);
  pieces[number] = piece;
  return reinterpret_cast<void *>(piece.address);
}

StreamMemory::~StreamMemory() {
  // The driver frees what was set aside when the device has nothing left to do,
  // but pieces, which come from a pool, at once: launches may still use them.
  if (reserved)
    (void)driver.memFree(reserved);
  else if (!pieces.empty())
    (void)driver.ctxSynchronize();
  for (auto &[number, piece] : pieces)
    (void)driver.memFree(piece.address);
}
