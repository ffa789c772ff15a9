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
// block had come from the tile's number. The loop carries them, so that
// `warp-specialize` can leave the divisions to the producer.
//
// Handing out tiles in advance pays only if they take equally long: then the
// next tile is the one that comes as many later as there are blocks, and the
// first number varies fastest. Where the bounds of a loop depend on the block's
// numbers (a causal mask) a block draws its next tile from a counter that all
// blocks share, and does so late, at the last copy of the tile before: the
// sooner it is done the less is known about who will be free first.
//
// The order of tiles that are drawn: longest first, which is the order of x
// (the tile room sees to it). But the keys that blocks read at the same time
// should stay in the cache, so heads (all combinations of y and z) come in
// groups, and x goes from end to end in one group after the other:
//
//   tile    = group * (G * nx) + x * size + head in group
//
// with `size` = G, or what is left of the heads in the last group. G is as many
// heads as have about 32 MiB of copied tiles, and at most 32, for where all is
// small the cache is filled for the first time, better not all at once.
//
//===----------------------------------------------------------------------===//

#include "CopiedTiles.h"
#include "ProducerSlice.h"

#include "attn/Dialect/Warp/IR/HostMemory.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include <array>

namespace attn::warp {
#define GEN_PASS_DEF_WARPPERSIST
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Whether a value is computed from the block's numbers.
static bool dependsOnBlock(KernelOp kernel, Value value) {
  SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (owner == kernel)
        return true;
      if (kernel->isAncestor(owner))
        values.insert(owner->operand_begin(), owner->operand_end());
      continue;
    }
    Operation *op = values[i].getDefiningOp();
    if (kernel->isAncestor(op))
      op->walk([&](Operation *inner) {
        values.insert(inner->operand_begin(), inner->operand_end());
      });
  }
  return false;
}

static bool isBalanced(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](scf::ForOp loop) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
      if (dependsOnBlock(kernel, bound))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// value = quotient * divisor + remainder, of numbers that are not negative.
static std::pair<Value, Value> divide(OpBuilder &b, Location loc, Value value,
                                      Value divisor) {
  Value quotient = b.createOrFold<arith::DivUIOp>(loc, value, divisor);
  Value below = b.createOrFold<arith::MulIOp>(loc, quotient, divisor);
  return {quotient, b.createOrFold<arith::SubIOp>(loc, value, below)};
}

namespace {
/// The blocks' numbers as tiles, and what has to move into the loop over them.
class TileLoop {
public:
  TileLoop(RewriterBase &rewriter, KernelOp kernel, ArrayRef<CopiedTile> tiles);

  /// Block n takes the tiles n, n + number of blocks, …
  void count();
  /// Block n starts with tile n and draws the others.
  void draw();

private:
  using Numbers = std::array<Value, 3>;

  void createLoop(function_ref<Value(Value)> getNext,
                  function_ref<Numbers(Value)> decode);
  Numbers decodeInRows(Value tile);
  Numbers decodeInGroups(Value tile);
  void chooseGroup();
  Value toInt(Value index);
  Value toIndex(Value value);
  Value constant(int64_t value);
  Operation *findLastCopy();

  RewriterBase &rewriter;
  KernelOp kernel;
  Location loc;
  Block *body;
  SmallVector<Operation *> moved;
  llvm::MapVector<Value, SlotType> views; // of the tiles that loops copy
  Value nx, ny, nz, tiles;
  Value group; // heads, i32
};
} // namespace

TileLoop::TileLoop(RewriterBase &rewriter, KernelOp kernel,
                   ArrayRef<CopiedTile> copied)
    : rewriter(rewriter), kernel(kernel), loc(kernel.getLoc()),
      body(kernel.getBodyBlock()), nx(kernel.getGridX()), ny(kernel.getGridY()),
      nz(kernel.getGridZ()) {
  for (Operation &op : body->without_terminator())
    if (!isa<AllocOp>(op))
      moved.push_back(&op);
  for (CopiedTile tile : copied)
    if (isa<scf::ForOp>(tile.copy->getParentOp()))
      views.insert({tile.copy.getView(), tile.copy.getSlot().getType()});
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(kernel);
  tiles = rewriter.createOrFold<arith::MulIOp>(loc, nx, ny);
  tiles = rewriter.createOrFold<arith::MulIOp>(loc, tiles, nz);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  rewriter.modifyOpInPlace(kernel, [&] {
    kernel.getGridXMutable().assign(tiles);
    kernel.getGridYMutable().assign(one);
    kernel.getGridZMutable().assign(one);
    kernel.setResident(true);
  });
}

