//===- Signature.cpp - what a caller of an attention function must pass ---===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Signature.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Pipelines/ArgumentViews.h"
#include "attn/Pipelines/CaptureReach.h"
#include "attn/Support/Identifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace attn;

FailureOr<func::FuncOp> attn::findFunction(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() &&
        (name.empty() ? function.isPublic() : function.getName() == name))
      functions.push_back(function);
  if (functions.size() == 1)
    return functions.front();
  if (!name.empty())
    return module.emitError("no function called '") << name << "'";
  if (functions.empty())
    return module.emitError("the module has no public function with a body");
  InFlightDiagnostic error = module.emitError("the module has ")
                             << functions.size()
                             << " public functions, say which one by name";
  for (func::FuncOp function : functions)
    error.attachNote(function.getLoc()) << "'" << function.getName() << "'";
  return error;
}

static std::optional<ElementKind> elementKind(Type type) {
  if (type.isF16())
    return ElementKind::F16;
  if (type.isBF16())
    return ElementKind::BF16;
  if (type.isF32())
    return ElementKind::F32;
  if (type.isF64())
    return ElementKind::F64;
  if (type.isIndex() || type.isSignlessInteger(64))
    return ElementKind::I64;
  if (type.isSignlessInteger(32))
    return ElementKind::I32;
  if (type.isSignlessInteger(16))
    return ElementKind::I16;
  if (type.isSignlessInteger(8))
    return ElementKind::I8;
  if (type.isSignlessInteger(1))
    return ElementKind::I1;
  return std::nullopt;
}

namespace {
/// What an argument or a result is called, and what it is to the attention.
struct Identity {
  std::string name;
  SmallVector<ArgumentRole, 1> roles;
};
} // namespace

static LogicalResult describe(func::FuncOp function, Type type,
                              const Identity &identity, bool isOutput,
                              Artifact &artifact) {
  ArgumentInfo info;
  info.name = identity.name;
  info.roles.assign(identity.roles.begin(), identity.roles.end());
  info.isOutput = isOutput;
  bool isMemory = isWarpProgram(function) ? isa<MemRefType>(type)
                                          : isa<RankedTensorType>(type);
  auto tensor = isMemory ? cast<ShapedType>(type) : ShapedType();
  info.isTensor = static_cast<bool>(tensor);
  auto element = elementKind(tensor ? tensor.getElementType() : type);
  if (!element || (isOutput && !tensor))
    return function.emitError(isOutput ? "result '" : "argument '")
           << info.name << "' is " << type << ", wanted a ranked tensor "
           << (isOutput ? "" : "or a scalar ")
           << "of f16, bf16, f32, f64, i1, i8, i16, i32, i64 or index";
  info.element = *element;
  if (tensor)
    for (int64_t size : tensor.getShape())
      info.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  artifact.arguments.push_back(std::move(info));
  return success();
}

static LaunchExpr dim(int64_t argument, int64_t dimension) {
  LaunchExpr expr;
  expr.kind = LaunchExpr::Kind::Dim;
  expr.argument = argument;
  expr.value = dimension;
  return expr;
}

/// Where the attention's operands and results stand in the list of arguments;
/// -1 for a sink that is not there or a result that is not returned.
namespace {
struct Places {
  int64_t q, k, v, sink = -1, o = -1, lse = -1;
};
} // namespace

static std::string dimText(const Artifact &artifact, int64_t argument,
                           int64_t dimension) {
  return "dimension " + std::to_string(dimension) + " of '" +
         artifact.arguments[argument].name + "'";
}

static void addEqual(Artifact &artifact, int64_t a, int64_t aDim, int64_t b,
                     int64_t bDim) {
  if (a < 0 || b < 0)
    return;
  artifact.checks.push_back({dim(a, aDim), dim(b, bDim),
                             dimText(artifact, a, aDim) + " must equal " +
                                 dimText(artifact, b, bDim)});
}

static void addChecks(Artifact &artifact, const Places &places) {
  constexpr int64_t batch = ScoredOp::kBatch, head = ScoredOp::kHead,
                    length = ScoredOp::kLength;
  for (int64_t other : {places.k, places.v, places.o, places.lse})
    addEqual(artifact, other, batch, places.q, batch);
  addEqual(artifact, places.v, head, places.k, head);
  addEqual(artifact, places.v, length, places.k, length);
  for (int64_t output : {places.o, places.lse}) {
    addEqual(artifact, output, head, places.q, head);
    addEqual(artifact, output, length, places.q, length);
  }
  addEqual(artifact, places.sink, 0, places.q, head);
  // Grouped-query attention: query heads are a multiple of key heads.
  LaunchExpr rest, zero;
  rest.kind = LaunchExpr::Kind::Mod;
  rest.operands = {dim(places.q, head), dim(places.k, head)};
  artifact.checks.push_back({rest, zero,
                             dimText(artifact, places.q, head) +
                                 " must be a multiple of " +
                                 dimText(artifact, places.k, head)});
}

