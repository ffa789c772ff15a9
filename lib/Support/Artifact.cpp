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
// its own, the manifest, the PTX, the cubin (their sizes are in the manifest),
// and 16 hex digits of FNV-1a over all that stands before.
//
//===----------------------------------------------------------------------===//

#include "attn/Support/Artifact.h"

// The library may be built without exceptions: no call below throws.
#define JSON_NOEXCEPTION
#include <nlohmann/json.hpp>

#include <cinttypes>
#include <cstdio>

using namespace attn;
using Json = nlohmann::ordered_json;

static constexpr std::string_view kMagic = "attn-artifact 1\n";
static constexpr size_t kChecksumDigits = 16;
// Deeper launch expressions are refused, so that reading one cannot overflow
// the stack.
static constexpr int kMaxExprDepth = 64;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
struct ElementRow {
  ElementKind kind;
  int64_t bytes;
  std::string_view name;
};
struct ExprRow {
  LaunchExpr::Kind kind;
  std::string_view name;
};
} // namespace

static constexpr ElementRow kElements[] = {
    {ElementKind::F16, 2, "f16"}, {ElementKind::BF16, 2, "bf16"},
    {ElementKind::F32, 4, "f32"}, {ElementKind::F64, 8, "f64"},
    {ElementKind::I1, 1, "i1"},   {ElementKind::I8, 1, "i8"},
    {ElementKind::I16, 2, "i16"}, {ElementKind::I32, 4, "i32"},
    {ElementKind::I64, 8, "i64"}};

static constexpr ExprRow kBinaryExprs[] = {
    {LaunchExpr::Kind::Add, "add"},
    {LaunchExpr::Kind::Sub, "sub"},
    {LaunchExpr::Kind::Mul, "mul"},
    {LaunchExpr::Kind::FloorDiv, "floordiv"},
    {LaunchExpr::Kind::CeilDiv, "ceildiv"},
    {LaunchExpr::Kind::Mod, "mod"},
    {LaunchExpr::Kind::Min, "min"},
    {LaunchExpr::Kind::Max, "max"}};

static const ElementRow &elementRow(ElementKind kind) {
  return kElements[static_cast<size_t>(kind)];
}

int64_t attn::elementBytes(ElementKind kind) { return elementRow(kind).bytes; }

std::string_view attn::elementName(ElementKind kind) {
  return elementRow(kind).name;
}

//===----------------------------------------------------------------------===//
// Equality
//===----------------------------------------------------------------------===//

bool ArgumentInfo::operator==(const ArgumentInfo &other) const {
  return name == other.name && element == other.element &&
         isTensor == other.isTensor && isOutput == other.isOutput &&
         shape == other.shape && alignment == other.alignment;
}

bool TensorMapInfo::operator==(const TensorMapInfo &other) const {
  return argument == other.argument && boxRows == other.boxRows &&
         boxColumns == other.boxColumns && swizzleBytes == other.swizzleBytes;
}

bool LaunchExpr::operator==(const LaunchExpr &other) const {
  return kind == other.kind && value == other.value &&
         argument == other.argument && operands == other.operands;
}

bool LaunchCheck::operator==(const LaunchCheck &other) const {
  return lhs == other.lhs && rhs == other.rhs && message == other.message;
}

