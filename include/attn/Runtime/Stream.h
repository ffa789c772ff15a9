//===- Stream.h - streams, and events that time them ---------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_STREAM_H
#define ATTN_RUNTIME_STREAM_H

#include "attn/Runtime/Device.h"

namespace attn::runtime {

/// A queue of work on a device. Move-only; the null stream is a plain nullptr.
class Stream {
public:
  static Result<Stream> create(const Device &device);
  Stream(Stream &&other) noexcept { swap(other); }
  Stream &operator=(Stream &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Stream();

  CUstream handle() const { return stream; }
  /// Waits until all work in the queue is done.
  Status synchronize() const;

private:
  Stream() = default;
  void swap(Stream &other) {
    std::swap(device, other.device);
    std::swap(stream, other.stream);
  }

  Device device;
  CUstream stream = nullptr;
};

/// A point in a stream that can be waited for and timed. Move-only.
class Event {
public:
  static Result<Event> create(const Device &device);
  Event(Event &&other) noexcept { swap(other); }
  Event &operator=(Event &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Event();

  Status record(CUstream stream);
  Status synchronize() const;
  /// Milliseconds from `start` to this event; both must have been reached.
  Result<float> millisecondsSince(const Event &start) const;

private:
  Event() = default;
  void swap(Event &other) {
    std::swap(device, other.device);
    std::swap(event, other.event);
  }

  Device device;
  CUevent event = nullptr;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_STREAM_H
