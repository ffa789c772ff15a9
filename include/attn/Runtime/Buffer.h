//===- Buffer.h - device memory that frees itself ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_BUFFER_H
#define ATTN_RUNTIME_BUFFER_H

#include "attn/Runtime/Device.h"

namespace attn::runtime {

/// A block of device memory. Move-only; freed at destruction.
class Buffer {
public:
  /// `bytes` of uninitialised memory; 0 bytes give a null pointer.
  static Result<Buffer> allocate(const Device &device, size_t bytes);

  Buffer() = default;
  Buffer(Buffer &&other) noexcept { swap(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  CUdeviceptr pointer() const { return address; }
  void *data() const { return reinterpret_cast<void *>(address); }
  size_t size() const { return bytes; }

  /// All of the buffer from, or to, host memory; returns when it is done.
  Status copyFrom(const void *host);
  Status copyTo(void *host) const;
  /// Every byte becomes `value`.
  Status fill(unsigned char value);

private:
  void swap(Buffer &other) {
    std::swap(device, other.device);
    std::swap(address, other.address);
    std::swap(bytes, other.bytes);
  }

  Device device;
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_BUFFER_H
