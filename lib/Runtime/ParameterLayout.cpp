//===- ParameterLayout.cpp - parameters in one buffer --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/ParameterLayout.h"

#include "attn/Runtime/KnownLaunch.h"

#include <algorithm>
#include <cstring>

using namespace attn::runtime;

ParameterLayout ParameterLayout::of(const Driver &driver, CUfunction kernel,
                                    size_t count) {
  ParameterLayout layout;
  if (!driver.funcGetParamInfo)
    return layout;
  layout.places.resize(count);
  for (size_t number = 0; number < count; ++number) {
    Place &place = layout.places[number];
    if (driver.funcGetParamInfo(kernel, number, &place.offset, &place.bytes) !=
        0)
      return ParameterLayout();
  }
  for (const Place &place : layout.places)
    layout.end = std::max(layout.end, place.offset + place.bytes);
  auto isWord = [&](const Place &place) {
    size_t number = static_cast<size_t>(&place - layout.places.data());
    return place.bytes == sizeof(uint64_t) &&
           place.offset == number * sizeof(uint64_t);
  };
  layout.words = static_cast<size_t>(
      std::find_if_not(layout.places.begin(), layout.places.end(), isWord) -
      layout.places.begin());
  return layout;
}

bool ParameterLayout::isOf(size_t numbers, size_t maps) const {
  if (places.size() != numbers + maps)
    return false;
  auto firstMap = places.begin() + static_cast<ptrdiff_t>(numbers);
  return std::all_of(places.begin(), firstMap,
                     [](const Place &place) {
                       return place.bytes <= sizeof(uint64_t);
                     }) &&
         std::all_of(firstMap, places.end(), [](const Place &place) {
           return place.bytes == sizeof(TensorMap);
         });
}

// The low bytes come first, on the GPU and on all hosts that have one.
void ParameterLayout::writeNumbers(const std::vector<uint64_t> &numbers,
                                   unsigned char *buffer) const {
  size_t number = std::min(words, numbers.size());
  std::memcpy(buffer, numbers.data(), number * sizeof(uint64_t));
  for (; number < numbers.size(); ++number)
    std::memcpy(buffer + places[number].offset, &numbers[number],
                places[number].bytes);
}

void ParameterLayout::writeMap(size_t number, const void *map,
                               unsigned char *buffer) const {
  std::memcpy(buffer + places[number].offset, map, places[number].bytes);
}
