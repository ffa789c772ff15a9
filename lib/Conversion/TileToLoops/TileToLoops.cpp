//===- TileToLoops.cpp - tile kernels as loops over buffers -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Deferral.h"
#include "Lowering.h"
#include "TileBuffers.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTTILETOLOOPS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static bool isVector(Value value) { return isa<VectorType>(value.getType()); }

namespace {
/// Rewrites one kernel: emits the loops before each vector operation, then
/// removes the vectors.
class KernelLowering {
public:
  explicit KernelLowering(func::FuncOp kernel)
      : builder(kernel.getContext()), deferral(kernel), buffers(kernel),
        kernel(kernel) {}

  LogicalResult run();

private:
  LogicalResult lowerBlock(Block &block);
  LogicalResult lower(Operation *op);
  LogicalResult lowerFor(scf::ForOp op);
  LogicalResult lowerIf(scf::IfOp op);
  LogicalResult lowerNested(Operation *op);
  void lowerElementwise(Operation *op);
  void lowerYield(scf::YieldOp yield);

  OpBuilder builder;
  Deferral deferral;
  TileBuffers buffers;
  func::FuncOp kernel;
  llvm::DenseMap<Operation *, SmallVector<Value>> yieldTargets;
  SmallVector<Operation *> dead;
  SmallVector<Operation *> carriers;
};
} // namespace

/// Copies the yielded vectors to `targets` as one parallel assignment: a value
/// that is read through a target must be read before any target is written.
void KernelLowering::lowerYield(scf::YieldOp yield) {
  ArrayRef<Value> targets = yieldTargets[yield->getParentOp()];
  Location loc = yield->getLoc();
  SmallVector<Value> values =
      llvm::filter_to_vector(yield->getOperands(), isVector);
  SmallVector<Value> sources, temporaries;
  for (Value value : values) {
    Value source = buffers.lookup(value);
    if (!source || llvm::is_contained(targets, source)) {
      if (targets[sources.size()] != source) {
        source = buffers.acquire(cast<VectorType>(value.getType()));
        buffers.fill(builder, loc, value, source);
        temporaries.push_back(source);
      }
    }
    sources.push_back(source);
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i] != targets[i])
      emitLoops(builder, loc, cast<MemRefType>(sources[i].getType()).getShape(),
                [&](OpBuilder &b, ValueRange at) {
                  Value scalar = memref::LoadOp::create(b, loc, sources[i], at);
                  memref::StoreOp::create(b, loc, scalar, targets[i], at);
                });
  for (Value temporary : temporaries)
    buffers.release(temporary);
}

/// Carried vectors live in one buffer each, for the whole loop.
LogicalResult KernelLowering::lowerFor(scf::ForOp op) {
  SmallVector<Value> carried;
  for (auto [init, arg, result] : llvm::zip_equal(
           op.getInitArgs(), op.getRegionIterArgs(), op.getResults())) {
    if (!isVector(init))
      continue;
    carried.push_back(buffers.acquire(cast<VectorType>(init.getType())));
    buffers.fill(builder, op.getLoc(), init, carried.back());
    buffers.bind(arg, carried.back());
    buffers.bind(result, carried.back());
  }
  if (!carried.empty())
    yieldTargets[op] = carried;
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  if (!carried.empty())
    carriers.push_back(op);
  return success();
}

LogicalResult KernelLowering::lowerIf(scf::IfOp op) {
  SmallVector<Value> targets;
  for (Value result : llvm::make_filter_range(op.getResults(), isVector)) {
    targets.push_back(buffers.acquire(cast<VectorType>(result.getType())));
    buffers.bind(result, targets.back());
  }
  if (!targets.empty())
    yieldTargets[op] = targets;
  for (Region &region : op->getRegions())
    if (!region.empty() && failed(lowerBlock(region.front())))
      return failure();
  if (!targets.empty())
    carriers.push_back(op);
  return success();
}

LogicalResult KernelLowering::lowerNested(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      if (llvm::any_of(block.getArguments(), isVector))
        return op->emitError("vector arguments of '")
               << op->getName() << "' cannot be lowered to loops";
      if (failed(lowerBlock(block)))
        return failure();
    }
  return success();
}

void KernelLowering::lowerElementwise(Operation *op) {
  Value result = op->getResult(0);
  auto type = cast<VectorType>(result.getType());
  Value buffer = buffers.acquire(type);
  // Not bound yet: the elements are those of the expression.
  buffers.fill(builder, op->getLoc(), result, buffer);
  buffers.bind(result, buffer);
}

