//===- x - Objects.cpp - tensors of Python for C ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"

#include <algorithm>

using namespace attn;

//===----------------------------------------------------------------------===//
// DLPack 1.x, as its ABI has it
//===----------------------------------------------------------------------===//

namespace {
struct ElementType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct TensorView {
  void *data;
  int32_t deviceType, device;
  int32_t rank;
  ElementType element;
  int64_t *sizes, *strides;
  uint64_t byteOffset;
};

struct ExchangeAPI {
  uint32_t major, minor;
  const void *older;
  // What makes and takes tensors that somebody owns.
  void (*allocate)(), (*fromObject)(), (*toObject)();
  /// 0, or -1 with Python's error set. The view lives as long as the object
  /// keeps its shape. May be null.
  int (*view)(void *object, TensorView *view);
};
} // namespace

static ElementType elementType(ElementKind kind) {
  constexpr uint8_t kInteger = 0, kFloat = 2, kBFloat = 4, kBool = 6;
  auto bits = static_cast<uint8_t>(8 * elementBytes(kind));
  switch (kind) {
  case ElementKind::F16:
  case ElementKind::F32:
  case ElementKind::F64:
    return {kFloat, bits, 1};
  case ElementKind::BF16:
    return {kBFloat, bits, 1};
  case ElementKind::I1:
    return {kBool, bits, 1};
  case ElementKind::I8:
  case ElementKind::I16:
  case ElementKind::I32:
  case ElementKind::I64:
    return {kInteger, bits, 1};
  }
  return {};
}

static bool isWanted(const TensorView &view, const ArgumentInfo &info,
                     int deviceType, int device) {
  ElementType element = elementType(info.element);
  return view.element.code == element.code &&
         view.element.bits == element.bits &&
         view.element.lanes == element.lanes && view.deviceType == deviceType &&
         (device < 0 || view.device == device) &&
         view.rank == static_cast<int64_t>(info.shape.size()) &&
         (view.rank == 0 || (view.sizes && view.strides));
}

static int fail(const std::string &what) {
  capi::setError("attnViewObjects: " + what);
  return 1;
}

int attnViewObjects(const AttnKernel *kernel, const void *exchange,
                    void *const *objects, size_t count, int device_type,
                    int device, AttnArgument *arguments, int64_t *shapes,
                    size_t room) {
  if (!kernel || !exchange || !objects || !arguments || !shapes)
    return fail("kernel, exchange, objects, arguments or shapes is NULL");
  const auto &api = *static_cast<const ExchangeAPI *>(exchange);
  if (api.major != 1 || !api.view)
    return fail("wanted a DLPackExchangeAPI of version 1 that shows tensors");
  const std::vector<ArgumentInfo> &infos = kernel->kernel->artifact().arguments;
  if (count != infos.size())
    return fail("wanted " + std::to_string(infos.size()) + " objects, got " +
                std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    const ArgumentInfo &info = infos[i];
    if (!info.isTensor)
      continue;
    TensorView view = {};
    if (!objects[i] || api.view(objects[i], &view) != 0 ||
        !isWanted(view, info, device_type, device))
      return fail("object " + std::to_string(i) + " is no such tensor");
    auto rank = static_cast<size_t>(view.rank);
    if (room < 2 * rank)
      return fail("there is no room for the sizes and strides of object " +
                  std::to_string(i));
    std::copy_n(view.sizes, rank, shapes);
    std::copy_n(view.strides, rank, shapes + rank);
    arguments[i].kind = ATTN_TENSOR;
    arguments[i].value.tensor = {static_cast<char *>(view.data) +
                                     view.byteOffset,
                                 view.rank, shapes, shapes + rank};
    shapes += 2 * rank;
    room -= 2 * rank;
  }
  return 0;
}
