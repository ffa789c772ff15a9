//===- Npy.cpp - tensors in NumPy's file format -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Npy.h"

#include "attn/Pipelines/OutputFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <optional>

using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

static const llvm::StringRef magic("\x93NUMPY", 6);

namespace {
struct Header {
  ElementKind element;
  std::vector<int64_t> shape;
};
} // namespace

static std::optional<ElementKind> elementOf(llvm::StringRef type) {
  type =
      type.drop_while([](char c) { return c == '<' || c == '|' || c == '='; });
  static const std::pair<const char *, ElementKind> table[] = {
      {"f2", ElementKind::F16}, {"f4", ElementKind::F32},
      {"f8", ElementKind::F64}, {"V2", ElementKind::BF16},
      {"b1", ElementKind::I1},  {"i1", ElementKind::I8},
      {"i2", ElementKind::I16}, {"i4", ElementKind::I32},
      {"i8", ElementKind::I64}};
  for (auto [name, element] : table)
    if (type == name)
      return element;
  return std::nullopt;
}

/// The text after `'key':` in the header's dictionary.
static llvm::StringRef entry(llvm::StringRef header, llvm::StringRef key) {
  size_t at = header.find(("'" + key + "'").str());
  if (at == llvm::StringRef::npos)
    return "";
  return header.substr(at + key.size() + 2).ltrim(" :");
}

static Result<Header> parseHeader(llvm::StringRef text) {
  Header header;
  llvm::StringRef type = entry(text, "descr");
  type = type.substr(1, type.find('\'', 1) - 1);
  auto element = elementOf(type);
  if (!element)
    return Status::error("element type '" + type.str() +
                         "' is not one of f2, f4, f8, V2, b1, i1, i2, i4, i8, "
                         "little endian");
  header.element = *element;
  if (!entry(text, "fortran_order").starts_with("False"))
    return Status::error("wanted C order");
  llvm::StringRef shape = entry(text, "shape");
  if (!shape.consume_front("("))
    return Status::error("no shape in the header");
  shape = shape.take_until([](char c) { return c == ')'; });
  while (!(shape = shape.ltrim(" ,")).empty()) {
    int64_t size;
    if (shape.consumeInteger(10, size) || size < 0)
      return Status::error("cannot read the shape");
    header.shape.push_back(size);
  }
  return header;
}

Result<HostTensor> attn::readNpy(const std::string &path, ElementKind element) {
  auto fail = [&](const std::string &message) {
    return Status::error("'" + path + "': " + message);
  };
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return fail(file.getError().message());
  llvm::StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < 12 || !bytes.starts_with(magic))
    return fail("not a .npy file");
  auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  size_t lengthBytes = byte(6) == 1 ? 2 : 4, length = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    length = length << 8 | byte(8 + i);
  size_t begin = 8 + lengthBytes;
  if (length > bytes.size() - begin)
    return fail("the header is cut off");
  auto header = parseHeader(bytes.substr(begin, length));
  if (!header.ok())
    return fail(header.message());
  bytes = bytes.substr(begin + length);

  size_t size = elementBytes(header->element), count = 1;
  for (int64_t extent : header->shape)
    if (__builtin_mul_overflow(count, static_cast<size_t>(extent), &count))
      return fail("the shape is too large");
  if (bytes.size() / size < count)
    return fail("the data is cut off");
  HostTensor tensor(element, header->shape);
  size_t next = 0;
  tensor.assign([&] {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + next * size, size);
    ++next;
    return decodeElement(header->element, bits);
  });
  return tensor;
}

static const char *typeName(ElementKind element) {
  switch (element) {
  case ElementKind::F16:
    return "<f2";
  case ElementKind::BF16:
  case ElementKind::F32:
    return "<f4";
  case ElementKind::F64:
    return "<f8";
  case ElementKind::I1:
    return "|b1";
  case ElementKind::I8:
    return "|i1";
  case ElementKind::I16:
    return "<i2";
  case ElementKind::I32:
    return "<i4";
  case ElementKind::I64:
    return "<i8";
  }
  return "";
}

static void print(const HostTensor &tensor, llvm::raw_ostream &os) {
  std::string header = std::string("{'descr': '") + typeName(tensor.element()) +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.sizes())
    header += std::to_string(size) + ", ";
  header += "), }";
  // Magic, version, length and header fill a multiple of 64 bytes.
  header.resize((10 + header.size() + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  os << magic << '\1' << '\0' << static_cast<char>(header.size() & 255)
     << static_cast<char>(header.size() >> 8) << header;
  bool widen = tensor.element() == ElementKind::BF16;
  int64_t size = widen ? 4 : elementBytes(tensor.element());
  for (uint64_t bits : tensor.bits()) {
    if (widen)
      bits <<= 16;
    os.write(reinterpret_cast<const char *>(&bits), size);
  }
}

Status attn::writeNpy(const std::string &path, const HostTensor &tensor) {
  llvm::Error error = writeOutputFile(
      path, [&](llvm::raw_ostream &stream) { print(tensor, stream); });
  return error ? Status::error(llvm::toString(std::move(error))) : Status();
}
