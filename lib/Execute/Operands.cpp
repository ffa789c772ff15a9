//===- Operands.cpp - the tensors and scalars of one call -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Operands.h"

#include "attn/Execute/MachineMemory.h"
#include "attn/Execute/Npy.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cmath>

using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

using Shape = std::vector<int64_t>;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {
struct ShapeSpec {
  std::map<std::string, int64_t> letters;
  std::map<std::string, Shape> whole;
};
} // namespace

static std::string shapeText(const Shape &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") +
            (size < 0 ? std::string("?") : std::to_string(size));
  return text;
}

static Result<ShapeSpec> parseShape(llvm::StringRef text,
                                    const Artifact &manifest) {
  ShapeSpec spec;
  llvm::SmallVector<llvm::StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef item : items) {
    llvm::StringRef name, value;
    std::tie(name, value) = item.trim().split('=');
    Shape shape;
    llvm::SmallVector<llvm::StringRef> sizes;
    value.split(sizes, 'x');
    for (llvm::StringRef size : sizes) {
      int64_t number = -1;
      if (size != "?" && (size.getAsInteger(10, number) || number < 0))
        return Status::error("shape '" + item.str() +
                             "': wanted NAME=SIZE or NAME=SIZExSIZE…");
      shape.push_back(number);
    }
    bool isLetter = llvm::is_contained({"b", "h", "hkv", "sq", "sk"}, name);
    bool isArgument = llvm::any_of(manifest.arguments, [&](auto &info) {
      return info.isTensor && info.name == name;
    });
    if (isLetter && shape.size() == 1 && shape[0] >= 0)
      spec.letters[name.str()] = shape[0];
    else if (isArgument)
      spec.whole[name.str()] = shape;
    else
      return Status::error("shape '" + item.str() +
                           "': wanted a size of b, h, hkv, sq or sk, or the "
                           "whole shape of a tensor argument by its name");
  }
  return spec;
}

/// Which letter stands for each dimension of an argument as a kernel sees it.
static std::vector<const char *> kernelLetters(const ArgumentInfo &info) {
  using Role = ArgumentRole;
  auto isOne = [&](std::initializer_list<Role> roles) {
    return llvm::any_of(roles, [&](Role role) { return info.is(role); });
  };
  // Of an argument that is key and query the key's, as they say more.
  if (isOne({Role::Key, Role::Value, Role::KeyGradient, Role::ValueGradient,
             Role::KeyTangent, Role::ValueTangent}))
    return {"b", "hkv", "sk", ""};
  if (isOne({Role::Query, Role::Output, Role::OutputGradient,
             Role::QueryGradient, Role::QueryTangent, Role::OutputTangent}))
    return {"b", "h", "sq", ""};
  if (isOne({Role::Lse, Role::LseGradient, Role::LseTangent}))
    return {"b", "h", "sq"};
  if (isOne({Role::Sink, Role::SinkGradient}))
    return {"h"};
  return {};
}

/// Which letter stands for each dimension of an argument; "" for none.
static std::vector<const char *> letters(const ArgumentInfo &info) {
  std::vector<const char *> names = kernelLetters(info);
  if (info.view.empty())
    return names;
  std::vector<const char *> own(info.shape.size(), "");
  std::vector<int> uses(info.shape.size(), 0);
  for (const auto &parts : info.view)
    for (const ViewPart &part : parts)
      ++uses[part.dim];
  for (size_t i = 0; i < info.view.size() && i < names.size(); ++i)
    if (info.view[i].size() == 1 && uses[info.view[i][0].dim] == 1)
      own[info.view[i][0].dim] = names[i];
  return own;
}

static Status narrow(int64_t &size, int64_t known, const std::string &where) {
  if (known < 0 || size == known)
    return Status();
  if (size >= 0)
    return Status::error(where + " is " + std::to_string(size) + ", not " +
                         std::to_string(known));
  size = known;
  return Status();
}

/// As many keys as queries, as many key heads as heads, if nothing says other.
static void useDefaults(Shape &shape, const ArgumentInfo &info,
                        const ShapeSpec &spec) {
  auto names = letters(info);
  for (size_t d = 0; d < shape.size() && d < names.size(); ++d)
    for (auto [own, other] : {std::pair("hkv", "h"), std::pair("sk", "sq")})
      if (shape[d] < 0 && llvm::StringRef(names[d]) == own &&
          spec.letters.count(other))
        shape[d] = spec.letters.at(other);
}

