//===- ParameterLayout.h - parameters in one buffer ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver takes the parameters of a launch one by one, through pointers, or
// all in one buffer. That saves 0.3 us of the 4.4 that it takes for the 57 of
// plain attention. Where each lies in the buffer the driver says: after numbers
// of 8 bytes a tensor map does not lie at the next multiple of 64 (it does in
// the bank of constants, where parameters do not begin at one).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_PARAMETERLAYOUT_H
#define ATTN_RUNTIME_PARAMETERLAYOUT_H

#include "attn/Runtime/Driver.h"

#include <vector>

namespace attn::runtime {

/// Where the parameters of a kernel lie: numbers of up to 8 bytes, then tensor
/// maps.
class ParameterLayout {
public:
  /// Of no parameters.
  ParameterLayout() = default;
  /// Of a kernel of so many, as the driver says; of none where it does not know
  /// them all, or cannot say (before CUDA 12.4). It is not asked for more:
  /// tools that watch a program report every call that fails.
  static ParameterLayout of(const Driver &driver, CUfunction kernel,
                            size_t count);

  /// Whether it is the layout of so many.
  bool isOf(size_t numbers, size_t maps) const;
  /// Of the buffer.
  size_t bytes() const { return end; }
  void writeNumbers(const std::vector<uint64_t> &numbers,
                    unsigned char *buffer) const;
  /// The tensor map that is parameter `number`.
  void writeMap(size_t number, const void *map, unsigned char *buffer) const;

private:
  struct Place {
    size_t offset = 0, bytes = 0;
  };
  std::vector<Place> places;
  size_t end = 0;
  /// How many places from the first on are words side by side.
  size_t words = 0;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_PARAMETERLAYOUT_H
