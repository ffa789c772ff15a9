//===- Differentiate.cpp - attn-differentiate -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/ArgumentAttributes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/ExpandVariants.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Pullback.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_ATTNDIFFERENTIATEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A function that is an attention of its arguments.
struct Differentiable {
  func::FuncOp function;
  AttentionOp attention;
  /// Captures whose gradients are asked for: arguments of floats.
  SmallVector<int64_t> gradCaptures;
  /// Of tangents: the arguments that move, each once.
  SmallVector<BlockArgument> moving;
  bool returnsOutput = false, returnsLse = false;
};
} // namespace

static bool isFloating(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

/// An argument of floats whose elements the value is made of, not only its
/// sizes; the `wanted` one, if any is.
static BlockArgument findSource(Value value, BlockArgument wanted = {}) {
  SetVector<Value> worklist;
  worklist.insert(value);
  for (unsigned i = 0; i < worklist.size(); ++i) {
    Value next = worklist[i];
    auto argument = dyn_cast<BlockArgument>(next);
    bool isWanted = !wanted || argument == wanted;
    if (argument && isWanted && isFloating(argument.getType()))
      return argument;
    if (Operation *op = next.getDefiningOp(); op && !isa<tensor::DimOp>(op))
      worklist.insert(op->operand_begin(), op->operand_end());
  }
  return BlockArgument();
}

/// Every floating operand is an argument of its own, or no argument has a say
/// in it.
static LogicalResult matchOperands(Differentiable &match,
                                   bool captureGradients) {
  AttentionOp op = match.attention;
  SmallVector<Value> operands = {op.getQuery(), op.getKey(), op.getValue()};
  if (op.getSink())
    operands.push_back(op.getSink());
  size_t numTensors = operands.size();
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (captureGradients && isFloating(capture.getType()) &&
        !isConstantArgument(capture) &&
        (isa<BlockArgument>(capture) || findSource(capture))) {
      match.gradCaptures.push_back(number);
      operands.push_back(capture);
    }
  llvm::SmallDenseSet<Value> seen;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    std::string name =
        number < numTensors
            ? StringRef(std::array{"query", "key", "value", "sink"}[number])
                  .str()
            : "capture #" +
                  std::to_string(match.gradCaptures[number - numTensors]);
    if (!isa<BlockArgument>(operand))
      return op.emitOpError("has a ")
             << name << " that is computed, wanted an argument of the "
             << "function: only attention is differentiated";
    if (!seen.insert(operand).second)
      return op.emitOpError("has a ")
             << name << " that is another operand too, wanted an argument for "
             << "each: gradients are not added up";
  }
  return success();
}

/// Query, key and value are arguments, and nothing else is made of their
/// elements.
static LogicalResult matchMovingOperands(Differentiable &match) {
  AttentionOp op = match.attention;
  constexpr StringLiteral names[] = {"query", "key", "value"};
  Value tensors[] = {op.getQuery(), op.getKey(), op.getValue()};
  for (auto [name, tensor] : llvm::zip(names, tensors)) {
    auto argument = dyn_cast<BlockArgument>(tensor);
    if (!argument)
      return op.emitOpError("has a ")
             << name << " that is computed, wanted an argument of the "
             << "function: only attention is differentiated";
    if (!llvm::is_contained(match.moving, argument))
      match.moving.push_back(argument);
  }
  auto check = [&](Value operand, const Twine &name) -> LogicalResult {
    if (!operand || llvm::none_of(match.moving, [&](BlockArgument argument) {
          return findSource(operand, argument);
        }))
      return success();
    return op.emitOpError("has a ")
           << name << " that is made of its query, key or value, wanted one "
           << "that does not move with them";
  };
  if (failed(check(op.getSink(), "sink")))
    return failure();
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (failed(check(capture, "capture #" + Twine(number))))
      return failure();
  return success();
}

static LogicalResult matchResults(Differentiable &match) {
  Operation *end = match.function.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(end->getOperands())) {
    bool isOutput = value == match.attention.getOutput();
    if (!isOutput && value != match.attention.getLse())
      return match.function.emitOpError("result #")
             << number << " is not a result of the attention: only attention "
             << "is differentiated";
    bool &isReturned = isOutput ? match.returnsOutput : match.returnsLse;
    if (isReturned)
      return match.function.emitOpError("result #")
             << number << " is returned twice, wanted once";
    isReturned = true;
  }
  return success();
}