/// A loop over tiles around the body. `getNext` gives the next one's number, at
/// the end of the body or wherever in it.
void TileLoop::createLoop(function_ref<Value(Value)> getNext,
                          function_ref<Numbers(Value)> decode) {
  Value firstTile = body->getArgument(0);
  SmallVector<Value> inits = {firstTile};
  llvm::append_range(inits, decode(firstTile));
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  SmallVector<Location> locs(types.size(), loc);
  auto loop = scf::WhileOp::create(rewriter, loc, types, inits);

  Block *before = rewriter.createBlock(&loop.getBefore(), {}, types, locs);
  Value isTile = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                       before->getArgument(0), tiles);
  scf::ConditionOp::create(rewriter, loc, isTile, before->getArguments());

  Block *after = rewriter.createBlock(&loop.getAfter(), {}, types, locs);
  auto yield = scf::YieldOp::create(rewriter, loc, after->getArguments());
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, yield);
  auto numbers = after->getArguments().drop_front();
  for (auto [argument, number] : llvm::zip_equal(body->getArguments(), numbers))
    rewriter.replaceUsesWithIf(argument, number, [&](OpOperand &use) {
      return loop->isProperAncestor(use.getOwner());
    });
  rewriter.setInsertionPoint(yield);
  SmallVector<Value> yielded = {getNext(after->getArgument(0))};
  rewriter.setInsertionPoint(yield);
  llvm::append_range(yielded, decode(yielded.front()));
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });
}

void TileLoop::count() {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(body->getTerminator());
  Value blocks = gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x);
  createLoop(
      [&](Value tile) -> Value {
        return arith::AddIOp::create(rewriter, loc, tile, blocks);
      },
      [&](Value tile) { return decodeInRows(tile); });
}

Value TileLoop::toInt(Value index) {
  return rewriter.createOrFold<arith::IndexCastOp>(loc, rewriter.getI32Type(),
                                                   index);
}

Value TileLoop::toIndex(Value value) {
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(),
                                    value);
}

Value TileLoop::constant(int64_t value) {
  return arith::ConstantIntOp::create(rewriter, loc, value, 32);
}

/// Heads of a group: how many have what loops copy in `cacheKiB`, `ratio` of
/// them the same.
void TileLoop::chooseGroup() {
  constexpr int64_t cacheKiB = 32 * 1024, maxGroup = 32, kib = 1024;
  Value heads = toInt(rewriter.createOrFold<arith::MulIOp>(loc, ny, nz));
  Value size = constant(1), copied = constant(1);
  for (auto [view, slot] : views) {
    auto type = cast<MemRefType>(view.getType());
    auto sizeOf = [&, memory = view](int64_t dim) {
      return toInt(rewriter.createOrFold<memref::DimOp>(loc, memory, dim));
    };
    // In pieces of 16 bytes, so that lengths of 2^24 do not overflow.
    int64_t piecesPerRow =
        slot.getLayout().bytes() / slot.getShape()[0] / layout::chunkBytes;
    Value pieces = arith::MulIOp::create(
        rewriter, loc, sizeOf(type.getRank() - 2), constant(piecesPerRow));
    Value bytes = arith::DivUIOp::create(rewriter, loc, pieces,
                                         constant(kib / layout::chunkBytes));
    size = arith::AddIOp::create(rewriter, loc, size, bytes);
    copied = constant(1);
    for (int64_t dim = 0; dim < type.getRank() - 2; ++dim)
      copied = arith::MulIOp::create(rewriter, loc, copied, sizeOf(dim));
  }
  copied = arith::MaxUIOp::create(rewriter, loc, copied, constant(1));
  Value ratio = arith::DivUIOp::create(rewriter, loc, heads, copied);
  group = arith::DivUIOp::create(rewriter, loc, constant(cacheKiB), size);
  group = arith::MulIOp::create(rewriter, loc, group, ratio);
  group = arith::MinUIOp::create(rewriter, loc, group, constant(maxGroup));
  group = arith::MaxUIOp::create(rewriter, loc, group, ratio);
  group = arith::MaxUIOp::create(rewriter, loc, group, constant(1));
}

