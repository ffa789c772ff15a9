//===- ManifestReader.cpp - an artifact from JSON ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

// The library may be built without exceptions: no call below throws.
#define JSON_NOEXCEPTION
#include <nlohmann/json.hpp>

#include <set>

using namespace attn;
using Json = nlohmann::ordered_json;

// Deeper launch expressions are refused, so that reading one cannot overflow
// the stack.
static constexpr int kMaxExprDepth = 64;

namespace {
/// Reads the manifest; the first thing that is wrong stays in `error`.
class ManifestReader {
public:
  explicit ManifestReader(std::string &error) : error(error) {}

  bool read(std::string_view text, Artifact &artifact,
            std::vector<ImageBytes> &images);

private:
  bool fail(std::string message) {
    if (error.empty())
      error = "artifact manifest: " + std::move(message);
    return false;
  }
  bool readFunction(const Json &json, Artifact &artifact, ImageBytes &images);
  bool readCompanions(const Json &json, Artifact &artifact,
                      std::vector<ImageBytes> &images);
  /// The member `key` of `json`, which must be there.
  const Json *member(const Json &json, const char *key);
  bool get(const Json &json, const char *key, std::string &value);
  bool get(const Json &json, const char *key, int64_t &value);
  bool get(const Json &json, const char *key, bool &value);
  bool getSize(const Json &json, const char *key, uint64_t &value);
  const Json *getArray(const Json &json, const char *key);
  bool readInteger(const Json &json, const char *what, int64_t &value);
  bool readArgument(const Json &json, ArgumentInfo &argument);
  bool readRoles(const Json &json, ArgumentInfo &argument);
  bool readView(const Json &json, ArgumentInfo &argument);
  bool readElement(const Json &json, const std::string &where,
                   ElementKind &element);
  bool readWorkspace(const Json &json, const Artifact &artifact,
                     WorkspaceInfo &workspace);
  bool readKernel(const Json &json, const Artifact &artifact,
                  const VariantInfo &variant, KernelInfo &kernel);
  bool readVariant(const Json &json, const Artifact &artifact,
                   VariantInfo &variant);
  bool readRule(const Json &json, const char *key, VariantRule &rule);
  bool readVariants(const Json &json, Artifact &artifact);
  /// An expression over the arguments of `artifact`.
  bool readExpr(const Json &json, const Artifact &artifact, LaunchExpr &expr) {
    return parseExpr(json, expr) && checkExpr(expr, artifact);
  }
  bool parseExpr(const Json &json, LaunchExpr &expr, int depth = 0);
  bool readTensorMap(const Json &json, const Artifact &artifact,
                     const VariantInfo &variant, TensorMapInfo &map);
  bool readRelayout(const Json &json, RelayoutInfo &relayout);
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

bool ManifestReader::readElement(const Json &json, const std::string &where,
                                 ElementKind &element) {
  std::string name;
  if (!get(json, "element", name))
    return false;
  std::optional<ElementKind> found = findElement(name);
  if (!found)
    return fail(where + " has unknown element type '" + name + "'");
  element = *found;
  return true;
}

bool ManifestReader::readArgument(const Json &json, ArgumentInfo &argument) {
  if (!get(json, "name", argument.name) ||
      !readElement(json, "argument '" + argument.name + "'",
                   argument.element) ||
      !get(json, "tensor", argument.isTensor) ||
      !get(json, "output", argument.isOutput) ||
      !get(json, "alignment", argument.alignment))
    return false;
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
  const Json *roles = getArray(json, "roles");
  const Json *view = getArray(json, "view");
  return roles && view && readRoles(*roles, argument) &&
         readView(*view, argument);
}

bool ManifestReader::readRoles(const Json &json, ArgumentInfo &argument) {
  for (const Json &name : json) {
    const auto *text = name.get_ptr<const std::string *>();
    std::optional<ArgumentRole> role;
    if (text)
      role = findRole(*text);
    if (!role)
      return fail("argument '" + argument.name + "' has unknown role " +
                  (text ? "'" + *text + "'" : "(no string)"));
    argument.roles.push_back(*role);
  }
  return true;
}

// Each dimension of the tensor in parts, of which one may be open.
bool ManifestReader::readView(const Json &json, ArgumentInfo &argument) {
  std::string where = "the view of '" + argument.name + "' ";
  std::vector<bool> isOpen(argument.shape.size(), false);
  for (const Json &dimension : json) {
    if (!dimension.is_array())
      return fail(where + "is no list of lists");
    auto &parts = argument.view.emplace_back();
    for (const Json &numbers : dimension) {
      ViewPart &part = parts.emplace_back();
      if (!numbers.is_array() || numbers.size() != 3)
        return fail(where + "has a part that is not three integers");
      if (!readInteger(numbers[0], "view", part.dim) ||
          !readInteger(numbers[1], "view", part.size) ||
          !readInteger(numbers[2], "view", part.step))
        return false;
      constexpr int64_t limit = int64_t(1) << 31;
      if (part.dim < 0 ||
          part.dim >= static_cast<int64_t>(argument.shape.size()) ||
          part.size < -1 || part.size > limit || part.step < 1 ||
          part.step > limit || (part.size < 0 && isOpen[part.dim]))
        return fail(where + "has a part that its shape does not");
      isOpen[part.dim] = isOpen[part.dim] || part.size < 0;
    }
  }
  return true;
}

bool ManifestReader::readTensorMap(const Json &json, const Artifact &artifact,
                                   const VariantInfo &variant,
                                   TensorMapInfo &map) {
  if (!get(json, "argument", map.argument) || !get(json, "rows", map.boxRows) ||
      !get(json, "columns", map.boxColumns) ||
      !get(json, "panels", map.boxPanels) ||
      !get(json, "swizzle", map.swizzleBytes))
    return false;
  constexpr int64_t maxBox = 256, maxRank = 4;
  size_t numArguments = artifact.arguments.size();
  if (map.argument < 0 || static_cast<size_t>(map.argument) >=
                              numArguments + variant.workspaces.size())
    return fail("tensor map of argument " + std::to_string(map.argument) +
                " of " + std::to_string(numArguments) + " and " +
                std::to_string(variant.workspaces.size()) + " workspaces");
  // Workspaces come after the arguments.
  ArgumentInfo memory;
  if (static_cast<size_t>(map.argument) < numArguments) {
    memory = artifact.arguments[map.argument];
  } else {
    size_t number = map.argument - numArguments;
    memory.name = "workspace " + std::to_string(number);
    memory.element = variant.workspaces[number].element;
    for (const LaunchExpr &size : variant.workspaces[number].sizes)
      memory.shape.push_back(
          size.kind == LaunchExpr::Kind::Constant ? size.value : -1);
  }
  bool isRow = map.swizzleBytes == 0;
  int64_t rank = memory.rank(), bytes = elementBytes(memory.element);
  if (!memory.isTensor || rank < (isRow ? 1 : 2) || rank > maxRank ||
      (memory.element != ElementKind::F16 &&
       memory.element != ElementKind::BF16 &&
       memory.element != ElementKind::F32))
    return fail("tensor map of '" + memory.name +
                "', which is no tensor of rank 2 to 4 of f16, bf16 or f32");
  int64_t boxBytes = map.boxColumns * bytes;
  bool isBox =
      boxBytes == map.swizzleBytes &&
      (boxBytes == 16 || boxBytes == 32 || boxBytes == 64 || boxBytes == 128);
  if (isRow)
    isBox = map.boxRows == 1 && map.boxPanels == 1 && map.boxColumns >= 1 &&
            map.boxColumns <= maxBox && boxBytes % 16 == 0;
  int64_t columns = memory.shape.empty() ? 0 : memory.shape.back();
  if (map.boxRows < 1 || map.boxRows > maxBox || map.boxPanels < 1 ||
      map.boxPanels > maxBox || !isBox ||
      (map.boxPanels > 1 && columns % map.boxColumns != 0))
    return fail("tensor map of '" + memory.name + "' has a wrong box");
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

bool ManifestReader::parseExpr(const Json &json, LaunchExpr &expr, int depth) {
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
  if (name == "multiprocessors") {
    expr.kind = LaunchExpr::Kind::Multiprocessors;
    return json.size() == 1 ||
           fail("launch expression with a wrong number of operands");
  }
  for (const BinaryExprName &row : kBinaryExprs) {
    if (row.name != name)
      continue;
    if (json.size() != 3)
      return fail("launch expression with a wrong number of operands");
    expr.kind = row.kind;
    expr.operands.resize(2);
    return parseExpr(json[1], expr.operands[0], depth + 1) &&
           parseExpr(json[2], expr.operands[1], depth + 1);
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
    if (isDim && (expr.value < 0 || expr.value >= argument.rank()))
      return fail("launch expression names dimension " +
                  std::to_string(expr.value) + " of '" + argument.name + "'");
  }
  for (const LaunchExpr &operand : expr.operands)
    if (!checkExpr(operand, artifact))
      return false;
  return true;
}

bool ManifestReader::readWorkspace(const Json &json, const Artifact &artifact,
                                   WorkspaceInfo &workspace) {
  const Json *sizes = getArray(json, "sizes");
  if (!sizes || !readElement(json, "a workspace", workspace.element) ||
      !get(json, "zeroed", workspace.isZeroed) ||
      !get(json, "restored", workspace.isRestored))
    return false;
  if (workspace.isRestored && !workspace.isZeroed)
    return fail("a workspace is restored, but not zeroed");
  for (const Json &size : *sizes)
    if (!readExpr(size, artifact, workspace.sizes.emplace_back()))
      return false;
  return true;
}

bool ManifestReader::readKernel(const Json &json, const Artifact &artifact,
                                const VariantInfo &variant,
                                KernelInfo &kernel) {
  const Json *grid = getArray(json, "grid");
  const Json *maps = getArray(json, "tensor_maps");
  const Json *results = getArray(json, "results");
  if (!grid || !maps || !results || !get(json, "entry", kernel.entry) ||
      !get(json, "plan", kernel.plan) ||
      !get(json, "threads", kernel.threads) ||
      !get(json, "shared_bytes", kernel.sharedBytes) ||
      !get(json, "starts_early", kernel.startsEarly) ||
      !get(json, "registers", kernel.registers) ||
      !get(json, "spill_store_bytes", kernel.spillStoreBytes) ||
      !get(json, "spill_load_bytes", kernel.spillLoadBytes))
    return false;
  if (grid->size() != kernel.grid.size())
    return fail("'grid' has " + std::to_string(grid->size()) +
                " entries, wanted " + std::to_string(kernel.grid.size()));
  for (size_t i = 0; i < kernel.grid.size(); ++i)
    if (!readExpr((*grid)[i], artifact, kernel.grid[i]))
      return false;
  for (const Json &result : *results)
    if (!readInteger(result, "results", kernel.results.emplace_back()))
      return false;
  for (const Json &map : *maps)
    if (!readTensorMap(map, artifact, variant,
                       kernel.tensorMaps.emplace_back()))
      return false;
  return true;
}

bool ManifestReader::readVariant(const Json &json, const Artifact &artifact,
                                 VariantInfo &variant) {
  const Json *workspaces = getArray(json, "workspaces");
  const Json *kernels = getArray(json, "kernels");
  if (!workspaces || !kernels || !get(json, "plan", variant.plan))
    return false;
  for (const Json &workspace : *workspaces)
    if (!readWorkspace(workspace, artifact, variant.workspaces.emplace_back()))
      return false;
  for (const Json &kernel : *kernels)
    if (!readKernel(kernel, artifact, variant, variant.kernels.emplace_back()))
      return false;
  return true;
}

/// The rule under `key`.
bool ManifestReader::readRule(const Json &json, const char *key,
                              VariantRule &rule) {
  std::string text, reason;
  if (!get(json, key, text))
    return false;
  std::optional<VariantRule> parsed = VariantRule::parse(text, reason);
  if (!parsed)
    return fail(std::string("'") + key + "': " + reason);
  rule = std::move(*parsed);
  return true;
}

bool ManifestReader::readVariants(const Json &json, Artifact &artifact) {
  const Json *variants = getArray(json, "variants");
  if (!variants || !readRule(json, "rule", artifact.rule))
    return false;
  artifact.variants.clear();
  for (const Json &variant : *variants)
    if (!readVariant(variant, artifact, artifact.variants.emplace_back()))
      return false;
  if (!json.contains("of_rule") && !json.contains("variant_of_rule"))
    return true;
  RulePart &part = artifact.partOf.emplace();
  return readRule(json, "of_rule", part.rule) &&
         get(json, "variant_of_rule", part.variant);
}

bool ManifestReader::readRelayout(const Json &json, RelayoutInfo &relayout) {
  return get(json, "entry", relayout.entry) &&
         get(json, "element_bytes", relayout.elementBytes) &&
         get(json, "threads", relayout.threads) &&
         get(json, "elements", relayout.elements);
}

bool ManifestReader::readFunction(const Json &json, Artifact &artifact,
                                  ImageBytes &images) {
  if (!get(json, "name", artifact.name) ||
      !get(json, "target", artifact.target) ||
      !get(json, "compiler", artifact.compilerVersion) ||
      !getSize(json, "ptx_bytes", images.ptx) ||
      !getSize(json, "cubin_bytes", images.cubin))
    return false;
  const Json *arguments = getArray(json, "arguments");
  const Json *relayouts = getArray(json, "relayouts");
  const Json *checks = getArray(json, "checks");
  if (!arguments || !relayouts || !checks)
    return false;
  for (const Json &argument : *arguments)
    if (!readArgument(argument, artifact.arguments.emplace_back()))
      return false;
  if (!readVariants(json, artifact))
    return false;
  for (const Json &relayout : *relayouts)
    if (!readRelayout(relayout, artifact.relayouts.emplace_back()))
      return false;
  for (const Json &entry : *checks) {
    LaunchCheck &check = artifact.checks.emplace_back();
    const Json *lhs = member(entry, "lhs");
    const Json *rhs = member(entry, "rhs");
    if (!lhs || !rhs || !get(entry, "message", check.message) ||
        !readExpr(*lhs, artifact, check.lhs) ||
        !readExpr(*rhs, artifact, check.rhs))
      return false;
  }
  std::string fault = findManifestFault(artifact);
  return fault.empty() || fail(std::move(fault));
}

/// Functions that come with `artifact`: by other names, for the same target.
bool ManifestReader::readCompanions(const Json &json, Artifact &artifact,
                                    std::vector<ImageBytes> &images) {
  std::set<std::string> names = {artifact.name};
  for (const Json &entry : json) {
    Artifact &companion = artifact.companions.emplace_back();
    if (!readFunction(entry, companion, images.emplace_back()))
      return false;
    const Json *further = getArray(entry, "companions");
    if (!further)
      return false;
    std::string which = "companion '" + companion.name + "' ";
    if (!further->empty())
      return fail(which + "has companions of its own");
    if (!names.insert(companion.name).second)
      return fail(which + "has the name of another function");
    if (companion.target != artifact.target)
      return fail(which + "is for " + companion.target + ", '" + artifact.name +
                  "' for " + artifact.target);
  }
  return true;
}

bool ManifestReader::read(std::string_view text, Artifact &artifact,
                          std::vector<ImageBytes> &images) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail("not a JSON object");
  if (!readFunction(json, artifact, images.emplace_back()))
    return false;
  const Json *companions = getArray(json, "companions");
  return companions && readCompanions(*companions, artifact, images);
}

bool attn::readManifest(std::string_view text, Artifact &artifact,
                        std::vector<ImageBytes> &images, std::string &error) {
  return ManifestReader(error).read(text, artifact, images);
}
