//===- NarrowIndices.cpp - numbers that 32 bits hold ----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's analysis of ranges finds what fits. It starts from what the analysis
// cannot know: there are at most `maxPositions` queries and keys, which each
// launch is asked for, and numbers of blocks are below those of the grid.
//
//===----------------------------------------------------------------------===//

#include "NarrowIndices.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Warp/Analysis/BlockNumbers.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;
using dataflow::IntegerValueRangeLattice;

static_assert(maxPositions == ScoredOp::kMaxPositions);

namespace {
class IndexRanges final : public dataflow::IntegerRangeAnalysis {
public:
  using IntegerRangeAnalysis::IntegerRangeAnalysis;

  LogicalResult
  visitOperation(Operation *op,
                 ArrayRef<const IntegerValueRangeLattice *> operands,
                 ArrayRef<IntegerValueRangeLattice *> results) override {
    if (auto receive = dyn_cast<ReceiveOp>(op)) {
      visitReceive(receive, results);
      return success();
    }
    std::optional<int64_t> most = getMost(op);
    if (auto dim = dyn_cast<memref::DimOp>(op); dim && isCountOfPositions(dim))
      most = maxPositions;
    if (!most)
      return IntegerRangeAnalysis::visitOperation(op, operands, results);
    unsigned bits = IndexType::kInternalStorageBitWidth;
    auto range =
        ConstantIntRanges::fromSigned(APInt::getZero(bits), APInt(bits, *most));
    propagateIfChanged(results[0], results[0]->join(IntegerValueRange(range)));
    return success();
  }

private:
  /// What is received was sent.
  void visitReceive(ReceiveOp receive,
                    ArrayRef<IntegerValueRangeLattice *> results) {
    for (Operation *user : receive.getRing().getUsers())
      if (auto send = dyn_cast<SendOp>(user))
        for (auto [lattice, value] : llvm::zip_equal(results, send.getValues()))
          propagateIfChanged(
              lattice, lattice->join(getLatticeElementFor(
                                         getProgramPointAfter(receive), value)
                                         ->getValue()));
  }
};

/// Replaces operations, in the order of the program.
class Narrowing {
public:
  Narrowing(DataFlowSolver &solver, MLIRContext *context)
      : solver(solver), builder(context) {}

  void run(Operation *op);
  /// Erases what nothing needs any more. Before, no value may be in the place
  /// of one that the analysis knows.
  void cleanUp();

private:
  const ConstantIntRanges *getRange(Value value) const;
  bool fits(Value value) const;
  bool isNotNegative(Value value) const;
  Value narrow(Value index);
  Value divide(Operation *op);
  Value create(Operation *op);

  DataFlowSolver &solver;
  OpBuilder builder;
  DenseMap<Value, Value> narrowed;
  SmallVector<Operation *> dead; // perhaps
};
} // namespace

const ConstantIntRanges *Narrowing::getRange(Value value) const {
  auto *lattice = solver.lookupState<IntegerValueRangeLattice>(value);
  if (!lattice || lattice->getValue().isUninitialized())
    return nullptr;
  return &lattice->getValue().getValue();
}

bool Narrowing::fits(Value value) const {
  const ConstantIntRanges *range = getRange(value);
  return range && range->smin().isSignedIntN(32) &&
         range->smax().isSignedIntN(32);
}

bool Narrowing::isNotNegative(Value value) const {
  const ConstantIntRanges *range = getRange(value);
  return range && range->smin().isNonNegative();
}

/// The index in 32 bits, which hold it.
Value Narrowing::narrow(Value index) {
  if (!index.getType().isIndex())
    return index;
  Value &known = narrowed[index];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(index);
  Location loc = index.getLoc();
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  if (std::optional<int64_t> number = getConstantIntValue(index))
    known = arith::ConstantIntOp::create(builder, loc, *number, 32);
  else if (cast && cast.getIn().getType().isInteger(32))
    known = cast.getIn();
  else
    known =
        arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
  return known;
}

