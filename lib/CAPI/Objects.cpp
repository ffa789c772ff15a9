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
using namespace attn::runtime;

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

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// The arguments of a launch from objects.
class ObjectReader {
public:
  ObjectReader(const AttnPython &python, const std::vector<ArgumentInfo> &infos,
               bool recordsGradients)
      : python(python), api(*static_cast<const ExchangeAPI *>(python.exchange)),
        infos(infos), recordsGradients(recordsGradients) {}

  /// Whether all objects are plain.
  bool read(void *tuple);
  /// Of as many as there are infos.
  Arguments arguments;

private:
  bool isFalse(void *object) const;
  bool readTensor(void *object, void *type, const ArgumentInfo &info);
  bool readNumber(void *object, void *type, const ArgumentInfo &info);

  const AttnPython &python;
  const ExchangeAPI &api;
  const std::vector<ArgumentInfo> &infos;
  bool recordsGradients;
  /// Sizes and strides; tensors may get others while the lock is not held.
  std::vector<int64_t> shapes;
};
} // namespace

bool ObjectReader::read(void *tuple) {
  if (python.tuple_size(tuple) != static_cast<ptrdiff_t>(infos.size()))
    return false;
  size_t room = 0;
  for (const ArgumentInfo &info : infos)
    room += 2 * info.shape.size();
  shapes.reserve(room); // `arguments` points into it
  arguments.reserve(infos.size());
  ptrdiff_t number = 0;
  for (const ArgumentInfo &info : infos) {
    void *object = python.tuple_item(tuple, number++);
    void *type = object ? python.type(object) : nullptr;
    if (!type)
      return false;
    python.release(type); // the object keeps it
    if (!(info.isTensor ? readTensor(object, type, info)
                        : readNumber(object, type, info)))
      return false;
  }
  return true;
}

/// Takes the object; null: its maker failed.
bool ObjectReader::isFalse(void *object) const {
  if (object)
    python.release(object); // False, if it is that, stays
  return object == python.no;
}

bool ObjectReader::readTensor(void *object, void *type,
                              const ArgumentInfo &info) {
  if (type != python.tensor_types[0] && type != python.tensor_types[1])
    return false;
  if (recordsGradients &&
      !isFalse(python.attribute(object, python.requires_grad)))
    return false;
  if (!isFalse(python.call(object, python.is_neg, nullptr)))
    return false;
  TensorView view = {};
  if (api.view(object, &view) != 0 ||
      !isWanted(view, info, python.device_type, python.device))
    return false;
  auto rank = static_cast<size_t>(view.rank);
  const int64_t *shape = shapes.data() + shapes.size();
  shapes.insert(shapes.end(), view.sizes, view.sizes + rank);
  shapes.insert(shapes.end(), view.strides, view.strides + rank);
  arguments.push_back(
      Argument::tensor(static_cast<char *>(view.data) + view.byteOffset,
                       view.rank, shape, shape + rank));
  return true;
}

// As Python reads numbers.
bool ObjectReader::readNumber(void *object, void *type,
                              const ArgumentInfo &info) {
  if (type == python.real_type) {
    arguments.push_back(Argument::scalar(python.real(object)));
    return true;
  }
  if (type != python.integer_type && type != python.bool_type)
    return false;
  int overflow = 0;
  auto value = static_cast<int64_t>(python.integer(object, &overflow));
  bool isKey = info.name == "seed" || info.name == "offset";
  int64_t bits = 8 * elementBytes(info.element);
  bool isNarrow = info.element == ElementKind::I8 ||
                  info.element == ElementKind::I16 ||
                  info.element == ElementKind::I32;
  if (overflow != 0 ||
      (isNarrow && !isKey && value >= int64_t(1) << (bits - 1)))
    return false;
  arguments.push_back(Argument::scalar(value));
  return true;
}

int attnLaunchObjects(const AttnKernel *kernel, const AttnPython *python,
                      void *tuple, int records_gradients, void *stream) {
  auto refuse = [](const char *what) {
    capi::setError(std::string("attnLaunchObjects: ") + what);
    return ATTN_FAILED;
  };
  if (!kernel || !python || !tuple)
    return refuse("kernel, python or tuple is NULL");
  if (python->struct_size < sizeof(AttnPython))
    return refuse("python has another struct_size");
  const auto *api = static_cast<const ExchangeAPI *>(python->exchange);
  if (!api || api->major != 1 || !api->view)
    return ATTN_NOT_PLAIN;
  ObjectReader reader(*python, kernel->kernel->artifact().arguments,
                      records_gradients != 0);
  if (!reader.read(tuple))
    return ATTN_NOT_PLAIN;
  void *thread = python->unlock();
  Status status = kernel->kernel->launch(reader.arguments, stream, nullptr);
  python->lock(thread);
  if (!status.ok()) {
    capi::setError(status.message());
    return ATTN_FAILED;
  }
  return kernel->kernel->relayouts() > 0 ? ATTN_COPIED : ATTN_LAUNCHED;
}