static FailureOr<Differentiable> matchFunction(func::FuncOp function,
                                               DerivativeMode mode,
                                               bool captureGradients) {
  SmallVector<AttentionOp> found;
  function.walk([&](AttentionOp op) { found.push_back(op); });
  Differentiable match{function, found.front(), {}, {}};
  if (found.size() != 1) {
    InFlightDiagnostic diag = found[1].emitOpError(
        "is the second attention of its function, wanted one");
    diag.attachNote(found.front().getLoc()) << "first attention is here";
    return diag;
  }
  if (match.attention->getParentOp() != function ||
      !function.getBody().hasOneBlock())
    return match.attention.emitOpError(
        "wants to be in the only block of a func.func to be differentiated");
  if (failed(mode == DerivativeMode::VJP
                 ? matchOperands(match, captureGradients)
                 : matchMovingOperands(match)) ||
      failed(matchResults(match)))
    return failure();
  return match;
}

/// A copy of the function after it.
static func::FuncOp cloneFunction(OpBuilder &b, func::FuncOp function,
                                  const Twine &name) {
  b.setInsertionPointAfter(function);
  auto clone = cast<func::FuncOp>(b.clone(*function));
  clone.setSymName((function.getName() + name).str());
  return clone;
}

/// Makes a function return the values.
static void setResults(func::FuncOp function, ValueRange results) {
  function.getBody().front().getTerminator()->setOperands(results);
  function.removeResAttrsAttr();
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getArgumentTypes(), results.getTypes()));
}

static AttentionOp findAttention(func::FuncOp function) {
  return *function.getBody().front().getOps<AttentionOp>().begin();
}

/// The forward that saves what the backward reads.
static void buildForward(OpBuilder &b, const Differentiable &match) {
  func::FuncOp forward = cloneFunction(b, match.function, "_forward");
  setResults(forward, findAttention(forward).getResults());
}

/// One more argument at the end of a function.
static Value addArgument(func::FuncOp function, Type type, StringRef name) {
  unsigned number = function.getNumArguments();
  Location loc = NameLoc::get(StringAttr::get(function.getContext(), name));
  (void)function.insertArgument(number, type, DictionaryAttr(), loc);
  return function.getArgument(number);
}

/// The operation, with the regions of the forward in it.
static AttentionBackwardOp createBackward(OpBuilder &b, AttentionOp op,
                                          ArrayRef<int64_t> gradCaptures,
                                          ArrayRef<Value> saved) {
  SmallVector<Type> captureTypes;
  for (int64_t number : gradCaptures)
    captureTypes.push_back(AttentionBackwardOp::getGradientType(
        op.getCaptures()[number].getType()));
  auto backward = AttentionBackwardOp::create(
      b, op.getLoc(), op.getQuery().getType(), op.getKey().getType(),
      op.getValue().getType(), op.getSink() ? op.getSink().getType() : Type(),
      captureTypes, op.getQuery(), op.getKey(), op.getValue(), saved[0],
      saved[1], saved[2], saved[3], op.getSink(), op.getDropoutKey(),
      op.getCaptures(), op.getScaleAttr(), op.getDropoutPAttr(),
      op.getSortedCapturesAttr(),
      gradCaptures.empty() ? DenseI64ArrayAttr()
                           : b.getDenseI64ArrayAttr(gradCaptures),
      op.getNumericsAttr(), PlanAttr(), RecomputeAttr());
  backward->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  backward.getScore().takeBody(op.getScore());
  backward.getMask().takeBody(op.getMask());
  return backward;
}

