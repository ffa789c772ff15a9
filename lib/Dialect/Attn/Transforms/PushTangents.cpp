//===- PushTangents.cpp - attn-push-tangents -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Forward mode, operation by operation (Griewank and Walther, "Evaluating
// Derivatives", section 3.1): beside each value of floats that an argument has
// a part in there is its tangent, of the same type; none stands for 0.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Derivatives.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

namespace attn {
#define GEN_PASS_DEF_ATTNPUSHTANGENTSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static bool isFloating(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

namespace {
/// Puts tangents into one function.
class TangentBuilder {
public:
  explicit TangentBuilder(RewriterBase &b) : b(b) {}

  void set(Value value, Value tangent) { tangents[value] = tangent; }
  /// That of a value, which may be none.
  Value lookup(Value value) const { return tangents.lookup(value); }
  /// That of a value, in any case; built where the builder stands.
  Value require(Value value);
  LogicalResult push(Block &block);

private:
  LogicalResult push(Operation *op);
  bool isActive(Operation *op);
  LogicalResult pushScalar(Operation *op);
  LogicalResult pushLinear(Operation *op, unsigned operand);
  LogicalResult pushFill(linalg::FillOp op);
  LogicalResult pushInsert(tensor::InsertOp op);
  LogicalResult pushGeneric(linalg::GenericOp op);
  LogicalResult pushFor(scf::ForOp op);
  LogicalResult pushIf(scf::IfOp op);
  LogicalResult pushRegion(Region &from, Region &to);
  Value convert(Location loc, Value value, Type type);
  SmallVector<Value> requireFloating(ValueRange values);
  void replace(Operation *op, ValueRange results);