bool Artifact::operator==(const Artifact &other) const {
  return serialize() == other.serialize();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

// Constant 3: 3. Dimension 1 of argument 0: ["dim", 0, 1]. A sum: ["add", a,
// b].
static Json toJson(const LaunchExpr &expr) {
  switch (expr.kind) {
  case LaunchExpr::Kind::Constant:
    return expr.value;
  case LaunchExpr::Kind::Dim:
    return Json::array({"dim", expr.argument, expr.value});
  case LaunchExpr::Kind::Scalar:
    return Json::array({"scalar", expr.argument});
  default:
    break;
  }
  Json json = Json::array();
  for (const ExprRow &row : kBinaryExprs)
    if (row.kind == expr.kind)
      json.push_back(row.name);
  for (const LaunchExpr &operand : expr.operands)
    json.push_back(toJson(operand));
  return json;
}

static Json toJson(const ArgumentInfo &argument) {
  Json json;
  json["name"] = argument.name;
  json["element"] = elementName(argument.element);
  json["tensor"] = argument.isTensor;
  json["output"] = argument.isOutput;
  json["shape"] = argument.shape;
  json["alignment"] = argument.alignment;
  return json;
}

std::string Artifact::manifest() const {
  Json json;
  json["name"] = name;
  json["target"] = target;
  json["compiler"] = compilerVersion;
  json["plan"] = plan;
  json["entry"] = entry;
  json["threads"] = threads;
  json["shared_bytes"] = sharedBytes;
  json["registers"] = registers;
  json["spill_store_bytes"] = spillStoreBytes;
  json["spill_load_bytes"] = spillLoadBytes;
  json["ptx_bytes"] = ptx.size();
  json["cubin_bytes"] = cubin.size();
  json["arguments"] = Json::array();
  for (const ArgumentInfo &argument : arguments)
    json["arguments"].push_back(toJson(argument));
  json["grid"] = Json::array();
  for (const LaunchExpr &expr : grid)
    json["grid"].push_back(toJson(expr));
  if (!tensorMaps.empty())
    json["tensor_maps"] = Json::array();
  for (const TensorMapInfo &map : tensorMaps)
    json["tensor_maps"].push_back({{"argument", map.argument},
                                   {"rows", map.boxRows},
                                   {"columns", map.boxColumns},
                                   {"swizzle", map.swizzleBytes}});
  json["checks"] = Json::array();
  for (const LaunchCheck &check : checks)
    json["checks"].push_back({{"lhs", toJson(check.lhs)},
                              {"rhs", toJson(check.rhs)},
                              {"message", check.message}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
  bytes += std::to_string(json.size()) + "\n" + json + ptx;
  bytes.append(cubin.begin(), cubin.end());
  return bytes + checksum(bytes);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Reads the manifest; the first thing that is wrong stays in `error`.
class ManifestReader {
public:
  explicit ManifestReader(std::string &error) : error(error) {}

  bool read(std::string_view text, Artifact &artifact, uint64_t &ptxBytes,
            uint64_t &cubinBytes);

private:
  bool fail(std::string message) {
    if (error.empty())
      error = "artifact manifest: " + std::move(message);
    return false;
  }
  /// The member `key` of `json`, which must be there.
  const Json *member(const Json &json, const char *key);
  bool get(const Json &json, const char *key, std::string &value);
  bool get(const Json &json, const char *key, int64_t &value);
  bool get(const Json &json, const char *key, bool &value);
  bool getSize(const Json &json, const char *key, uint64_t &value);
  const Json *getArray(const Json &json, const char *key);
  bool readInteger(const Json &json, const char *what, int64_t &value);
  bool readArgument(const Json &json, ArgumentInfo &argument);
  bool readExpr(const Json &json, LaunchExpr &expr, int depth = 0);
  bool readTensorMap(const Json &json, const Artifact &artifact,
                     TensorMapInfo &map);
  bool readOperandRef(const Json &json, LaunchExpr &expr);
  bool checkExpr(const LaunchExpr &expr, const Artifact &artifact);

  std::string &error;
};
} // namespace

const Json *ManifestReader::member(const Json &json, const char *key) {
  auto it = json.is_object() ? json.find(key) : json.end();
  if (it == json.end()) {
    fail(std::string("no '") + key + "'");
    return nullptr;
  }
  return &*it;
}

bool ManifestReader::get(const Json &json, const char *key,
                         std::string &value) {
  const Json *found = member(json, key);
  if (!found)
    return false;
  if (!found->is_string())
    return fail(std::string("'") + key + "' is not a string");
  value = *found->get_ptr<const std::string *>();
  return true;
}

bool ManifestReader::readInteger(const Json &json, const char *what,
                                 int64_t &value) {
  if (!json.is_number_integer())
    return fail(std::string("'") + what + "' is not an integer");
  if (json.is_number_unsigned() &&
      *json.get_ptr<const uint64_t *>() > static_cast<uint64_t>(INT64_MAX))
    return fail(std::string("'") + what + "' does not fit 64 bits");
  value = json.get<int64_t>();
  return true;
}

bool ManifestReader::get(const Json &json, const char *key, int64_t &value) {
  const Json *found = member(json, key);
  return found && readInteger(*found, key, value);
}

bool ManifestReader::get(const Json &json, const char *key, bool &value) {
  const Json *found = member(json, key);
  if (!found)
    return false;
  if (!found->is_boolean())
    return fail(std::string("'") + key + "' is not a boolean");
  value = found->get<bool>();
  return true;
}

bool ManifestReader::getSize(const Json &json, const char *key,
                             uint64_t &value) {
  int64_t number;
  if (!get(json, key, number))
    return false;
  if (number < 0)
    return fail(std::string("'") + key + "' is negative");
  value = static_cast<uint64_t>(number);
  return true;
}

const Json *ManifestReader::getArray(const Json &json, const char *key) {
  const Json *found = member(json, key);
  if (found && !found->is_array()) {
    fail(std::string("'") + key + "' is not an array");
    return nullptr;
  }
  return found;
}

bool ManifestReader::readArgument(const Json &json, ArgumentInfo &argument) {
  std::string element;
  if (!get(json, "name", argument.name) || !get(json, "element", element) ||
      !get(json, "tensor", argument.isTensor) ||
      !get(json, "output", argument.isOutput) ||
      !get(json, "alignment", argument.alignment))
    return false;
  bool known = false;
  for (const ElementRow &row : kElements) {
    if (row.name != element)
      continue;
    argument.element = row.kind;
    known = true;
  }
  if (!known)
    return fail("argument '" + argument.name + "' has unknown element type '" +
                element + "'");
  if (argument.alignment < 0)
    return fail("argument '" + argument.name + "' has a negative alignment");
  const Json *shape = getArray(json, "shape");
  if (!shape)
    return false;
  for (const Json &size : *shape) {
    int64_t value;
    if (!readInteger(size, "shape", value))
      return false;
    if (value < -1)
      return fail("argument '" + argument.name + "' has a negative size");
    argument.shape.push_back(value);
  }
  if (!argument.isTensor && (!argument.shape.empty() || argument.isOutput))
    return fail("scalar argument '" + argument.name +
                "' has a shape or is an output");
  return true;
}

bool ManifestReader::readTensorMap(const Json &json, const Artifact &artifact,
                                   TensorMapInfo &map) {
  if (!get(json, "argument", map.argument) || !get(json, "rows", map.boxRows) ||
      !get(json, "columns", map.boxColumns) ||
      !get(json, "swizzle", map.swizzleBytes))
    return false;
  constexpr int64_t maxBox = 256, maxRank = 4;
  if (map.argument < 0 ||
      map.argument >= static_cast<int64_t>(artifact.arguments.size()))
    return fail("tensor map of argument " + std::to_string(map.argument) +
                " of " + std::to_string(artifact.arguments.size()));
  const ArgumentInfo &argument = artifact.arguments[map.argument];
  auto rank = static_cast<int64_t>(argument.shape.size());
  if (!argument.isTensor || rank < 2 || rank > maxRank ||
      elementBytes(argument.element) != 2)
    return fail("tensor map of '" + argument.name +
                "', which is no tensor of rank 2 to 4 of 16-bit elements");
  int64_t boxBytes = map.boxColumns * elementBytes(argument.element);
  if (map.boxRows < 1 || map.boxRows > maxBox || boxBytes != map.swizzleBytes ||
      (boxBytes != 32 && boxBytes != 64 && boxBytes != 128))
    return fail("tensor map of '" + argument.name + "' has a wrong box");
  return true;
}

// ["dim", argument, dimension] or ["scalar", argument].
bool ManifestReader::readOperandRef(const Json &json, LaunchExpr &expr) {
  bool isDim = expr.kind == LaunchExpr::Kind::Dim;
  if (json.size() != (isDim ? 3u : 2u))
    return fail("launch expression with a wrong number of operands");
  return readInteger(json[1], "argument", expr.argument) &&
         (!isDim || readInteger(json[2], "dimension", expr.value));
}

bool ManifestReader::readExpr(const Json &json, LaunchExpr &expr, int depth) {
  if (depth > kMaxExprDepth)
    return fail("launch expression is nested too deeply");
  if (json.is_number())
    return readInteger(json, "constant", expr.value);
  if (!json.is_array() || json.empty() || !json[0].is_string())
    return fail("launch expression is neither an integer nor an operation");
  const std::string &name = *json[0].get_ptr<const std::string *>();
  if (name == "dim" || name == "scalar") {
    expr.kind =
        name == "dim" ? LaunchExpr::Kind::Dim : LaunchExpr::Kind::Scalar;
    return readOperandRef(json, expr);
  }
  for (const ExprRow &row : kBinaryExprs) {
    if (row.name != name)
      continue;
    if (json.size() != 3)
      return fail("launch expression with a wrong number of operands");
    expr.kind = row.kind;
    expr.operands.resize(2);
    return readExpr(json[1], expr.operands[0], depth + 1) &&
           readExpr(json[2], expr.operands[1], depth + 1);
  }
  return fail("unknown launch expression '" + name + "'");
}

// Arguments and dimensions named by an expression exist.
bool ManifestReader::checkExpr(const LaunchExpr &expr,
                               const Artifact &artifact) {
  bool isDim = expr.kind == LaunchExpr::Kind::Dim;
  if (isDim || expr.kind == LaunchExpr::Kind::Scalar) {
    if (expr.argument < 0 ||
        expr.argument >= static_cast<int64_t>(artifact.arguments.size()))
      return fail("launch expression names argument " +
                  std::to_string(expr.argument) + " of " +
                  std::to_string(artifact.arguments.size()));
    const ArgumentInfo &argument = artifact.arguments[expr.argument];
    if (argument.isTensor != isDim)
      return fail("launch expression takes argument '" + argument.name +
                  "' for a " + (isDim ? "tensor" : "scalar"));
    bool isInteger = argument.element >= ElementKind::I1;
    if (!isDim && !isInteger)
      return fail("launch expression uses '" + argument.name +
                  "', which is not an integer");
    if (isDim && (expr.value < 0 ||
                  expr.value >= static_cast<int64_t>(argument.shape.size())))
      return fail("launch expression names dimension " +
                  std::to_string(expr.value) + " of '" + argument.name + "'");
  }
  for (const LaunchExpr &operand : expr.operands)
    if (!checkExpr(operand, artifact))
      return false;
  return true;
}

bool ManifestReader::read(std::string_view text, Artifact &artifact,
                          uint64_t &ptxBytes, uint64_t &cubinBytes) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail("not a JSON object");
  if (!get(json, "name", artifact.name) ||
      !get(json, "target", artifact.target) ||
      !get(json, "compiler", artifact.compilerVersion) ||
      !get(json, "plan", artifact.plan) ||
      !get(json, "entry", artifact.entry) ||
      !get(json, "threads", artifact.threads) ||
      !get(json, "shared_bytes", artifact.sharedBytes) ||
      !get(json, "registers", artifact.registers) ||
      !get(json, "spill_store_bytes", artifact.spillStoreBytes) ||
      !get(json, "spill_load_bytes", artifact.spillLoadBytes) ||
      !getSize(json, "ptx_bytes", ptxBytes) ||
      !getSize(json, "cubin_bytes", cubinBytes))
    return false;
  const Json *arguments = getArray(json, "arguments");
  const Json *grid = getArray(json, "grid");
  const Json *checks = getArray(json, "checks");
  if (!arguments || !grid || !checks)
    return false;
  for (const Json &argument : *arguments)
    if (!readArgument(argument, artifact.arguments.emplace_back()))
      return false;
  if (json.contains("tensor_maps")) {
    const Json *maps = getArray(json, "tensor_maps");
    if (!maps)
      return false;
    for (const Json &map : *maps)
      if (!readTensorMap(map, artifact, artifact.tensorMaps.emplace_back()))
        return false;
  }
  if (grid->size() != artifact.grid.size())
    return fail("'grid' has " + std::to_string(grid->size()) +
                " entries, wanted " + std::to_string(artifact.grid.size()));
  for (size_t i = 0; i < artifact.grid.size(); ++i)
    if (!readExpr((*grid)[i], artifact.grid[i]) ||
        !checkExpr(artifact.grid[i], artifact))
      return false;
  for (const Json &entry : *checks) {
    LaunchCheck &check = artifact.checks.emplace_back();
    const Json *lhs = member(entry, "lhs");
    const Json *rhs = member(entry, "rhs");
    if (!lhs || !rhs || !get(entry, "message", check.message) ||
        !readExpr(*lhs, check.lhs) || !readExpr(*rhs, check.rhs) ||
        !checkExpr(check.lhs, artifact) || !checkExpr(check.rhs, artifact))
      return false;
  }
  return true;
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

std::optional<Artifact> Artifact::parse(std::string_view bytes,
                                        std::string &error) {
  error.clear();
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    error = "not an attn artifact (wanted a file that starts with '" +
            std::string(kMagic.substr(0, kMagic.size() - 1)) + "')";
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
  uint64_t ptxBytes = 0, cubinBytes = 0;
  ManifestReader reader(error);
  if (!reader.read(rest.substr(0, *manifestBytes), artifact, ptxBytes,
                   cubinBytes))
    return std::nullopt;
  rest.remove_prefix(*manifestBytes);
  if (ptxBytes > rest.size() || cubinBytes != rest.size() - ptxBytes) {
    error = "artifact holds " + std::to_string(rest.size()) +
            " bytes of images, its manifest says " + std::to_string(ptxBytes) +
            " + " + std::to_string(cubinBytes);
    return std::nullopt;
  }
  artifact.ptx = std::string(rest.substr(0, ptxBytes));
  rest.remove_prefix(ptxBytes);
  artifact.cubin.assign(rest.begin(), rest.end());
  return artifact;
}
