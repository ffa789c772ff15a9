//===- Persist.cpp - blocks that take one tile after the other -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel with roles has a multiprocessor for itself. If its blocks end, the
// next one starts with an empty pipeline; if instead as many blocks as there
// are multiprocessors stay and take tile t, t + number of blocks, …, the
// producer loads the next tile's operands while the last one's results leave.
//
// The body of the kernel goes into a loop over tiles; the numbers that the
// block had come from the tile's number, and the bounds of the body's loops
// from them. The loop carries all of these, and what the body reads from memory
// by them, so that `warp-specialize` can leave it to the producer, which runs
// ahead, to compute them.
//
// Handing out tiles in advance pays only if they take equally long: then the
// next tile is the one that comes as many later as there are blocks, and the
// first number varies fastest. Where the bounds of a loop depend on the block's
// numbers (a causal mask) a block draws its next tile from a counter that all
// blocks share, and does so late, at the last copy of the tile before: the
// sooner it is done the less is known about who will be free first.
//
// Tiles that are idle (`warp.exit_if`) nobody begins: a loop passes over them,
// to the next tile that is not. It stands where the next tile is described,
// after the last copy, so that nothing waits for the numbers of several tiles
// but the copies of the tile that is found. Before the first one a block whose
// tiles are counted asks of 32 at a time, each lane of one: where all tiles are
// idle, as mostly, the block ends there.
//
//===----------------------------------------------------------------------===//

#include "CopiedTiles.h"
#include "ProducerSlice.h"
#include "TileOrder.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPPERSIST
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// The blocks' numbers as tiles, and what has to move into the loop over them.
class TileLoop {
public:
  TileLoop(RewriterBase &rewriter, KernelOp kernel, ArrayRef<CopiedTile> tiles);

  /// Block n takes the tiles n, n + number of blocks, …
  void count(bool isEven);
  /// Block n starts with tile n and draws the others.
  void draw();

private:
  using Numbers = TileOrder::Numbers;

  void createLoop(function_ref<Value(Value)> getNext,
                  function_ref<Value(Value)> getNextEarly,
                  function_ref<Numbers(Value)> decode, Value stride = {});
  Value skipIdle(Value stride, function_ref<Value(Value)> getIdle);
  bool isComputable(Value value, SetVector<Operation *> &slice);
  void findBounds(Operation *loop);
  void findReads(Operation *op);
  void findIdle();
  Operation *findLastCopy();

  RewriterBase &rewriter;
  KernelOp kernel;
  Location loc;
  Block *body;
  SmallVector<Operation *> moved;
  TileOrder order;
  Value tiles; // how many
  /// Bounds of loops, and numbers in memory, that differ from tile to tile, and
  /// the operations that compute them from the block's numbers, in order.
  SetVector<Value> bounds;
  SetVector<Operation *> boundOps;
  /// Whether a tile is idle, computed by `boundOps` too; null if none is known
  /// to be.
  Value isIdle;
};
} // namespace

TileLoop::TileLoop(RewriterBase &rewriter, KernelOp kernel,
                   ArrayRef<CopiedTile> copied)
    : rewriter(rewriter), kernel(kernel), loc(kernel.getLoc()),
      body(kernel.getBodyBlock()), order(rewriter, kernel, copied) {
  for (Operation &op : body->without_terminator())
    if (!isa<AllocOp>(op))
      moved.push_back(&op);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(kernel);
  tiles = order.countTiles();
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  rewriter.modifyOpInPlace(kernel, [&] {
    kernel.getGridXMutable().assign(tiles);
    kernel.getGridYMutable().assign(one);
    kernel.getGridZMutable().assign(one);
    kernel.setResident(true);
  });
}

/// Whether a value is computed before all loops, by scalars: `slice`.
bool TileLoop::isComputable(Value value, SetVector<Operation *> &slice) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *inner) { return inner->getBlock() == body; };
  return succeeded(getBackwardSlice(value, &slice, options)) &&
         llvm::all_of(slice, [](Operation *inner) { return isShared(*inner); });
}