  RewriterBase &b;
  llvm::DenseMap<Value, Value> tangents;
};
} // namespace

Value TangentBuilder::require(Value value) {
  if (Value known = lookup(value))
    return known;
  Location loc = value.getLoc();
  Type element = getElementTypeOrSelf(value);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  if (!isa<RankedTensorType>(value.getType()))
    return zero;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  Value filled = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  if (filled.getType() == value.getType())
    return filled;
  return tensor::CastOp::create(b, loc, value.getType(), filled);
}

/// Of those that are floats, in their order.
SmallVector<Value> TangentBuilder::requireFloating(ValueRange values) {
  SmallVector<Value> found;
  for (Value value : values)
    if (isFloating(value.getType()))
      found.push_back(require(value));
  return found;
}

/// Something that moves goes in, here or inside.
bool TangentBuilder::isActive(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        bool reads = llvm::any_of(inner->getOperands(), [&](Value operand) {
          return bool(lookup(operand));
        });
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A float in another type.
Value TangentBuilder::convert(Location loc, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

/// What each operand adds is its adjoint, with its tangent in the place of that
/// of the result.
LogicalResult TangentBuilder::pushScalar(Operation *op) {
  Location loc = op->getLoc();
  Type type = getAdjointType(op);
  for (OpResult result : op->getResults()) {
    if (!isa<FloatType>(result.getType()))
      continue;
    Value sum;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      Value tangent = lookup(operand);
      if (!tangent)
        continue;
      SmallVector<Value> seeds(op->getNumResults());
      seeds[result.getResultNumber()] = convert(loc, tangent, type);
      FailureOr<SmallVector<Value>> adjoints = buildAdjoints(b, op, seeds);
      if (failed(adjoints))
        return op->emitOpError("has no known derivative: wanted operations "
                               "that attn-differentiate lists");
      Value part = (*adjoints)[number];
      if (part && sum)
        sum = arith::AddFOp::create(b, loc, sum, part);
      else if (part)
        sum = part;
    }
    if (sum)
      set(result, convert(loc, sum, result.getType()));
  }
  return success();
}

/// The operation once more, on a tangent.
LogicalResult TangentBuilder::pushLinear(Operation *op, unsigned operand) {
  Value tangent = lookup(op->getOperand(operand));
  if (!tangent)
    return success();
  Operation *copy = b.clone(*op);
  copy->setOperand(operand, tangent);
  set(op->getResult(0), copy->getResult(0));
  return success();
}

LogicalResult TangentBuilder::pushFill(linalg::FillOp op) {
  Value tangent = lookup(op.getInputs()[0]);
  if (!tangent)
    return success(); // whatever moved there is covered
  auto filled = linalg::FillOp::create(b, op.getLoc(), tangent,
                                       require(op.getOutputs()[0]));
  set(op.getResult(0), filled.getResult(0));
  return success();
}

LogicalResult TangentBuilder::pushInsert(tensor::InsertOp op) {
  Value scalar = require(op.getScalar()), dest = require(op.getDest());
  set(op.getResult(),
      tensor::InsertOp::create(b, op.getLoc(), scalar, dest, op.getIndices()));
  return success();
}

/// The results of the operation are the first ones of another that stands in
/// its place, and tangents of those that are floats the rest.
void TangentBuilder::replace(Operation *op, ValueRange results) {
  unsigned next = op->getNumResults();
  for (OpResult result : op->getResults())
    if (isFloating(result.getType()))
      set(results[result.getResultNumber()], results[next++]);
  b.replaceOp(op, results.take_front(op->getNumResults()));
}

/// The block of `from` becomes that of `to`, with tangents in it, which it
/// yields behind the rest.
LogicalResult TangentBuilder::pushRegion(Region &from, Region &to) {
  to.takeBody(from);
  Block &block = to.front();
  if (failed(push(block)))
    return failure();
  Operation *yield = block.getTerminator();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(yield);
  SmallVector<Value> values(yield->getOperands());
  llvm::append_range(values, requireFloating(yield->getOperands()));
  b.modifyOpInPlace(yield, [&] { yield->setOperands(values); });
  return success();
}

LogicalResult TangentBuilder::pushGeneric(linalg::GenericOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray(), inputMaps, outMaps;
  Block *block = op.getBody();
  unsigned numInputs = op.getNumDpsInputs();
  // Behind the inputs, and behind the outputs: tangents and whose they are.
  SmallVector<std::pair<unsigned, Value>> moving;
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    inputs.push_back(input);
    inputMaps.push_back(maps[number]);
    if (Value tangent = lookup(input))
      moving.push_back({number, tangent});
  }
  for (auto [number, tangent] : moving) {
    inputs.push_back(tangent);
    inputMaps.push_back(maps[number]);
  }
  for (auto [number, output] : llvm::enumerate(op.getOutputs())) {
    outputs.push_back(output);
    outMaps.push_back(maps[numInputs + number]);
  }
  for (auto [number, output] : llvm::enumerate(op.getOutputs()))
    if (isFloating(output.getType())) {
      outputs.push_back(require(output));
      outMaps.push_back(maps[numInputs + number]);
    }
  llvm::append_range(inputMaps, outMaps);
  auto copy =
      linalg::GenericOp::create(b, loc, TypeRange(ValueRange(outputs)), inputs,
                                outputs, inputMaps, op.getIteratorTypesArray());
  // Arguments for the tangents.
  unsigned place = numInputs;
  for (auto [number, tangent] : moving)
    set(block->getArgument(number),
        block->insertArgument(place++, getElementTypeOrSelf(tangent), loc));
  unsigned firstOutput = place;
  for (unsigned i = 0, e = op.getNumDpsInits(); i != e; ++i) {
    BlockArgument argument = block->getArgument(firstOutput + i);
    if (isFloating(argument.getType()))
      set(argument, block->addArgument(argument.getType(), loc));
  }
  if (failed(pushRegion(op.getRegion(), copy.getRegion())))
    return failure();
  replace(op, copy.getResults());
  return success();
}

LogicalResult TangentBuilder::pushFor(scf::ForOp op) {
  SmallVector<Value> inits(op.getInitArgs());
  llvm::append_range(inits, requireFloating(op.getInitArgs()));
  auto copy = scf::ForOp::create(b, op.getLoc(), op.getLowerBound(),
                                 op.getUpperBound(), op.getStep(), inits);
  Block *block = op.getBody();
  for (BlockArgument argument :
       SmallVector<BlockArgument>(op.getRegionIterArgs()))
    if (isFloating(argument.getType()))
      set(argument, block->addArgument(argument.getType(), op.getLoc()));
  if (failed(pushRegion(op.getRegion(), copy.getRegion())))
    return failure();
  replace(op, copy.getResults());
  return success();
}

LogicalResult TangentBuilder::pushIf(scf::IfOp op) {
  SmallVector<Type> types(op.getResultTypes());
  llvm::copy_if(op.getResultTypes(), std::back_inserter(types), isFloating);
  auto copy = scf::IfOp::create(b, op.getLoc(), types, op.getCondition(),
                                /*addThenBlock=*/false,
                                /*addElseBlock=*/false);
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), copy->getRegions()))
    if (!from.empty() && failed(pushRegion(from, to)))
      return failure();
  replace(op, copy.getResults());
  return success();
}

