//===- Overlap.cpp - tensors that share memory ---------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Overlap.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

using namespace attn;
using namespace attn::runtime;

namespace {
/// A dimension with more than one element, counted from its lowest address:
/// `last` steps of `stride` > 0 lead to the highest.
struct Steps {
  int64_t last, stride;

  int64_t span() const { return last * stride; }
};

/// Where the elements of a tensor lie, in bytes.
struct TouchedBytes {
  uint64_t begin = 0;
  int64_t bytes = 0; // of an element
  std::vector<Steps> dimensions;
};
} // namespace

static int64_t sumSpans(const std::vector<Steps> &dimensions) {
  int64_t sum = 0;
  for (const Steps &steps : dimensions)
    sum += steps.span();
  return sum;
}

//===----------------------------------------------------------------------===//
// One tensor
//===----------------------------------------------------------------------===//

// Two elements in one place differ in their indices, by d: the sum of d_i
// stride_i is 0. Whether d is 0 in dimension i for any such pair: its stride is
// longer than all others reach, or the others move in larger steps only.
static bool standsApart(const std::vector<Steps> &dimensions, size_t i) {
  int64_t divisor = 0;
  for (size_t k = 0; k < dimensions.size(); ++k)
    if (k != i)
      divisor = std::gcd(divisor, dimensions[k].stride);
  const Steps &steps = dimensions[i];
  return steps.stride > sumSpans(dimensions) - steps.span() ||
         steps.span() < divisor;
}

bool runtime::overlapsItself(const Argument &tensor) {
  std::vector<Steps> dimensions;
  for (int64_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] <= 1)
      continue;
    if (tensor.strides[i] == 0)
      return true;
    dimensions.push_back({tensor.sizes[i] - 1, std::abs(tensor.strides[i])});
  }
  for (size_t i = 0; i < dimensions.size();) {
    if (!standsApart(dimensions, i)) {
      ++i;
      continue;
    }
    dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(i));
    i = 0;
  }
  if (dimensions.size() != 2)
    return !dimensions.empty();
  // d is a multiple of the other's stride over the common divisor.
  const Steps &a = dimensions[0], &b = dimensions[1];
  int64_t divisor = std::gcd(a.stride, b.stride);
  return b.stride / divisor <= a.last && a.stride / divisor <= b.last;
}

//===----------------------------------------------------------------------===//
// Two tensors
//===----------------------------------------------------------------------===//

static TouchedBytes findPlaces(const Argument &tensor, int64_t bytes) {
  TouchedBytes places;
  places.begin = reinterpret_cast<uintptr_t>(tensor.data);
  places.bytes = bytes;
  for (int64_t i = 0; i < tensor.rank; ++i) {
    int64_t last = tensor.sizes[i] - 1;
    if (last == 0 || tensor.strides[i] == 0) // or it says nothing
      continue;
    int64_t stride = tensor.strides[i] * bytes;
    if (stride < 0)
      places.begin -= static_cast<uint64_t>(last * -stride);
    places.dimensions.push_back({last, std::abs(stride)});
  }
  return places;
}

// The bytes from the first of `places` to the end of the last that the
// dimensions with strides below `limit` reach.
static int64_t extentBelow(const TouchedBytes &places, int64_t limit) {
  int64_t extent = places.bytes;
  for (const Steps &steps : places.dimensions)
    if (steps.stride < limit)
      extent += steps.span();
  return extent;
}

// Strides of `limit` and more lead from piece to piece, those below through a
// piece. Pieces repeat with the divisor of the former: whether those of `a` lie
// in the gaps of `b`'s.
static bool interleave(const TouchedBytes &a, const TouchedBytes &b,
                       int64_t limit) {
  int64_t period = 0;
  for (const TouchedBytes *places : {&a, &b})
    for (const Steps &steps : places->dimensions)
      if (steps.stride >= limit)
        period = std::gcd(period, steps.stride);
  // Modulo 2^64 the difference would lose the period.
  bool isBehind = b.begin >= a.begin;
  auto distance =
      static_cast<int64_t>((isBehind ? b.begin - a.begin : a.begin - b.begin) %
                           static_cast<uint64_t>(period));
  if (!isBehind && distance != 0)
    distance = period - distance;
  return extentBelow(a, limit) <= distance &&
         extentBelow(b, limit) <= period - distance;
}

// Whether the addresses from the first to the last of both have none in common:
// most tensors, and a launch asks for each pair.
static bool areBehindEachOther(const Argument &a, int64_t bytesOfA,
                               const Argument &b, int64_t bytesOfB) {
  uint64_t begins[2], sizes[2];
  int k = 0;
  for (auto [tensor, bytes] : {std::pair(&a, bytesOfA), {&b, bytesOfB}}) {
    begins[k] = reinterpret_cast<uintptr_t>(tensor->data);
    sizes[k] = bytes;
    for (int64_t i = 0; i < tensor->rank; ++i) {
      int64_t span = (tensor->sizes[i] - 1) * tensor->strides[i] * bytes;
      begins[k] -= span < 0 ? static_cast<uint64_t>(-span) : 0;
      sizes[k] += static_cast<uint64_t>(std::abs(span));
    }
    ++k;
  }
  return begins[1] - begins[0] >= sizes[0] && begins[0] - begins[1] >= sizes[1];
}

bool runtime::overlap(const Argument &a, int64_t bytesOfA, const Argument &b,
                      int64_t bytesOfB) {
  auto isEmpty = [](const Argument &tensor) {
    return std::find(tensor.sizes, tensor.sizes + tensor.rank, 0) !=
           tensor.sizes + tensor.rank;
  };
  if (isEmpty(a) || isEmpty(b) || areBehindEachOther(a, bytesOfA, b, bytesOfB))
    return false;
  TouchedBytes first = findPlaces(a, bytesOfA),
               second = findPlaces(b, bytesOfB);
  for (const TouchedBytes *places : {&first, &second})
    for (const Steps &steps : places->dimensions)
      if (interleave(first, second, steps.stride))
        return false;
  return true;
}