/// Of a number that is not negative by a positive constant.
Value Narrowing::divide(Operation *op) {
  Location loc = op->getLoc();
  std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
  if (!divisor || *divisor <= 0 || !isNotNegative(op->getOperand(0)))
    return nullptr;
  Value number = narrow(op->getOperand(0)), by = narrow(op->getOperand(1));
  if (isa<arith::RemSIOp>(op))
    return arith::RemUIOp::create(builder, loc, number, by);
  if (isa<arith::CeilDivSIOp>(op)) {
    const ConstantIntRanges *range = getRange(op->getOperand(0));
    if (!(range->smax() + (*divisor - 1)).isSignedIntN(32))
      return nullptr;
    Value last = arith::ConstantIntOp::create(builder, loc, *divisor - 1, 32);
    number = arith::AddIOp::create(builder, loc, number, last,
                                   arith::IntegerOverflowFlags::nsw);
  }
  return arith::DivUIOp::create(builder, loc, number, by);
}

/// The operation in 32 bits; null for one that stays as it is.
Value Narrowing::create(Operation *op) {
  Location loc = op->getLoc();
  if (isa<arith::CeilDivSIOp, arith::FloorDivSIOp, arith::DivSIOp,
          arith::RemSIOp>(op))
    if (Value quotient = divide(op))
      return quotient;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(narrow(operand));
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addTypes(isa<arith::CmpIOp>(op) ? op->getResult(0).getType()
                                        : builder.getI32Type());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *created = builder.create(state);
  llvm::TypeSwitch<Operation *>(created)
      .Case<arith::AddIOp, arith::SubIOp, arith::MulIOp>([](auto sum) {
        sum.setOverflowFlags(arith::IntegerOverflowFlags::nsw);
      });
  return created->getResult(0);
}

void Narrowing::run(Operation *op) {
  if (auto cast = dyn_cast<arith::IndexCastOp>(op)) {
    dead.push_back(op);
    if (!cast.getType().isInteger(32))
      return;
    auto known = narrowed.find(cast.getIn());
    if (known != narrowed.end() && known->second != cast.getResult())
      cast.replaceAllUsesWith(known->second);
    return;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp,
           arith::MinSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp,
           arith::DivSIOp, arith::RemSIOp, arith::SelectOp, arith::CmpIOp>(
          op) ||
      !op->getOperands().back().getType().isIndex())
    return;
  auto doesFit = [&](Value value) {
    return !value.getType().isIndex() || fits(value);
  };
  if (!llvm::all_of(op->getOperands(), doesFit) ||
      !llvm::all_of(op->getResults(), doesFit))
    return;
  builder.setInsertionPoint(op);
  Value result = create(op);
  dead.push_back(op);
  if (isa<arith::CmpIOp>(op)) {
    op->getResult(0).replaceAllUsesWith(result);
    return;
  }
  Value wide = arith::IndexCastOp::create(builder, op->getLoc(),
                                          builder.getIndexType(), result);
  // What is known of the old result is known of the new one.
  (void)solver.getOrCreateState<IntegerValueRangeLattice>(wide)->join(
      *solver.lookupState<IntegerValueRangeLattice>(op->getResult(0)));
  narrowed[wide] = result;
  dead.push_back(wide.getDefiningOp());
  op->getResult(0).replaceAllUsesWith(wide);
}

void Narrowing::cleanUp() {
  for (Operation *op : llvm::reverse(dead))
    if (op->use_empty())
      op->erase();
}

LogicalResult attn::warp::narrowIndices(gpu::GPUFuncOp function) {
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<IndexRanges>();
  if (failed(solver.initializeAndRun(function)))
    return function.emitError("the ranges of its indices were not found");
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      ops.push_back(op);
  });
  Narrowing narrowing(solver, function.getContext());
  for (Operation *op : ops)
    narrowing.run(op);
  narrowing.cleanUp();
  function.walk(dropMost);
  return success();
}