/// (C6): sizes that types leave open are numbers that positions can have.
static void addLimits(Artifact &artifact, const Places &places, ScoredOp op) {
  constexpr int64_t batch = ScoredOp::kBatch, head = ScoredOp::kHead,
                    length = ScoredOp::kLength;
  auto add = [&](int64_t argument, TypedValue<RankedTensorType> seen,
                 int64_t dimension) {
    if (!seen.getType().isDynamicDim(dimension))
      return;
    LaunchExpr limit, larger;
    limit.value = ScoredOp::kMaxPositions;
    larger.kind = LaunchExpr::Kind::Max;
    larger.operands = {dim(argument, dimension), limit};
    artifact.checks.push_back({larger, limit,
                               dimText(artifact, argument, dimension) +
                                   " is more than positions count"});
  };
  for (int64_t dimension : {batch, head, length})
    add(places.q, op.getQuery(), dimension);
  for (int64_t dimension : {head, length})
    add(places.k, op.getKey(), dimension);
}

static FailureOr<AttentionOp> findAttention(func::FuncOp function) {
  SmallVector<AttentionOp> found;
  bool hasKernels = true;
  function.walk([&](AttentionBackwardOp op) {
    hasKernels = false;
    op.emitNoKernels();
  });
  if (!hasKernels)
    return failure();
  function.walk([&](AttentionOp op) { found.push_back(op); });
  if (found.size() != 1)
    return function.emitError("function '")
           << function.getName() << "' has " << found.size()
           << " attn.attention operations, wanted 1";
  for (Value operand : {found.front().getQuery(), found.front().getKey(),
                        found.front().getValue()}) {
    FailureOr<TracedView> view = traceView(operand);
    auto arg = succeeded(view) ? dyn_cast<BlockArgument>(view->source)
                               : BlockArgument();
    if (!arg || arg.getOwner() != &function.getBody().front())
      return found.front().emitError(
          "query, key and value must be arguments of the function, or reshapes "
          "or transposes of them");
  }
  return found.front();
}

/// The name of a capture: that of its location, as in loc("bias"), where it is
/// a name that no other argument or result has; else "c" and its number.
static std::string captureName(Value capture, unsigned number,
                               llvm::StringSet<> &taken) {
  if (auto location = dyn_cast<NameLoc>(capture.getLoc())) {
    StringRef name = location.getName();
    bool isName =
        !name.empty() && !llvm::isDigit(name.front()) &&
        llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (isName && taken.insert(name).second)
      return name.str();
  }
  return "c" + std::to_string(number);
}

