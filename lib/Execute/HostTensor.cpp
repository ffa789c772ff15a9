//===- HostTensor.cpp - a strided tensor in host memory -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/HostTensor.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace attn;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static bool isFloat(ElementKind element) {
  return element == ElementKind::F16 || element == ElementKind::BF16 ||
         element == ElementKind::F32 || element == ElementKind::F64;
}

uint64_t attn::encodeElement(ElementKind element, double value) {
  auto argument = isFloat(element)
                      ? runtime::Argument::scalar(value)
                      : runtime::Argument::scalar(static_cast<int64_t>(value));
  auto bits = runtime::scalarBits(argument, element);
  return bits.ok() ? *bits : 0;
}

static double decodeHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent == 0
                         ? std::ldexp(fraction, -24)
                         : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static double decodeSingle(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double attn::decodeElement(ElementKind element, uint64_t bits) {
  double value;
  switch (element) {
  case ElementKind::F16:
    return decodeHalf(static_cast<uint16_t>(bits));
  case ElementKind::BF16:
    return decodeSingle(static_cast<uint32_t>(bits) << 16);
  case ElementKind::F32:
    return decodeSingle(static_cast<uint32_t>(bits));
  case ElementKind::F64:
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  case ElementKind::I1:
    return static_cast<double>(bits & 1);
  case ElementKind::I8:
    return static_cast<int8_t>(bits);
  case ElementKind::I16:
    return static_cast<int16_t>(bits);
  case ElementKind::I32:
    return static_cast<int32_t>(bits);
  case ElementKind::I64:
    return static_cast<double>(static_cast<int64_t>(bits));
  }
  return NAN;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

HostTensor::HostTensor(ElementKind element, std::vector<int64_t> sizes,
                       std::vector<int64_t> order, int64_t padding)
    : kind(element), extents(std::move(sizes)), steps(extents.size(), 1),
      first(padding) {
  if (order.empty()) {
    order.resize(extents.size());
    std::iota(order.begin(), order.end(), 0);
  }
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    steps[order[i]] = step;
    step *= extents[order[i]];
    if (i + 1 == order.size())
      step += padding;
  }
  bytes.resize((step + 2 * padding + 1) * elementBytes(kind));
  poison();
}

int64_t HostTensor::numElements() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

runtime::Argument HostTensor::argument() {
  return runtime::Argument::tensor(data(), extents.size(), extents.data(),
                                   steps.data());
}

void HostTensor::forEach(const std::function<void(int64_t)> &visit) const {
  if (numElements() == 0)
    return;
  std::vector<int64_t> index(extents.size(), 0);
  int64_t offset = first;
  while (true) {
    visit(offset);
    size_t d = extents.size();
    while (d-- > 0) {
      offset += steps[d];
      if (++index[d] < extents[d])
        break;
      offset -= steps[d] * extents[d];
      index[d] = 0;
      if (d == 0)
        return;
    }
    if (extents.empty())
      return;
  }
}

uint64_t HostTensor::load(int64_t offset) const {
  uint64_t value = 0;
  int64_t size = elementBytes(kind);
  std::memcpy(&value, bytes.data() + offset * size, size);
  return value;
}

void HostTensor::store(int64_t offset, uint64_t value) {
  int64_t size = elementBytes(kind);
  std::memcpy(bytes.data() + offset * size, &value, size);
}

void HostTensor::poison() {
  // All ones is a NaN in every float type.
  std::memset(bytes.data(), 0xff, bytes.size());
}

bool HostTensor::isPaddingIntact() const {
  std::vector<bool> used(bytes.size() / elementBytes(kind));
  forEach([&](int64_t offset) { used[offset] = true; });
  uint64_t poisoned = ~uint64_t(0) >> (64 - 8 * elementBytes(kind));
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i] && load(i) != poisoned)
      return false;
  return true;
}

std::vector<double> HostTensor::values() const {
  std::vector<double> result;
  result.reserve(numElements());
  forEach([&](int64_t offset) {
    result.push_back(decodeElement(kind, load(offset)));
  });
  return result;
}

std::vector<uint64_t> HostTensor::bits() const {
  std::vector<uint64_t> result;
  result.reserve(numElements());
  forEach([&](int64_t offset) { result.push_back(load(offset)); });
  return result;
}

void HostTensor::assign(const std::function<double()> &next) {
  forEach([&](int64_t offset) { store(offset, encodeElement(kind, next())); });
}

void HostTensor::assignBits(const std::function<uint64_t()> &next) {
  forEach([&](int64_t offset) { store(offset, next()); });
}

void HostTensor::assign(const std::vector<double> &values) {
  size_t i = 0;
  assign([&] { return values[i++]; });
}
