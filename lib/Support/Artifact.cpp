//===- Artifact.cpp - what the compiler hands to the runtime -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file: the magic line, the size of the manifest in decimal on a line of
// its own, the manifest, the PTX and the cubin of each function (their sizes
// are in the manifest), and 16 hex digits of FNV-1a over all that stands
// before.
//
//===----------------------------------------------------------------------===//

#include "attn/Support/Artifact.h"

#include "Manifest.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

using namespace attn;

static constexpr std::string_view kMagic = "attn-artifact 7\n",
                                  kAnyMagic = "attn-artifact ";
static constexpr size_t kChecksumDigits = 16, kMaxMagic = 32;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {
struct ElementRow {
  ElementKind kind;
  int64_t bytes;
  std::string_view name;
};
} // namespace

static constexpr ElementRow kElements[] = {
    {ElementKind::F16, 2, "f16"}, {ElementKind::BF16, 2, "bf16"},
    {ElementKind::F32, 4, "f32"}, {ElementKind::F64, 8, "f64"},
    {ElementKind::I1, 1, "i1"},   {ElementKind::I8, 1, "i8"},
    {ElementKind::I16, 2, "i16"}, {ElementKind::I32, 4, "i32"},
    {ElementKind::I64, 8, "i64"}};

static const ElementRow &elementRow(ElementKind kind) {
  return kElements[static_cast<size_t>(kind)];
}

int64_t attn::elementBytes(ElementKind kind) { return elementRow(kind).bytes; }

std::string_view attn::elementName(ElementKind kind) {
  return elementRow(kind).name;
}

std::optional<ElementKind> attn::findElement(std::string_view name) {
  for (const ElementRow &row : kElements)
    if (row.name == name)
      return row.kind;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

// In the order of the enumeration.
static constexpr std::string_view kRoles[] = {
    "query",     "key",      "value",   "sink",     "seed",    "offset",
    "capture",   "output",   "lse",     "d_output", "d_lse",   "t_query",
    "t_key",     "t_value",  "d_query", "d_key",    "d_value", "d_sink",
    "d_capture", "t_output", "t_lse"};

std::string_view attn::roleName(ArgumentRole role) {
  return kRoles[static_cast<size_t>(role)];
}

std::optional<ArgumentRole> attn::findRole(std::string_view name) {
  for (size_t i = 0; i < std::size(kRoles); ++i)
    if (kRoles[i] == name)
      return static_cast<ArgumentRole>(i);
  return std::nullopt;
}

bool ArgumentInfo::is(ArgumentRole role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

//===----------------------------------------------------------------------===//
// Equality
//===----------------------------------------------------------------------===//

bool ViewPart::operator==(const ViewPart &other) const {
  return dim == other.dim && size == other.size && step == other.step;
}

bool ArgumentInfo::operator==(const ArgumentInfo &other) const {
  return name == other.name && roles == other.roles &&
         element == other.element && isTensor == other.isTensor &&
         isOutput == other.isOutput && shape == other.shape &&
         alignment == other.alignment && view == other.view;
}

bool TensorMapInfo::operator==(const TensorMapInfo &other) const {
  return argument == other.argument && boxRows == other.boxRows &&
         boxColumns == other.boxColumns && swizzleBytes == other.swizzleBytes &&
         boxPanels == other.boxPanels;
}

bool LaunchExpr::operator==(const LaunchExpr &other) const {
  return kind == other.kind && value == other.value &&
         argument == other.argument && operands == other.operands;
}

bool LaunchCheck::operator==(const LaunchCheck &other) const {
  return lhs == other.lhs && rhs == other.rhs && message == other.message;
}

bool WorkspaceInfo::operator==(const WorkspaceInfo &other) const {
  return element == other.element && sizes == other.sizes &&
         isZeroed == other.isZeroed && isRestored == other.isRestored;
}

bool KernelInfo::operator==(const KernelInfo &other) const {
  return entry == other.entry && plan == other.plan &&
         results == other.results && tensorMaps == other.tensorMaps &&
         grid == other.grid && threads == other.threads &&
         sharedBytes == other.sharedBytes && startsEarly == other.startsEarly &&
         registers == other.registers &&
         spillStoreBytes == other.spillStoreBytes &&
         spillLoadBytes == other.spillLoadBytes;
}

bool VariantInfo::operator==(const VariantInfo &other) const {
  return plan == other.plan && workspaces == other.workspaces &&
         kernels == other.kernels;
}

bool RelayoutInfo::operator==(const RelayoutInfo &other) const {
  return entry == other.entry && elementBytes == other.elementBytes &&
         threads == other.threads && elements == other.elements;
}

bool Artifact::operator==(const Artifact &other) const {
  return serialize() == other.serialize();
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

VariantInfo::CodeFigures VariantInfo::figures() const {
  CodeFigures all;
  for (const KernelInfo &kernel : kernels) {
    if (kernel.registers < 0)
      continue;
    all.registers = std::max(all.registers, kernel.registers);
    all.spillStoreBytes =
        std::max<int64_t>(all.spillStoreBytes, 0) + kernel.spillStoreBytes;
    all.spillLoadBytes =
        std::max<int64_t>(all.spillLoadBytes, 0) + kernel.spillLoadBytes;
  }
  return all;
}

std::vector<const Artifact *> Artifact::functions() const {
  std::vector<const Artifact *> all = {this};
  for (const Artifact &companion : companions)
    all.push_back(&companion);
  return all;
}

std::optional<size_t> Artifact::findArgument(ArgumentRole role) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].is(role))
      return i;
  return std::nullopt;
}