/// Of bounds that differ between groups, what they have in common.
static SetVector<Value> findCommon(ArrayRef<Value> bounds) {
  SetVector<Value> values(bounds.begin(), bounds.end()), found;
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (auto group = dyn_cast_or_null<GroupBoundsOp>(op))
      found.insert(group.getWhole(values[i]));
    else if (op && dependsOnGroup(values[i]))
      values.insert(op->operand_begin(), op->operand_end());
    else
      found.insert(values[i]);
  }
  return found;
}

/// What a constant is added to. Where a loop starts at the second block, the
/// first one's number is also that of the block before the loop: carried, it is
/// found once per tile, not by each role again.
static Value stripConstant(Value bound) {
  auto sum = bound.getDefiningOp<arith::AddIOp>();
  return sum && getConstantIntValue(sum.getRhs()) ? sum.getLhs() : bound;
}

/// The bounds of a loop, if they are computed before it by scalars.
void TileLoop::findBounds(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return;
  for (Value bound : findCommon({loop.getLowerBound(), loop.getUpperBound()})) {
    bound = stripConstant(bound);
    if (!dependsOnBlock(kernel, bound) || isa<BlockArgument>(bound))
      continue;
    SetVector<Operation *> slice;
    if (!isComputable(bound, slice))
      continue;
    bounds.insert(bound);
    boundOps.insert_range(slice);
  }
}

/// A number that is read from memory before all loops.
void TileLoop::findReads(Operation *op) {
  // With them, the number of the tile and three of the block.
  constexpr size_t mostCarried = MailboxType::maxCount - 4;
  auto cast = dyn_cast<arith::IndexCastOp>(op);
  if (!cast || !cast.getIn().getDefiningOp<memref::LoadOp>() ||
      !cast.getIn().getType().isInteger(32) || !cast.getType().isIndex() ||
      bounds.size() >= mostCarried || !dependsOnBlock(kernel, cast))
    return;
  SetVector<Operation *> slice;
  bool isAskedByBody = llvm::any_of(cast->getUsers(), [&](Operation *user) {
    return !boundOps.contains(user);
  });
  if (!isAskedByBody || !isComputable(cast, slice))
    return;
  bounds.insert(cast);
  boundOps.insert_range(slice);
}

/// The loop over tiles asks what a block asked at its start.
void TileLoop::findIdle() {
  for (auto idle : llvm::make_early_inc_range(body->getOps<ExitIfOp>())) {
    SetVector<Operation *> slice;
    if (!isIdle && dependsOnBlock(kernel, idle.getCondition()) &&
        isComputable(idle.getCondition(), slice)) {
      isIdle = idle.getCondition();
      boundOps.insert_range(slice);
    }
    llvm::erase(moved, idle.getOperation());
    rewriter.eraseOp(idle);
  }
}

/// The first of the block's tiles with one that has work among it and those
/// after it, or one after the last.
Value TileLoop::skipIdle(Value stride, function_ref<Value(Value)> getIdle) {
  OpBuilder::InsertionGuard guard(rewriter);
  Type index = rewriter.getIndexType();
  auto search =
      scf::WhileOp::create(rewriter, loc, index, body->getArgument(0));
  Block *before = rewriter.createBlock(&search.getBefore(), {}, index, loc);
  Value first = before->getArgument(0);
  Value exists = order.isTile(first);
  auto all = AllOp::create(rewriter, loc, rewriter.getI1Type());
  Block *ask = rewriter.createBlock(&all.getCondition(), {}, index, loc);
  Value tile = arith::AddIOp::create(
      rewriter, loc, first,
      arith::MulIOp::create(rewriter, loc, ask->getArgument(0), stride));
  Value yes = arith::ConstantIntOp::create(rewriter, loc, 1, 1);
  Value hasNoWork = arith::SelectOp::create(rewriter, loc, order.isTile(tile),
                                            getIdle(tile), yes);
  YieldOp::create(rewriter, loc, hasNoWork);
  rewriter.setInsertionPointAfter(all);
  Value passesOver =
      arith::AndIOp::create(rewriter, loc, exists, all.getResult());
  scf::ConditionOp::create(rewriter, loc, passesOver, first);
  Block *after = rewriter.createBlock(&search.getAfter(), {}, index, loc);
  Value step = arith::MulIOp::create(
      rewriter, loc, stride,
      arith::ConstantIndexOp::create(rewriter, loc, AllOp::numAsked));
  scf::YieldOp::create(
      rewriter, loc,
      arith::AddIOp::create(rewriter, loc, after->getArgument(0), step)
          .getResult());
  return search.getResult(0);
}