TileLoop::Numbers TileLoop::decodeInRows(Value tile) {
  auto [outer, x] = divide(rewriter, loc, toInt(tile), toInt(nx));
  auto [z, y] = divide(rewriter, loc, outer, toInt(ny));
  return {toIndex(x), toIndex(y), toIndex(z)};
}

TileLoop::Numbers TileLoop::decodeInGroups(Value tile) {
  auto minus = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(rewriter, loc, a, b);
  };
  auto times = [&](Value a, Value b) -> Value {
    return arith::MulIOp::create(rewriter, loc, a, b);
  };
  Value number = toInt(tile), columns = toInt(nx), heads = toInt(ny);
  Value allHeads = times(heads, toInt(nz));
  auto [groupNumber, inGroup] =
      divide(rewriter, loc, number, times(group, columns));
  Value first = times(groupNumber, group);
  Value size =
      arith::MinUIOp::create(rewriter, loc, group, minus(allHeads, first));
  // Behind the last tile there are no heads left.
  size = arith::MaxSIOp::create(rewriter, loc, size, constant(1));
  auto [x, inSize] = divide(rewriter, loc, inGroup, size);
  Value head = arith::AddIOp::create(rewriter, loc, first, inSize);
  auto [z, y] = divide(rewriter, loc, head, heads);
  return {toIndex(x), toIndex(y), toIndex(z)};
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
  counter->setAttr(kZeroedAttrName, rewriter.getUnitAttr());
  // As many draws as tiles, and the last one wraps around.
  counter->setAttr(kRestoredAttrName, rewriter.getUnitAttr());

  rewriter.setInsertionPoint(body->getTerminator());
  chooseGroup();
  Operation *lastCopy = findLastCopy();
  createLoop(
      [&](Value) -> Value {
        if (lastCopy)
          rewriter.setInsertionPoint(lastCopy);
        return DrawOp::create(rewriter, loc, rewriter.getIndexType(), counter,
                              tiles);
      },
      [&](Value tile) { return decodeInGroups(tile); });
}

LogicalResult attn::warp::persistBlocks(RewriterBase &rewriter, KernelOp kernel,
                                        std::string &reason) {
  Block *body = kernel.getBodyBlock();
  if (kernel.hasRoles() || !body->getOps<RingOp>().empty() ||
      kernel.getResident()) {
    reason = "the kernel has rings already, or a loop over tiles";
    return failure();
  }
  // Without a producer nothing would run ahead of the loop.
  FailureOr<SmallVector<CopiedTile>> tiles = matchCopiedTiles(kernel, reason);
  if (failed(tiles) || failed(ProducerSlice(kernel).compute(reason)))
    return failure();
  bool isEven = isBalanced(kernel);
  if (!isEven &&
      kernel->getParentOp() != kernel->getParentOfType<func::FuncOp>()) {
    reason = "blocks differ in work, and no function allocates their counter";
    return failure();
  }
  TileLoop loop(rewriter, kernel, *tiles);
  if (isEven)
    loop.count();
  else
    loop.draw();
  return success();
}

namespace {
struct WarpPersist final : attn::warp::impl::WarpPersistBase<WarpPersist> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](KernelOp kernel) {
      std::string reason;
      if (failed(persistBlocks(rewriter, kernel, reason)))
        remark::missed(
            kernel.getLoc(),
            remark::RemarkOpts::name("Persist").category("warp-persist"))
            << reason;
    });
  }
};
} // namespace
