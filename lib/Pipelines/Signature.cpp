//===- Signature.cpp - what a caller of an attention function must pass ---===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Signature.h"

#include "attn/Dialect/Attn/Analysis/TracedView.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Warp/IR/Warp.h"
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
  if (functions.size() == 1 && functions.front().getName().empty())
    return functions.front().emitError("has an empty name, expected one by "
                                       "which it can be called");
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

/// Where the operands and results of the operation stand in the list of
/// arguments; -1 for what is not there.
namespace {
struct Places {
  int64_t q, k;
  /// With the batch, heads and length of q, and of k.
  SmallVector<int64_t> rows, keys;
  /// With an element per head: the sink, and its gradient.
  SmallVector<int64_t> perHead;
  /// Captures and their gradients.
  SmallVector<std::pair<int64_t, int64_t>> captures;
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
  addEqual(artifact, places.k, batch, places.q, batch);
  for (ArrayRef<int64_t> others :
       {ArrayRef(places.keys), ArrayRef(places.rows)})
    for (int64_t other : others)
      addEqual(artifact, other, batch, places.q, batch);
  for (int64_t other : places.keys) {
    addEqual(artifact, other, head, places.k, head);
    addEqual(artifact, other, length, places.k, length);
  }
  for (int64_t other : places.rows) {
    addEqual(artifact, other, head, places.q, head);
    addEqual(artifact, other, length, places.q, length);
  }
  for (int64_t other : places.perHead)
    addEqual(artifact, other, 0, places.q, head);
  for (auto [capture, gradient] : places.captures)
    for (int64_t i = 0, e = artifact.arguments[gradient].rank(); i < e; ++i)
      addEqual(artifact, gradient, i, capture, i);
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

namespace {
/// An operand or a result: what it is called, and what it is.
struct Part {
  Value value;
  std::string name;
  ArgumentRole role;
};
} // namespace

/// The operands that have the dimensions of query, or a part of them: query,
/// key and value first.
static SmallVector<Part> listTensors(ScoredOp op) {
  SmallVector<Part> parts = {{op.getQuery(), "q", ArgumentRole::Query},
                             {op.getKey(), "k", ArgumentRole::Key},
                             {op.getValue(), "v", ArgumentRole::Value}};
  if (auto jvp = dyn_cast<AttentionJvpOp>(op.getOperation()))
    parts.append({{jvp.getTQuery(), "t_q", ArgumentRole::QueryTangent},
                  {jvp.getTKey(), "t_k", ArgumentRole::KeyTangent},
                  {jvp.getTValue(), "t_v", ArgumentRole::ValueTangent}});
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!backward)
    return parts;
  parts.push_back({backward.getOutput(), "o", ArgumentRole::Output});
  parts.push_back({backward.getLse(), "lse", ArgumentRole::Lse});
  parts.push_back({backward.getDOutput(), "d_o", ArgumentRole::OutputGradient});
  if (Value dLse = backward.getDLse())
    parts.push_back({dLse, "d_lse", ArgumentRole::LseGradient});
  return parts;
}

/// The results, but for gradients of captures.
static SmallVector<Part> listResults(ScoredOp op) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!backward) {
    SmallVector<Part> parts = {{op->getResult(0), "o", ArgumentRole::Output},
                               {op->getResult(1), "lse", ArgumentRole::Lse}};
    if (auto jvp = dyn_cast<AttentionJvpOp>(op.getOperation()))
      parts.append({{jvp.getTOutput(), "t_o", ArgumentRole::OutputTangent},
                    {jvp.getTLse(), "t_lse", ArgumentRole::LseTangent}});
    return parts;
  }
  SmallVector<Part> parts = {
      {backward.getDQuery(), "d_q", ArgumentRole::QueryGradient},
      {backward.getDKey(), "d_k", ArgumentRole::KeyGradient},
      {backward.getDValue(), "d_v", ArgumentRole::ValueGradient}};
  if (Value dSink = backward.getDSink())
    parts.push_back({dSink, "d_sink", ArgumentRole::SinkGradient});
  return parts;
}