/// The builder stands behind the operation.
LogicalResult TangentBuilder::push(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() ||
      llvm::none_of(op->getResultTypes(), isFloating) || !isActive(op))
    return success();
  using Result = LogicalResult;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](linalg::FillOp fill) { return pushFill(fill); })
      .Case([&](linalg::GenericOp generic) { return pushGeneric(generic); })
      .Case([&](scf::ForOp loop) { return pushFor(loop); })
      .Case([&](scf::IfOp branch) { return pushIf(branch); })
      .Case([&](tensor::InsertOp insert) { return pushInsert(insert); })
      .Case<tensor::EmptyOp>([](auto) { return success(); })
      .Case<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractOp, tensor::ReshapeOp>(
          [&](auto linear) { return pushLinear(linear, 0); })
      .Default([&](Operation *other) -> Result {
        bool isScalar =
            isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
                other->getDialect()) &&
            llvm::none_of(other->getResultTypes(), llvm::IsaPred<ShapedType>);
        if (isScalar)
          return pushScalar(other);
        return other->emitOpError("has no known tangent: wanted operations "
                                  "that attn-push-tangents lists");
      });
}

LogicalResult TangentBuilder::push(Block &block) {
  OpBuilder::InsertionGuard guard(b);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    b.setInsertionPointAfter(&op);
    if (failed(push(&op)))
      return failure();
  }
  return success();
}

namespace {
struct PushTangents : attn::impl::AttnPushTangentsPassBase<PushTangents> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && hasLinalg(function)) {
        if (failed(check(function)))
          return signalPassFailure();
        functions.push_back(function);
      }
    IRRewriter rewriter(&getContext());
    for (func::FuncOp function : functions)
      if (failed(build(rewriter, function)))
        return signalPassFailure();
  }

  static bool hasLinalg(func::FuncOp function) {
    return function
        .walk([](linalg::LinalgOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  LogicalResult check(func::FuncOp function) {
    std::string name = (function.getName() + "_jvp").str();
    if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), name))
      return other->emitError("'@")
             << name << "' is there already, wanted the name for what is "
             << "made of '@" << function.getName() << "'";
    if (!function.getBody().hasOneBlock())
      return function.emitError("wants one block, got ")
             << function.getBody().getBlocks().size();
    for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                              function.getResultTypes()))
      if (isa<ShapedType>(type) && !isa<RankedTensorType>(type))
        return function.emitError("wants ranked tensors and scalars, got ")
               << type;
    return success();
  }

  LogicalResult build(RewriterBase &b, func::FuncOp function) {
    b.setInsertionPointAfter(function);
    auto clone = cast<func::FuncOp>(b.clone(*function));
    clone.setSymName((function.getName() + "_jvp").str());
    TangentBuilder builder(b);
    Block &block = clone.getBody().front();
    for (BlockArgument argument :
         SmallVector<BlockArgument>(block.getArguments())) {
      if (!isFloating(argument.getType()))
        continue;
      unsigned last = clone.getNumArguments();
      if (failed(clone.insertArgument(last, argument.getType(), {},
                                      argument.getLoc())))
        return failure();
      builder.set(argument, clone.getArgument(last));
    }
    if (failed(builder.push(block)))
      return failure();
    Operation *end = block.getTerminator();
    b.setInsertionPoint(end);
    SmallVector<Value> results(end->getOperands());
    for (Value value : end->getOperands())
      if (isFloating(value.getType()))
        results.push_back(builder.require(value));
    end->setOperands(results);
    clone.removeResAttrsAttr();
    clone.setFunctionType(b.getFunctionType(clone.getArgumentTypes(),
                                            ValueRange(results).getTypes()));
    return success();
  }
};
} // namespace
