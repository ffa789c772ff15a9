//===- HostTensor.h - a strided tensor in host memory -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Test and tool side of a call: owns memory, converts elements to and from
// double, and surrounds the data with poison, so that a read or a write outside
// the tensor is seen.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_HOSTTENSOR_H
#define ATTN_EXECUTE_HOSTTENSOR_H

#include "attn/Runtime/Arguments.h"
#include "attn/Support/Artifact.h"
#include <functional>
#include <vector>

namespace attn {

/// The bits of `value` as an element, rounded to nearest even.
uint64_t encodeElement(ElementKind element, double value);
/// The reverse.
double decodeElement(ElementKind element, uint64_t bits);

class HostTensor {
public:
  /// `order` lists the dimensions from the outermost in memory to the
  /// innermost; empty: as they are. `padding` elements of poison stand between
  /// consecutive rows of the innermost dimension and around the whole.
  HostTensor(ElementKind element, std::vector<int64_t> sizes,
             std::vector<int64_t> order = {}, int64_t padding = 0);

  ElementKind element() const { return kind; }
  const std::vector<int64_t> &sizes() const { return extents; }
  const std::vector<int64_t> &strides() const { return steps; }
  int64_t numElements() const;

  /// The address of the first element.
  void *data() { return bytes.data() + first * elementBytes(kind); }
  const void *data() const { return bytes.data() + first * elementBytes(kind); }
  runtime::Argument argument();

  /// All memory, padding included, becomes NaN (all ones for integers).
  void poison();
  /// True when the padding is as `poison` left it.
  bool isPaddingIntact() const;

  /// The elements in row-major order of the sizes.
  std::vector<double> values() const;
  void assign(const std::function<double()> &next);
  void assign(const std::vector<double> &values);

  void assignBits(const std::function<uint64_t()> &next);

  /// All memory, padding included, and where the first element is in it.
  std::vector<unsigned char> &storage() { return bytes; }
  int64_t storageOffset() const { return first * elementBytes(kind); }

  /// The bits of the elements, in row-major order of the sizes.
  std::vector<uint64_t> bits() const;

private:
  void forEach(const std::function<void(int64_t offset)> &visit) const;
  uint64_t load(int64_t offset) const;
  void store(int64_t offset, uint64_t value);

  ElementKind kind;
  std::vector<int64_t> extents, steps;
  int64_t first = 0; // elements in front
  std::vector<unsigned char> bytes;
};

} // namespace attn

#endif // ATTN_EXECUTE_HOSTTENSOR_H
