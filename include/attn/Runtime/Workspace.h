//===- Workspace.h - memory for one launch -------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_WORKSPACE_H
#define ATTN_RUNTIME_WORKSPACE_H

#include "attn/Runtime/Device.h"

namespace attn::runtime {

/// Device memory that belongs to the work of one stream: what is put into the
/// stream between `allocate` and destruction may use it. Where the driver
/// allocates in the order of a stream nobody waits; otherwise destruction waits
/// for the stream. The context must be current all the while.
class Workspace {
public:
  /// 0 bytes give a null pointer.
  static Result<Workspace> allocate(const Driver &driver, size_t bytes,
                                    CUstream stream);

  Workspace(Workspace &&other) noexcept { swap(other); }
  Workspace &operator=(Workspace &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Workspace();

  void *data() const { return reinterpret_cast<void *>(address); }

private:
  Workspace() = default;
  void swap(Workspace &other) {
    std::swap(driver, other.driver);
    std::swap(address, other.address);
    std::swap(stream, other.stream);
    std::swap(isOrdered, other.isOrdered);
  }

  const Driver *driver = nullptr;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  bool isOrdered = false;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_WORKSPACE_H