/// A loop over tiles around the body. `getNext` gives the number of the one
/// after a tile, `getNextEarly` that of the one after the body's, at the end
/// of the body or wherever in it. `stride`: between the tiles of a block, where
/// that is known.
void TileLoop::createLoop(function_ref<Value(Value)> getNext,
                          function_ref<Value(Value)> getNextEarly,
                          function_ref<Numbers(Value)> decode, Value stride) {
  findIdle();
  for (Operation *op : moved)
    findBounds(op);
  for (Operation *op : moved)
    findReads(op);
  Type index = rewriter.getIndexType();
  SmallVector<Type> types(4 + bounds.size(), index);
  SmallVector<Location> locs(types.size(), loc);
  // What tile `tile` is, and all that follows from it; whether it is idle.
  auto describe = [&](Value tile) {
    Numbers numbers = decode(order.clamp(tile));
    IRMapping map;
    map.map(body->getArguments(), numbers);
    for (Operation *op : boundOps)
      rewriter.clone(*op, map);
    SmallVector<Value> described = {tile};
    llvm::append_range(described, numbers);
    for (Value bound : bounds)
      described.push_back(map.lookup(bound));
    return std::make_pair(described, isIdle ? map.lookup(isIdle) : Value());
  };
  auto isTile = [&](Value tile) -> Value { return order.isTile(tile); };
  // The first tile from `tile` on that has work, or one after the last.
  auto seek = [&](Value tile) -> SmallVector<Value> {
    if (!isIdle)
      return describe(tile).first;
    OpBuilder::InsertionGuard guard(rewriter);
    auto search = scf::WhileOp::create(rewriter, loc, types, tile);
    Block *before = rewriter.createBlock(&search.getBefore(), {}, index, loc);
    auto [described, passesOver] = describe(before->getArgument(0));
    passesOver = arith::AndIOp::create(
        rewriter, loc, isTile(before->getArgument(0)), passesOver);
    scf::ConditionOp::create(rewriter, loc, passesOver, described);
    Block *after = rewriter.createBlock(&search.getAfter(), {}, types, locs);
    scf::YieldOp::create(rewriter, loc, getNext(after->getArgument(0)));
    return search.getResults();
  };
  Value first = body->getArgument(0);
  // A search takes all lanes.
  bool asksByLanes = llvm::none_of(boundOps, [](Operation *op) {
    return op->walk([](SearchOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  });
  if (isIdle && stride && asksByLanes) {
    first = skipIdle(stride, [&](Value tile) { return describe(tile).second; });
    Value hasNone = arith::XOrIOp::create(
        rewriter, loc, isTile(first),
        arith::ConstantIntOp::create(rewriter, loc, 1, 1));
    ExitIfOp::create(rewriter, loc, hasNone);
  }
  SmallVector<Value> inits = seek(first);
  auto loop = scf::WhileOp::create(rewriter, loc, types, inits);

  Block *before = rewriter.createBlock(&loop.getBefore(), {}, types, locs);
  scf::ConditionOp::create(rewriter, loc, isTile(before->getArgument(0)),
                           before->getArguments());

  Block *after = rewriter.createBlock(&loop.getAfter(), {}, types, locs);
  auto yield = scf::YieldOp::create(rewriter, loc, after->getArguments());
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, yield);
  rewriter.setInsertionPoint(yield);
  Value next = getNextEarly(after->getArgument(0));
  rewriter.setInsertionPoint(yield);
  SmallVector<Value> yielded = seek(next);
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });

  SmallVector<Value> replaced = llvm::to_vector_of<Value>(body->getArguments());
  llvm::append_range(replaced, bounds);
  for (auto [value, carried] :
       llvm::zip_equal(replaced, after->getArguments().drop_front()))
    rewriter.replaceUsesWithIf(value, carried, [&](OpOperand &use) {
      return loop->isProperAncestor(use.getOwner());
    });
  for (Operation *op : llvm::reverse(boundOps))
    if (op->use_empty())
      rewriter.eraseOp(op);
}