LogicalResult KernelLowering::lower(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return lowerIf(branch);
  if (auto search = dyn_cast<tile::SearchOp>(op)) {
    dead.push_back(op);
    lowerSearch(builder, buffers, search);
    return success();
  }
  if (auto bins = dyn_cast<tile::BinsOp>(op)) {
    dead.push_back(op);
    lowerBins(builder, buffers, bins);
    return success();
  }
  if (auto store = dyn_cast<tile::StoreBinsOp>(op)) {
    dead.push_back(op);
    lowerStoreBins(builder, buffers, store);
    return success();
  }
  if (isa<tile::ExitIfOp>(op)) {
    dead.push_back(op);
    return success();
  }
  // All rows are computed here.
  if (auto group = dyn_cast<tile::GroupBoundsOp>(op)) {
    dead.push_back(op);
    op->replaceAllUsesWith(group.getBounds());
    return success();
  }
  if (!touchesVectors(op))
    return lowerNested(op);
  if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    if (!yieldTargets.contains(yield->getParentOp()))
      return op->emitError("vectors yielded to '")
             << yield->getParentOp()->getName()
             << "' cannot be lowered to loops";
    lowerYield(yield);
    return success();
  }
  dead.push_back(op);
  if (deferral.isDeferred(op)) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    if (constant && !isa<SplatElementsAttr>(constant.getValue()))
      return op->emitError("only splat constants can be lowered to loops");
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::LoadOp load) {
        lowerLoad(builder, buffers, load);
        return success();
      })
      .Case([&](tile::StoreOp store) {
        lowerStore(builder, buffers, store);
        return success();
      })
      .Case([&](tile::ScatterAddOp add) {
        lowerScatterAdd(builder, buffers, add);
        return success();
      })
      .Case([&](tile::GatherOp gather) {
        lowerGather(builder, buffers, gather);
        return success();
      })
      .Case([&](vector::ContractionOp contract) {
        return lowerContract(builder, buffers, contract);
      })
      .Case([&](vector::MultiDimReductionOp reduction) {
        return lowerReduction(builder, buffers, reduction);
      })
      .Default([&](Operation *) -> LogicalResult {
        if (!isElementwise(op))
          return op->emitError("'")
                 << op->getName() << "' on vectors cannot be lowered to loops";
        lowerElementwise(op);
        return success();
      });
}

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    builder.setInsertionPoint(&op);
    if (failed(lower(&op)))
      return failure();
    for (Value value : deferral.diesAfter(&op))
      if (Value buffer = buffers.lookup(value))
        buffers.release(buffer);
  }
  return success();
}

/// Drops the vector operands of the terminators of `op`.
static void dropYieldedVectors(Operation *op) {
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    Operation *yield = region.front().getTerminator();
    yield->setOperands(llvm::filter_to_vector(
        yield->getOperands(), [](Value value) { return !isVector(value); }));
  }
}

/// The same operation without its carried vectors, which nothing reads.
static void dropCarriedVectors(OpBuilder &builder, Operation *op) {
  builder.setInsertionPoint(op);
  Operation *slim = nullptr;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // A vector operand may be gone already: ask the results for the types.
    SmallVector<Value> inits;
    for (auto [init, result] :
         llvm::zip_equal(loop.getInits(), loop.getResults()))
      if (!isVector(result))
        inits.push_back(init);
    loop.getBody()->eraseArguments(
        [](BlockArgument arg) { return isVector(arg); });
    auto same = scf::ForOp::create(builder, op->getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits);
    same.getRegion().takeBody(loop.getRegion());
    slim = same;
  } else {
    auto branch = cast<scf::IfOp>(op);
    SmallVector<Type> types;
    for (Type type : op->getResultTypes())
      if (!isa<VectorType>(type))
        types.push_back(type);
    auto same =
        scf::IfOp::create(builder, op->getLoc(), types, branch.getCondition());
    same.getThenRegion().takeBody(branch.getThenRegion());
    same.getElseRegion().takeBody(branch.getElseRegion());
    slim = same;
  }
  unsigned next = 0;
  for (Value result : op->getResults())
    if (!isVector(result))
      result.replaceAllUsesWith(slim->getResult(next++));
  // The next loop of a chain still names the vectors of this one.
  op->dropAllUses();
  op->erase();
}

LogicalResult KernelLowering::run() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("a tile kernel must have one block, got ")
           << kernel.getBody().getBlocks().size();
  if (failed(lowerNested(kernel)))
    return failure();
  buffers.finish();
  for (Operation *op : carriers)
    dropYieldedVectors(op);
  for (Operation *op : llvm::reverse(dead)) {
    op->dropAllUses();
    op->erase();
  }
  for (Operation *op : carriers)
    dropCarriedVectors(builder, op);
  return success();
}

/// The blocks of a kernel, one after the other.
static void lowerGrid(RewriterBase &rewriter, tile::KernelOp kernel) {
  Location loc = kernel.getLoc();
  rewriter.setInsertionPoint(kernel);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  SmallVector<Value> numbers;
  for (Value count : kernel.getGrid()) {
    auto loop = scf::ForOp::create(rewriter, loc, zero, count, one);
    rewriter.setInsertionPointToStart(loop.getBody());
    numbers.push_back(loop.getInductionVar());
  }
  rewriter.eraseOp(kernel.getTerminator());
  rewriter.inlineBlockBefore(kernel.getBody(), rewriter.getInsertionBlock(),
                             rewriter.getInsertionPoint(), numbers);
  rewriter.eraseOp(kernel);
}

namespace {
struct ConvertTileToLoops
    : public attn::impl::ConvertTileToLoopsBase<ConvertTileToLoops> {
  void getDependentDialects(DialectRegistry &registry) const override {
    ConvertTileToLoopsBase::getDependentDialects(registry);
    registry.insert<math::MathDialect>();
  }
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (failed(requireForm(kernel, tile::TileForm::Flat, getArgument())))
      return signalPassFailure();
    bool hasVectors = llvm::any_of(kernel.getArgumentTypes(), [](Type type) {
      return isa<VectorType>(type);
    });
    kernel.walk([&](Operation *op) { hasVectors |= touchesVectors(op); });
    if (kernel.isDeclaration())
      return;
    if (hasVectors && failed(KernelLowering(kernel).run()))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (auto grid :
         llvm::make_early_inc_range(kernel.getOps<tile::KernelOp>()))
      lowerGrid(rewriter, grid);
  }
};
} // namespace