static LogicalResult buildBackward(RewriterBase &rewriter,
                                   const Differentiable &match,
                                   bool lseGradient) {
  func::FuncOp function = cloneFunction(rewriter, match.function, "_backward");
  AttentionOp op = expandVariants(rewriter, findAttention(function));
  Type output = op.getOutput().getType(), lse = op.getLse().getType();
  Value saved[] = {addArgument(function, output, "output"),
                   addArgument(function, lse, "lse"),
                   addArgument(function, output, "d_output"),
                   lseGradient ? addArgument(function, lse, "d_lse") : Value()};
  rewriter.setInsertionPoint(op);
  AttentionBackwardOp backward =
      createBackward(rewriter, op, match.gradCaptures, saved);
  setResults(function, backward.getResults());
  rewriter.eraseOp(op);
  return buildPullback(rewriter, backward);
}

/// The operation, with the regions of the forward in it.
static AttentionJvpOp createJvp(OpBuilder &b, AttentionOp op,
                                ArrayRef<Value> tangents) {
  Type output = op.getOutput().getType(), lse = op.getLse().getType();
  auto jvp = AttentionJvpOp::create(
      b, op.getLoc(), output, lse, output, lse, op.getQuery(), op.getKey(),
      op.getValue(), tangents[0], tangents[1], tangents[2], op.getSink(),
      op.getDropoutKey(), op.getCaptures(), op.getScaleAttr(),
      op.getDropoutPAttr(), op.getSortedCapturesAttr(), op.getNumericsAttr(),
      PlanAttr());
  jvp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  jvp.getScore().takeBody(op.getScore());
  jvp.getMask().takeBody(op.getMask());
  return jvp;
}

static LogicalResult buildJvp(RewriterBase &rewriter,
                              const Differentiable &match) {
  func::FuncOp function = cloneFunction(rewriter, match.function, "_jvp");
  AttentionOp op = expandVariants(rewriter, findAttention(function));
  constexpr StringLiteral names[] = {"t_query", "t_key", "t_value"};
  Value tensors[] = {op.getQuery(), op.getKey(), op.getValue()};
  SmallVector<Value> tangents;
  llvm::SmallDenseMap<Value, Value> known;
  for (auto [name, tensor] : llvm::zip(names, tensors)) {
    Value &tangent = known[tensor];
    if (!tangent)
      tangent = addArgument(function, tensor.getType(), name);
    tangents.push_back(tangent);
  }
  rewriter.setInsertionPoint(op);
  AttentionJvpOp jvp = createJvp(rewriter, op, tangents);
  setResults(function, jvp.getResults());
  rewriter.eraseOp(op);
  return buildPushforward(rewriter, jvp);
}

namespace {
struct Differentiate : attn::impl::AttnDifferentiatePassBase<Differentiate> {
  using Base::Base;

  void runOnOperation() override {
    if (mode == DerivativeMode::JVP && lseGradient) {
      getOperation().emitError("attn-differentiate got lse-gradient with "
                               "mode=jvp, wanted it with mode=vjp: tangents of "
                               "lse are always there");
      return signalPassFailure();
    }
    SmallVector<Differentiable> matches;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.walk([](AttentionOp) { return WalkResult::interrupt(); })
               .wasInterrupted())
        continue;
      FailureOr<Differentiable> match =
          matchFunction(function, mode, captureGradients);
      if (failed(match) || failed(checkNames(*match)))
        return signalPassFailure();
      matches.push_back(*match);
    }
    IRRewriter rewriter(&getContext());
    for (const Differentiable &match : matches) {
      if (mode == DerivativeMode::JVP) {
        if (failed(buildJvp(rewriter, match)))
          return signalPassFailure();
        continue;
      }
      if (failed(buildBackward(rewriter, match, lseGradient)))
        return signalPassFailure();
      if (!match.returnsOutput || !match.returnsLse)
        buildForward(rewriter, match);
    }
  }

  /// The names of the new functions are free.
  LogicalResult checkNames(Differentiable match) {
    static constexpr StringLiteral vjp[] = {"_forward", "_backward"},
                                   jvp[] = {"_jvp"};
    for (StringRef suffix :
         mode == DerivativeMode::JVP ? ArrayRef(jvp) : ArrayRef(vjp)) {
      std::string name = (match.function.getName() + suffix).str();
      if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), name))
        return other->emitError("'@")
               << name << "' is there already, wanted the name for what is "
               << "made of '@" << match.function.getName() << "'";
    }
    return success();
  }
};
} // namespace