void TileLoop::count(bool isEven) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(body->getTerminator());
  Value blocks = gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x);
  if (!isEven)
    order.chooseGroups(blocks);
  auto getNext = [&](Value tile) -> Value {
    return arith::AddIOp::create(rewriter, loc, tile, blocks);
  };
  auto decode = [&](Value tile) {
    return isEven ? order.decodeInRows(tile) : order.decodeInGroups(tile);
  };
  createLoop(getNext, getNext, decode, blocks);
}

/// Where the last copy of a tile stands, or what follows the loops.
Operation *TileLoop::findLastCopy() {
  Operation *place = nullptr;
  for (Operation *op : moved) {
    if (isa<CopyOp>(op))
      place = op;
    else if (isa<scf::ForOp>(op))
      place = op->getNextNode();
  }
  return place;
}

void TileLoop::draw() {
  OpBuilder::InsertionGuard guard(rewriter);
  auto host = kernel->getParentOfType<func::FuncOp>();
  rewriter.setInsertionPointToStart(&host.getBody().front());
  auto counter = memref::AllocOp::create(
      rewriter, loc, MemRefType::get({1}, rewriter.getI32Type()));
  counter->setAttr(WarpDialect::kZeroedAttrName, rewriter.getUnitAttr());
  // As many draws as tiles, and the last one wraps around.
  counter->setAttr(WarpDialect::kRestoredAttrName, rewriter.getUnitAttr());
  counter->setAttr(WarpDialect::kDrawnAttrName, rewriter.getUnitAttr());

  rewriter.setInsertionPoint(body->getTerminator());
  Value blocks = gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x);
  order.chooseGroups(blocks);
  Operation *lastCopy = findLastCopy();
  auto getNext = [&](Value) -> Value {
    return DrawOp::create(rewriter, loc, rewriter.getIndexType(), counter,
                          tiles);
  };
  auto getNextEarly = [&](Value tile) -> Value {
    // Where tiles are passed over several draws may follow each other, and
    // memory takes its time: the first of them as soon as possible.
    if (Operation *place = isIdle ? moved.front() : lastCopy)
      rewriter.setInsertionPoint(place);
    return getNext(tile);
  };
  createLoop(getNext, getNextEarly,
             [&](Value tile) { return order.decodeInGroups(tile); });
}

FailureOr<Scheduler> attn::warp::persistBlocks(RewriterBase &rewriter,
                                               KernelOp kernel,
                                               std::string &reason) {
  assert(!kernel.getResident() && "one loop over tiles");
  // Without a producer nothing would run ahead of the loop.
  FailureOr<SmallVector<CopiedTile>> tiles = matchCopiedTiles(kernel, reason);
  if (failed(tiles) || failed(ProducerSlice(kernel).compute(reason)))
    return failure();
  std::optional<Scheduler> scheduler = kernel.getScheduler();
  if (scheduler == Scheduler::Grid) {
    reason = "the plan leaves the tiles to the grid";
    return failure();
  }
  bool isEven = hasEvenTiles(kernel);
  bool isCounted = scheduler ? *scheduler == Scheduler::Static : isEven;
  if (!isCounted &&
      kernel->getParentOp() != kernel->getParentOfType<func::FuncOp>()) {
    reason = "no function allocates the counter of the tiles";
    return failure();
  }
  TileLoop loop(rewriter, kernel, *tiles);
  if (isCounted)
    loop.count(isEven);
  else
    loop.draw();
  return isCounted ? Scheduler::Static : Scheduler::Dynamic;
}

namespace {
struct WarpPersist final
    : attn::SchedulePass<attn::warp::impl::WarpPersistBase<WarpPersist>,
                         KernelOp, WarpForm::Sync> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    FailureOr<Scheduler> scheduler = persistBlocks(rewriter, kernel, reason);
    if (failed(scheduler))
      return missed(reason);
    passed() << remark::metric("scheduler", stringifyScheduler(*scheduler));
  }
};
} // namespace