static FailureOr<ScoredOp> findAttention(func::FuncOp function) {
  SmallVector<ScoredOp> found;
  function.walk([&](ScoredOp op) { found.push_back(op); });
  if (found.size() != 1)
    return function.emitError("function '")
           << function.getName() << "' has " << found.size()
           << " attention operations, wanted 1";
  ScoredOp op = found.front();
  for (auto [number, part] : llvm::enumerate(listTensors(op))) {
    FailureOr<TracedView> view = traceView(part.value);
    auto arg = succeeded(view) ? dyn_cast<BlockArgument>(view->source)
                               : BlockArgument();
    if (!arg || arg.getOwner() != &function.getBody().front())
      return op->emitError()
             << (number < 3 ? "query, key and value"
                            : "output and lse, their gradients, and tangents")
             << " must be arguments of the function, or reshapes or "
             << "transposes of them";
  }
  return op;
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

namespace {
/// Describes the function of one operation.
class SignatureBuilder {
public:
  SignatureBuilder(func::FuncOp function, ScoredOp op, Artifact &artifact)
      : function(function), op(op), artifact(artifact) {}

  LogicalResult build();

private:
  void identify(Value value, StringRef name, ArgumentRole role) {
    Identity &identity = identities[value];
    identity.name = name.str();
    identity.roles.push_back(role);
  }
  void identifyCaptures();
  void identifyAll();
  LogicalResult describeOperands();
  LogicalResult describeResults();
  /// Where results of the operation stand in the list of arguments.
  void place(OpResult result, int64_t number);

  func::FuncOp function;
  ScoredOp op;
  Artifact &artifact;
  llvm::DenseMap<Value, Identity> identities;
  Places places;
};
} // namespace

/// Captures have names of their own, their gradients names after them.
void SignatureBuilder::identifyCaptures() {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  llvm::StringSet<> taken = {"q",   "k",    "v",      "o",
                             "lse", "sink", "offset", "seed"};
  if (backward)
    for (StringRef name : {"d_o", "d_lse", "d_q", "d_k", "d_v", "d_sink"})
      taken.insert(name);
  if (isa<AttentionJvpOp>(op.getOperation()))
    for (StringRef name : {"t_o", "t_lse", "t_q", "t_k", "t_v"})
      taken.insert(name);
  for (unsigned i = 0, e = op.getCaptures().size(); i != e; ++i) {
    taken.insert("c" + std::to_string(i));
    if (backward)
      taken.insert("d_c" + std::to_string(i));
  }
  SmallVector<std::string> names;
  for (auto [i, capture] : llvm::enumerate(op.getCaptures())) {
    names.push_back(captureName(capture, i, taken));
    identify(capture, names.back(), ArgumentRole::Capture);
  }
  for (auto [i, name] : llvm::enumerate(names)) {
    auto number = backward ? backward.getGradientNumber(i) : std::nullopt;
    if (!number)
      continue;
    std::string gradient = "d_" + name;
    bool isOwn = name == "c" + std::to_string(i);
    if (!isOwn && !taken.insert(gradient).second)
      gradient = "d_c" + std::to_string(i);
    identify(backward.getDCaptures()[*number], gradient,
             ArgumentRole::CaptureGradient);
  }
}

void SignatureBuilder::identifyAll() {
  identifyCaptures();
  constexpr std::pair<StringLiteral, ArgumentRole> keys[] = {
      {"seed", ArgumentRole::Seed}, {"offset", ArgumentRole::Offset}};
  for (auto [value, key] : llvm::zip(op.getDropoutKey(), keys))
    identify(value, key.first, key.second);
  if (op.getSink())
    if (FailureOr<TracedView> sink = traceView(op.getSink()); succeeded(sink))
      identify(sink->source, "sink", ArgumentRole::Sink);
  for (const Part &part : listTensors(op))
    identify(traceView(part.value)->source, part.name, part.role);
  for (const Part &part : listResults(op))
    identify(part.value, part.name, part.role);
}

LogicalResult SignatureBuilder::describeOperands() {
  for (BlockArgument arg : function.getArguments()) {
    Identity &identity = identities[arg];
    if (identity.name.empty())
      identity.name = "arg" + std::to_string(arg.getArgNumber());
    if (failed(describe(function, arg.getType(), identity, false, artifact)))
      return failure();
  }
  auto find = [&](Value value) -> int64_t {
    FailureOr<TracedView> view = traceView(value);
    auto argument = succeeded(view) ? dyn_cast<BlockArgument>(view->source)
                                    : BlockArgument();
    if (!argument)
      return -1;
    if (!view->isWhole())
      artifact.arguments[argument.getArgNumber()].view = view->parts;
    return argument.getArgNumber();
  };
  SmallVector<int64_t> numbers;
  for (const Part &part : listTensors(op))
    numbers.push_back(find(part.value));
  places.q = numbers[0];
  places.k = numbers[1];
  places.keys = {numbers[2]};
  for (auto [part, number] : llvm::zip(listTensors(op), numbers))
    if (part.role == ArgumentRole::KeyTangent ||
        part.role == ArgumentRole::ValueTangent)
      places.keys.push_back(number);
    else if (part.role >= ArgumentRole::Output)
      places.rows.push_back(number);
  if (op.getSink())
    places.perHead.push_back(find(op.getSink()));
  return success();
}

void SignatureBuilder::place(OpResult result, int64_t number) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!backward || result == backward.getDQuery())
    places.rows.push_back(number);
  else if (result == backward.getDKey() || result == backward.getDValue())
    places.keys.push_back(number);
  else if (result == backward.getDSink())
    places.perHead.push_back(number);
  else
    for (auto [i, capture] : llvm::enumerate(op.getCaptures()))
      if (auto gradient = backward.getGradientNumber(i);
          gradient && result == backward.getDCaptures()[*gradient])
        if (auto argument = dyn_cast<BlockArgument>(capture))
          places.captures.push_back({argument.getArgNumber(), number});
}

LogicalResult SignatureBuilder::describeResults() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (Value value : terminator->getOperands()) {
    FailureOr<TracedView> view = traceView(value);
    if (failed(view) || view->source.getDefiningOp() != op)
      return function.emitError("a result of the function is not a result of "
                                "its ")
             << op->getName();
    place(cast<OpResult>(view->source), artifact.arguments.size());
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
  return success();
}

LogicalResult SignatureBuilder::build() {
  identifyAll();
  if (failed(describeOperands()) || failed(describeResults()))
    return failure();
  addChecks(artifact, places);
  addLimits(artifact, places, op);
  return checkCaptureReach(op, places.q, places.k, artifact);
}

LogicalResult attn::describeSignature(func::FuncOp function,
                                      Artifact &artifact) {
  FailureOr<ScoredOp> op = findAttention(function);
  if (failed(op))
    return failure();
  artifact.name = function.getName().str();
  artifact.arguments.clear();
  artifact.checks.clear();
  return SignatureBuilder(function, *op, artifact).build();
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