/// Dimensions that a launch wants to be equal are.
static void useChecks(std::vector<Shape> &shapes, const Artifact &manifest) {
  auto find = [&](const LaunchExpr &expr) -> int64_t * {
    if (expr.kind != LaunchExpr::Kind::Dim ||
        !manifest.arguments[expr.argument].view.empty())
      return nullptr;
    return &shapes[expr.argument][expr.value];
  };
  for (const LaunchCheck &check : manifest.checks) {
    int64_t *left = find(check.lhs), *right = find(check.rhs);
    if (left && right && (*left < 0) != (*right < 0))
      *left = *right = std::max(*left, *right);
  }
}

static Result<std::vector<Shape>> bindShapes(const Artifact &manifest,
                                             llvm::StringRef text) {
  auto spec = parseShape(text, manifest);
  if (!spec.ok())
    return spec.status();
  std::vector<Shape> shapes;
  for (const ArgumentInfo &info : manifest.arguments) {
    Shape shape = info.shape;
    auto whole = spec->whole.find(info.name);
    if (whole != spec->whole.end() && whole->second.size() != shape.size())
      return Status::error("'" + info.name + "' has rank " +
                           std::to_string(shape.size()) + ", got shape " +
                           shapeText(whole->second));
    for (size_t d = 0; d < shape.size(); ++d) {
      std::string where =
          "dimension " + std::to_string(d) + " of '" + info.name + "'";
      if (whole != spec->whole.end())
        if (Status s = narrow(shape[d], whole->second[d], where); !s.ok())
          return s;
      auto names = letters(info);
      if (d < names.size() && spec->letters.count(names[d]))
        if (Status s = narrow(shape[d], spec->letters[names[d]], where);
            !s.ok())
          return s;
    }
    useDefaults(shape, info, *spec);
    // What is known of this argument is known of those that share its letters.
    auto names = letters(info);
    for (size_t d = 0; d < shape.size() && d < names.size(); ++d)
      if (shape[d] >= 0 && names[d][0])
        spec->letters.emplace(names[d], shape[d]);
    shapes.push_back(shape);
  }
  useChecks(shapes, manifest);
  return shapes;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {
/// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators"): the same numbers everywhere.
struct Random {
  uint64_t state;
  uint64_t bits() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return (bits() >> 11) * 0x1p-53; }
  /// Box and Muller.
  double normal() {
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
};
} // namespace

/// Floats are normal with variance 1; integers are in 0 … 15; flags are fair.
static void fillRandom(HostTensor &tensor, uint64_t seed) {
  Random random{seed};
  bool isInteger = tensor.element() == ElementKind::I8 ||
                   tensor.element() == ElementKind::I16 ||
                   tensor.element() == ElementKind::I32 ||
                   tensor.element() == ElementKind::I64;
  // Encoding is slow; a table of encoded values is not.
  std::vector<uint64_t> table(1 << 14);
  for (uint64_t &bits : table) {
    double value = isInteger                             ? random.bits() % 16
                   : tensor.element() == ElementKind::I1 ? random.bits() % 2
                                                         : random.normal();
    bits = encodeElement(tensor.element(), value);
  }
  tensor.assignBits([&] { return table[random.bits() % table.size()]; });
}

/// A tensor that this process can hold.
static Status checkMemory(const ArgumentInfo &info, const Shape &shape,
                          int64_t padding) {
  int64_t bytes = elementBytes(info.element);
  int64_t limit = memoryLimit();
  bool fits = true;
  for (auto [d, size] : llvm::enumerate(shape)) {
    int64_t extent = d + 1 == shape.size() ? size + padding : size;
    fits &= extent == 0 || !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (fits && bytes <= limit)
    return Status();
  return Status::error("'" + info.name + "' of shape " + shapeText(shape) +
                       " does not fit the memory of this machine, " +
                       std::to_string(limit >> 20) + " MiB");
}

static Result<HostTensor> makeTensor(const ArgumentInfo &info, Shape shape,
                                     size_t index,
                                     const OperandRequest &request) {
  auto file = request.files.find(info.name);
  std::optional<HostTensor> given;
  if (file != request.files.end() && !info.isOutput) {
    auto read = readNpy(file->second, info.element);
    if (!read.ok())
      return read.status();
    given = std::move(*read);
    bool fits = given->sizes().size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = shape[d] < 0 || shape[d] == given->sizes()[d];
    if (!fits)
      return Status::error("'" + info.name + "' has shape " + shapeText(shape) +
                           ", the file has " + shapeText(given->sizes()));
    shape = given->sizes();
  }
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] < 0)
      return Status::error("dimension " + std::to_string(d) + " of '" +
                           info.name +
                           "' is not known: give --shape (b=, h=, hkv=, sq=, "
                           "sk=, or NAME=SIZExSIZE…)");
  if (Status fits = checkMemory(info, shape, request.padding); !fits.ok())
    return fits;
  bool isMain = kernelLetters(info).size() == 4;
  bool hasOrder = isMain && shape.size() == request.order.size();
  HostTensor tensor(info.element, shape, hasOrder ? request.order : Shape(),
                    request.padding);
  if (given)
    tensor.assign(given->values());
  else if (!info.isOutput)
    fillRandom(tensor, request.seed * 1000003 + index);
  return tensor;
}