LogicalResult attn::describeSignature(func::FuncOp function,
                                      Artifact &artifact) {
  FailureOr<AttentionOp> op = findAttention(function);
  if (failed(op))
    return failure();
  artifact.name = function.getName().str();
  artifact.arguments.clear();
  artifact.checks.clear();

  llvm::DenseMap<Value, Identity> identities;
  auto identify = [&](Value value, std::string name, ArgumentRole role) {
    Identity &identity = identities[value];
    identity.name = std::move(name);
    identity.roles.push_back(role);
  };
  llvm::StringSet<> taken = {"q",   "k",    "v",      "o",
                             "lse", "sink", "offset", "seed"};
  for (unsigned i = 0, e = op->getCaptures().size(); i != e; ++i)
    taken.insert("c" + std::to_string(i));
  for (auto [i, capture] : llvm::enumerate(op->getCaptures()))
    identify(capture, captureName(capture, i, taken), ArgumentRole::Capture);
  constexpr std::pair<StringLiteral, ArgumentRole> keys[] = {
      {"seed", ArgumentRole::Seed}, {"offset", ArgumentRole::Offset}};
  for (auto [value, key] : llvm::zip(op->getDropoutKey(), keys))
    identify(value, key.first.str(), key.second);
  FailureOr<TracedView> sink = failure();
  if (op->getSink())
    sink = traceView(op->getSink());
  BlockArgument sinkArgument =
      succeeded(sink) ? dyn_cast<BlockArgument>(sink->source) : BlockArgument();
  if (sinkArgument)
    identify(sinkArgument, "sink", ArgumentRole::Sink);
  std::array<int64_t, 3> numbers;
  std::array<TracedView, 3> views;
  constexpr std::pair<StringLiteral, ArgumentRole> operands[] = {
      {"q", ArgumentRole::Query},
      {"k", ArgumentRole::Key},
      {"v", ArgumentRole::Value}};
  for (unsigned i = 0; i < numbers.size(); ++i) {
    views[i] = *traceView((*op)->getOperand(i));
    numbers[i] = cast<BlockArgument>(views[i].source).getArgNumber();
    identify(views[i].source, operands[i].first.str(), operands[i].second);
  }
  identify(op->getOutput(), "o", ArgumentRole::Output);
  identify(op->getLse(), "lse", ArgumentRole::Lse);

  for (BlockArgument arg : function.getArguments()) {
    Identity &identity = identities[arg];
    if (identity.name.empty())
      identity.name = "arg" + std::to_string(arg.getArgNumber());
    if (failed(describe(function, arg.getType(), identity, false, artifact)))
      return failure();
  }
  for (auto [number, view] : llvm::zip_equal(numbers, views))
    if (!view.isWhole())
      artifact.arguments[number].view = view.parts;
  Places places;
  places.q = numbers[0];
  places.k = numbers[1];
  places.v = numbers[2];
  if (sinkArgument) {
    places.sink = sinkArgument.getArgNumber();
    if (!sink->isWhole())
      artifact.arguments[places.sink].view = sink->parts;
  }
  Operation *terminator = function.getBody().front().getTerminator();
  for (Value value : terminator->getOperands()) {
    FailureOr<TracedView> view = traceView(value);
    if (failed(view) || view->source.getDefiningOp() != *op)
      return function.emitError("a result of the function is not a result of "
                                "its attn.attention");
    (view->source == op->getOutput() ? places.o : places.lse) =
        artifact.arguments.size();
    if (failed(describe(function, value.getType(), identities[view->source],
                        true, artifact)))
      return failure();
    if (view->isWhole())
      continue;
    auto source = cast<RankedTensorType>(view->source.getType());
    FailureOr<ViewParts> seen =
        invertView(*view, cast<RankedTensorType>(value.getType()).getShape(),
                   source.getRank());
    if (failed(seen))
      return function.emitError("a result of the function is reshaped so that "
                                "no strides say where it lies");
    artifact.arguments.back().view = std::move(*seen);
  }
  addChecks(artifact, places);
  addLimits(artifact, places, *op);
  return checkCaptureReach(*op, places.q, places.k, artifact);
}

//===----------------------------------------------------------------------===//
// Programs of the Warp room
//===----------------------------------------------------------------------===//

bool attn::isWarpProgram(func::FuncOp function) {
  return !function.getOps<warp::KernelOp>().empty();
}

/// The arguments that a kernel stores to. Memory that it adds to must be the
/// kernel's own: what the caller gives may be copied before and after.
static FailureOr<std::set<int64_t>> findStored(warp::KernelOp kernel) {
  std::set<int64_t> numbers;
  WalkResult walk = kernel.walk([&](warp::StoreOp store) {
    auto argument = dyn_cast<BlockArgument>(store.getView());
    if (!argument)
      return WalkResult::advance();
    if (store.getAccumulate()) {
      store.emitOpError("adds to an argument of the function, expected a "
                        "memref.alloc");
      return WalkResult::interrupt();
    }
    numbers.insert(argument.getArgNumber());
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return numbers;
}

LogicalResult attn::describeWarpProgram(func::FuncOp function,
                                        Artifact &artifact) {
  artifact.name = function.getName().str();
  artifact.arguments.clear();
  VariantInfo &variant = artifact.variants.front();
  variant.kernels.clear();
  std::set<int64_t> outputs;
  for (auto kernel : function.getOps<warp::KernelOp>()) {
    FailureOr<std::set<int64_t>> stored = findStored(kernel);
    if (failed(stored))
      return failure();
    KernelInfo &info = variant.kernels.emplace_back();
    info.entry = ptxIdentifier(kernel.getSymName().str());
    info.results.assign(stored->begin(), stored->end());
    outputs.insert(stored->begin(), stored->end());
  }
  llvm::StringSet<> taken;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    Identity identity;
    identity.name = captureName(argument, number, taken);
    if (failed(describe(function, argument.getType(), identity,
                        outputs.count(number) != 0, artifact)))
      return failure();
  }
  return success();
}