std::string Artifact::fixVariant(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(variants.size()))
    return "artifact '" + name + "' has no variant " + std::to_string(number) +
           ", its variants are 0 to " + std::to_string(variants.size() - 1);
  rule = VariantRule(number);
  return "";
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static std::string checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3u;
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
  return digits;
}

std::string Artifact::serialize() const {
  std::string json = manifest();
  std::string bytes(kMagic);
  bytes += std::to_string(json.size()) + "\n" + json;
  for (const Artifact *function : functions()) {
    bytes += function->ptx;
    bytes.append(function->cubin.begin(), function->cubin.end());
  }
  return bytes + checksum(bytes);
}

// The decimal number on the line at the start of `bytes`, which is consumed.
static std::optional<uint64_t> takeSizeLine(std::string_view &bytes) {
  constexpr size_t kMaxDigits = 18;
  size_t end = bytes.substr(0, kMaxDigits + 1).find('\n');
  if (end == std::string_view::npos || end == 0)
    return std::nullopt;
  uint64_t value = 0;
  for (char digit : bytes.substr(0, end)) {
    if (digit < '0' || digit > '9')
      return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(digit - '0');
  }
  bytes.remove_prefix(end + 1);
  return value;
}

// The images of a function from the start of `bytes`, which are consumed. Fails
// where there are not as many.
static bool takeImages(std::string_view &bytes, const ImageBytes &sizes,
                       Artifact &function) {
  if (sizes.ptx > bytes.size() || sizes.cubin > bytes.size() - sizes.ptx)
    return false;
  function.ptx = std::string(bytes.substr(0, sizes.ptx));
  bytes.remove_prefix(sizes.ptx);
  std::string_view cubin = bytes.substr(0, sizes.cubin);
  function.cubin.assign(cubin.begin(), cubin.end());
  bytes.remove_prefix(sizes.cubin);
  return true;
}

// Those of all functions, which are all that is left.
static bool takeAllImages(std::string_view bytes,
                          const std::vector<ImageBytes> &sizes,
                          Artifact &artifact, std::string &error) {
  std::string_view rest = bytes;
  std::string wanted;
  bool isWhole = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].ptx == 0 && sizes[i].cubin == 0) {
      error = "artifact holds no code: neither PTX nor a cubin";
      return false;
    }
    wanted += (i ? " + " : "") + std::to_string(sizes[i].ptx) + " + " +
              std::to_string(sizes[i].cubin);
    Artifact &function = i == 0 ? artifact : artifact.companions[i - 1];
    isWhole = isWhole && takeImages(rest, sizes[i], function);
  }
  if (isWhole && rest.empty())
    return true;
  error = "artifact holds " + std::to_string(bytes.size()) +
          " bytes of images, its manifest says " + wanted;
  return false;
}

std::optional<Artifact> Artifact::parse(std::string_view bytes,
                                        std::string &error) {
  error.clear();
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    std::string wanted(kMagic.substr(0, kMagic.size() - 1));
    size_t end = bytes.substr(0, kMaxMagic).find('\n');
    bool isOther = bytes.substr(0, kAnyMagic.size()) == kAnyMagic &&
                   end != std::string_view::npos;
    error = isOther ? "artifact of another form (got '" +
                          std::string(bytes.substr(0, end)) + "', wanted '" +
                          wanted + "'): compile it again"
                    : "not an attn artifact (wanted a file that starts with '" +
                          wanted + "')";
    return std::nullopt;
  }
  if (bytes.size() < kMagic.size() + kChecksumDigits) {
    error = "artifact is truncated";
    return std::nullopt;
  }
  std::string_view body = bytes.substr(0, bytes.size() - kChecksumDigits);
  if (bytes.substr(body.size()) != checksum(body)) {
    error = "artifact is truncated or corrupted (checksum differs)";
    return std::nullopt;
  }
  std::string_view rest = body.substr(kMagic.size());
  std::optional<uint64_t> manifestBytes = takeSizeLine(rest);
  if (!manifestBytes || *manifestBytes > rest.size()) {
    error = "artifact has no valid manifest size";
    return std::nullopt;
  }
  Artifact artifact;
  std::vector<ImageBytes> images;
  if (!readManifest(rest.substr(0, *manifestBytes), artifact, images, error))
    return std::nullopt;
  rest.remove_prefix(*manifestBytes);
  if (!takeAllImages(rest, images, artifact, error))
    return std::nullopt;
  return artifact;
}