Result<Operands> attn::makeOperands(const Artifact &manifest,
                                    const OperandRequest &request) {
  auto isKnown = [&](const std::string &name, bool isTensor) {
    return llvm::any_of(manifest.arguments, [&](auto &info) {
      return info.name == name && info.isTensor == isTensor;
    });
  };
  for (auto &[name, file] : request.files)
    if (!isKnown(name, true))
      return Status::error("no tensor argument is called '" + name + "'");
  for (auto &[name, value] : request.scalars)
    if (!isKnown(name, false))
      return Status::error("no scalar argument is called '" + name + "'");
  // Files say shapes too.
  std::string shape = request.shape;
  for (const ArgumentInfo &info : manifest.arguments) {
    auto file = request.files.find(info.name);
    if (file == request.files.end() || info.isOutput)
      continue;
    auto read = readNpy(file->second, info.element);
    if (!read.ok())
      return read.status();
    if (read->sizes().size() == info.shape.size())
      shape += "," + info.name + "=" + shapeText(read->sizes());
  }
  auto shapes = bindShapes(manifest, shape);
  if (!shapes.ok())
    return shapes.status();
  Operands operands;
  for (auto [i, info] : llvm::enumerate(manifest.arguments)) {
    runtime::Argument value = runtime::Argument::scalar(int64_t(0));
    if (!info.isTensor) {
      auto given = request.scalars.find(info.name);
      if (given == request.scalars.end())
        return Status::error("scalar '" + info.name +
                             "' has no value: give --scalar=" + info.name +
                             "=VALUE");
      bool isFloat = info.element == ElementKind::F16 ||
                     info.element == ElementKind::BF16 ||
                     info.element == ElementKind::F32 ||
                     info.element == ElementKind::F64;
      value =
          isFloat
              ? runtime::Argument::scalar(given->second)
              : runtime::Argument::scalar(static_cast<int64_t>(given->second));
      operands.tensors.push_back(std::nullopt);
    } else {
      auto tensor = makeTensor(info, (*shapes)[i], i, request);
      if (!tensor.ok())
        return tensor.status();
      operands.tensors.push_back(std::move(*tensor));
    }
    operands.values.push_back(value);
  }
  return operands;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

runtime::Arguments Operands::arguments() {
  runtime::Arguments result = values;
  for (auto [tensor, value] : llvm::zip_equal(tensors, result))
    if (tensor)
      value = tensor->argument();
  return result;
}

RunResult attn::readResult(const Artifact &manifest, const Operands &operands) {
  RunResult result;
  for (auto [info, tensor] :
       llvm::zip_equal(manifest.arguments, operands.tensors))
    if (info.isOutput && tensor) {
      if (!info.roles.empty() &&
          info.roles.front() >= ArgumentRole::QueryGradient)
        result.gradients.push_back({info.name, info.roles.front(),
                                    tensor->element(), tensor->values()});
      else
        (info.is(ArgumentRole::Lse) ? result.lse : result.o) = tensor->values();
    }
  return result;
}

Result<RunResult> attn::runOnHost(const HostProgram &program,
                                  Operands &operands) {
  const Artifact &manifest = program.manifest();
  Operands outputs;
  runtime::Arguments arguments = operands.arguments();
  for (auto [i, info] : llvm::enumerate(manifest.arguments)) {
    outputs.tensors.push_back(std::nullopt);
    if (!info.isOutput)
      continue;
    outputs.tensors.back().emplace(info.element, operands.tensors[i]->sizes());
    arguments[i] = outputs.tensors.back()->argument();
  }
  Status status = program.invoke(arguments);
  if (!status.ok())
    return status;
  return readResult(manifest, outputs);
}
