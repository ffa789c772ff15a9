//===- Specialize.cpp - copies move to warps of their own -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel becomes a consumer, which is the kernel as it was with each copy
// replaced by an await, and a producer, which is what is left of the consumer
// when only the copies matter, each in the place of its await: the loops around
// them and the scalars that the copied boxes and the loop bounds are computed
// from. So both roles use the same items in the same order by construction
// (W3).
//
// Which copies share a ring: those of tiles that are used up in the block that
// copies them, of the same view, the same type and the same side of a product
// (the key tiles of a prologue and of all loops, for example). A tile that is
// read in loops behind its copy (the query) has a ring of one slot for itself.
//
// Items are counted: a loop in which a ring is used carries the number of the
// ring's next item.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// Warps of the producer: roles come in groups of 4, one of them is enough.
static constexpr int64_t producerWarps = 4;
/// Registers of the producer's threads: the least there are.
static constexpr int64_t producerRegisters = 24;
/// Threads never use more than 255; the next multiple of 8 below, less what the
/// system keeps.
static constexpr int64_t maxRegisters = 240;
static constexpr int64_t registersPerSM = 64 * 1024;
static constexpr int64_t maxBlockWarps = 32;
/// The dimensions of a tensor map, and the rows that one copy reads.
static constexpr int64_t maxViewRank = 4, maxBoxRows = 256;

int64_t attn::warp::getConsumerRegisters(int64_t consumerWarps) {
  int64_t warps = producerWarps + consumerWarps;
  int64_t atStart = registersPerSM / (warps * layout::warpSize) / 8 * 8;
  int64_t left = atStart * warps - producerWarps * producerRegisters;
  return std::min(left / consumerWarps / 8 * 8, maxRegisters);
}

//===----------------------------------------------------------------------===//
// Match
//===----------------------------------------------------------------------===//

namespace {
/// A copy and what reads its tile: first and last, operations of its block.
struct CopiedTile {
  CopyOp copy;
  AllocOp alloc;
  SmallVector<Operation *> readers;
  Operation *first = nullptr, *last = nullptr;
  /// All readers stand in the block of the copy itself.
  bool isLocal = true;
  /// It is the transposed right operand of its first reader.
  bool isTransposed = false;
};

/// Finds the copies of a kernel; says what is in the way.
class CopyMatcher {
public:
  CopyMatcher(KernelOp kernel, std::string &reason)
      : kernel(kernel), reason(reason) {}

  FailureOr<SmallVector<CopiedTile>> match();

private:
  LogicalResult give(const Twine &text) {
    reason = text.str();
    return failure();
  }
  LogicalResult matchCopy(CopyOp copy, CopiedTile &tile);
  LogicalResult matchReaders(CopiedTile &tile);

  KernelOp kernel;
  std::string &reason;
};
} // namespace

/// The copy of the same slot that follows in the same block, if any.
static CopyOp getNextCopy(CopyOp copy) {
  CopyOp next;
  for (Operation *user : copy.getSlot().getUsers()) {
    auto other = dyn_cast<CopyOp>(user);
    if (!other || other == copy || other->getBlock() != copy->getBlock() ||
        !copy->isBeforeInBlock(other))
      continue;
    if (!next || other->isBeforeInBlock(next))
      next = other;
  }
  return next;
}

LogicalResult CopyMatcher::matchReaders(CopiedTile &tile) {
  Block *block = tile.copy->getBlock();
  CopyOp next = getNextCopy(tile.copy);
  for (Operation *user : tile.alloc.getSlot().getUsers()) {
    Operation *reader = block->findAncestorOpInBlock(*user);
    if (isa<CopyOp>(user) || !reader || !tile.copy->isBeforeInBlock(reader) ||
        (next && !reader->isBeforeInBlock(next)))
      continue;
    tile.readers.push_back(user);
    tile.isLocal &= reader == user;
    if (!tile.first || reader->isBeforeInBlock(tile.first)) {
      tile.first = reader;
      auto mma = dyn_cast<MmaOp>(user);
      tile.isTransposed =
          mma && mma.getTransposeB() && mma.getB() == tile.alloc.getSlot();
    }
    if (!tile.last || tile.last->isBeforeInBlock(reader))
      tile.last = reader;
  }
  if (!tile.first)
    return give("a copied tile is not read in the block that copies it");
  return success();
}

LogicalResult CopyMatcher::matchCopy(CopyOp copy, CopiedTile &tile) {
  tile.copy = copy;
  tile.alloc = copy.getSlot().getDefiningOp<AllocOp>();
  if (!tile.alloc)
    return give("a slot is no warp.alloc");
  if (!copy.getSlot().getType().hasPanels())
    return give("a slot has no panels");
  if (cast<MemRefType>(copy.getView().getType()).getRank() > maxViewRank)
    return give("a view has more dimensions than a tensor map");
  if (copy.getSlot().getType().getShape()[0] > maxBoxRows)
    return give("a tile has more rows than one copy of a tensor map");
  Operation *parent = copy->getParentOp();
  while (isa<scf::ForOp>(parent))
    parent = parent->getParentOp();
  if (parent != kernel)
    return give("a copy stands under something else than loops");
  if (failed(matchReaders(tile)))
    return failure();
  if (!tile.isLocal && copy->getParentOp() != kernel)
    return give("a tile that is copied in a loop is read in an inner region");
  return success();
}

FailureOr<SmallVector<CopiedTile>> CopyMatcher::match() {
  if (kernel.hasRoles() || !kernel.getBodyBlock()->getOps<RingOp>().empty()) {
    reason = "the kernel has rings already";
    return failure();
  }
  if (kernel.getWarps() % 4 != 0 ||
      kernel.getWarps() + producerWarps > maxBlockWarps) {
    reason = "the warps do not form groups of 4, or leave no room for another";
    return failure();
  }
  SmallVector<CopyOp> copies;
  kernel.walk<WalkOrder::PreOrder>(
      [&](CopyOp copy) { copies.push_back(copy); });
  if (copies.empty()) {
    reason = "no tile is copied";
    return failure();
  }
  SmallVector<CopiedTile> tiles;
  size_t numReads = 0;
  SetVector<Operation *> allocs;
  for (CopyOp copy : copies) {
    if (failed(matchCopy(copy, tiles.emplace_back())))
      return failure();
    numReads += tiles.back().readers.size();
    allocs.insert(tiles.back().alloc);
  }
  size_t numUses = 0;
  for (Operation *alloc : allocs)
    numUses += llvm::range_size(alloc->getUses());
  if (numUses != numReads + copies.size()) {
    reason = "a slot is read where it was not copied";
    return failure();
  }
  return tiles;
}

//===----------------------------------------------------------------------===//
// Consumer: copies become awaits
//===----------------------------------------------------------------------===//

/// Copies of local tiles with equal keys share a ring.
using RingKey = std::tuple<Value, Type, int64_t>;

static RingKey getRingKey(CopiedTile &tile) {
  return {tile.copy.getView(), tile.copy.getSlot().getType(),
          tile.isTransposed};
}

namespace {

class Specialization {
public:
  Specialization(RewriterBase &rewriter, KernelOp kernel,
                 SmallVector<CopiedTile> &tiles, int64_t depth)
      : rewriter(rewriter), kernel(kernel), tiles(tiles), depth(depth) {}

  void run();

private:
  Value getRing(CopiedTile &tile);
  void awaitTile(CopiedTile &tile);
  RoleOp createRole(RoleKind kind, int64_t warps, int64_t registers);
  void createConsumer();
  void createProducer();
  void countItems(Block *block, DenseMap<Value, Value> &next);
  scf::ForOp carryCounters(scf::ForOp loop, ArrayRef<Value> rings,
                           DenseMap<Value, Value> &next);

  RewriterBase &rewriter;
  KernelOp kernel;
  SmallVector<CopiedTile> &tiles;
  int64_t depth;
  Operation *lastRing = nullptr;
  DenseMap<RingKey, Value> rings;
  RoleOp consumer;
};
} // namespace

Value Specialization::getRing(CopiedTile &tile) {
  SlotType slot = tile.alloc.getSlot().getType();
  RingKey key = getRingKey(tile);
  if (tile.isLocal)
    if (Value ring = rings.lookup(key))
      return ring;
  OpBuilder::InsertionGuard guard(rewriter);
  if (lastRing)
    rewriter.setInsertionPointAfter(lastRing);
  else
    rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  bool isRefilled = tile.isLocal && llvm::any_of(tiles, [&](CopiedTile &other) {
                      return isa<scf::ForOp>(other.copy->getParentOp()) &&
                             getRingKey(other) == key;
                    });
  auto type = RingType::get(kernel.getContext(), isRefilled ? depth : 1,
                            slot.getShape(), slot.getElementType(),
                            slot.getPanelBytes());
  auto ring = RingOp::create(rewriter, tile.alloc.getLoc(), type,
                             /*offset=*/nullptr);
  lastRing = ring;
  if (tile.isLocal)
    rings[key] = ring.getRing();
  return ring.getRing();
}

/// Await in front of the first reader, release behind the last. In front of the
/// await stands its copy, until the producer takes it over.
void Specialization::awaitTile(CopiedTile &tile) {
  Value ring = getRing(tile);
  Location loc = tile.copy.getLoc();
  rewriter.setInsertionPoint(tile.first);
  // The number follows in `countItems`.
  Value number = arith::ConstantIndexOp::create(rewriter, loc, 0);
  SlotType slot = tile.alloc.getSlot().getType();
  CopyAsyncOp::create(rewriter, loc, tile.copy.getView(),
                      tile.copy.getIndices(), ring, number,
                      /*condition=*/Value());
  auto await = AwaitOp::create(rewriter, loc, slot, ring, number);
  rewriter.setInsertionPointAfter(tile.last);
  ReleaseOp::create(rewriter, loc, await.getSlot());
  for (Operation *reader : tile.readers)
    rewriter.modifyOpInPlace(reader, [&] {
      reader->replaceUsesOfWith(tile.alloc.getSlot(), await.getSlot());
    });
}

/// The rings that are used in a block and below, in order of first use.
static SetVector<Value> getUsedRings(Block *block) {
  SetVector<Value> rings;
  block->walk<WalkOrder::PreOrder>(
      [&](AwaitOp await) { rings.insert(await.getRing()); });
  return rings;
}

/// A loop that carries the item numbers of `rings` too.
scf::ForOp Specialization::carryCounters(scf::ForOp loop, ArrayRef<Value> rings,
                                         DenseMap<Value, Value> &next) {
  SmallVector<Value> inits;
  for (Value ring : rings)
    inits.push_back(next[ring]);
  auto yieldSame = [](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
    return SmallVector<Value>(carried.begin(), carried.end());
  };
  FailureOr<LoopLikeOpInterface> replaced = loop.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, yieldSame);
  assert(succeeded(replaced) && "scf.for takes more carried values");
  return cast<scf::ForOp>(replaced->getOperation());
}

/// Numbers the awaits of a block; `next` holds the number of each ring's next
/// item.
void Specialization::countItems(Block *block, DenseMap<Value, Value> &next) {
  for (Operation &op : llvm::make_early_inc_range(*block)) {
    if (auto await = dyn_cast<AwaitOp>(op)) {
      Value number = next[await.getRing()];
      rewriter.replaceOp(await.getItem().getDefiningOp(), number);
      rewriter.setInsertionPointAfter(await);
      Location loc = await.getLoc();
      Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
      next[await.getRing()] = arith::AddIOp::create(rewriter, loc, number, one);
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      continue;
    SetVector<Value> used = getUsedRings(loop.getBody());
    if (used.empty())
      continue;
    unsigned numOld = loop.getInitArgs().size();
    loop = carryCounters(loop, used.getArrayRef(), next);
    for (auto [number, ring] : llvm::enumerate(used))
      next[ring] = loop.getRegionIterArg(numOld + number);
    countItems(loop.getBody(), next);
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    rewriter.modifyOpInPlace(yield, [&] {
      for (auto [number, ring] : llvm::enumerate(used))
        yield.setOperand(numOld + number, next[ring]);
    });
    for (auto [number, ring] : llvm::enumerate(used))
      next[ring] = loop.getResult(numOld + number);
  }
}

RoleOp Specialization::createRole(RoleKind kind, int64_t warps,
                                  int64_t registers) {
  auto role = RoleOp::create(rewriter, kernel.getLoc(), kind, warps,
                             rewriter.getI64IntegerAttr(registers));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.createBlock(&role.getBody());
  YieldOp::create(rewriter, kernel.getLoc());
  return role;
}

static bool isWarpValue(Type type) {
  return isa<FragType, SlotType, RingType, PendingType>(type);
}

/// Whether an operation may stand in front of the roles, for both: scalars,
/// computed without effects other than reads.
static bool isShared(Operation &op) {
  WalkResult walk = op.walk([&](Operation *inner) {
    bool isScalar = llvm::none_of(inner->getOperandTypes(), isWarpValue) &&
                    llvm::none_of(inner->getResultTypes(), isWarpValue) &&
                    !isa<WarpDialect>(inner->getDialect());
    bool onlyReads = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                     isMemoryEffectFree(inner) ||
                     hasSingleEffect<MemoryEffects::Read>(inner);
    return isScalar && onlyReads ? WalkResult::advance()
                                 : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

/// Everything but rings and scalars moves into the consumer.
void Specialization::createConsumer() {
  Block *body = kernel.getBodyBlock();
  SmallVector<Operation *> moved;
  llvm::SmallPtrSet<Operation *, 16> isMoved;
  for (Operation &op : body->without_terminator()) {
    if (isa<RingOp>(op))
      continue;
    bool dependsOnMoved = false;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *def = operand.getDefiningOp();
        dependsOnMoved |= def && isMoved.contains(def);
      }
    });
    if (isShared(op) && !dependsOnMoved)
      continue;
    moved.push_back(&op);
    isMoved.insert(&op);
  }
  rewriter.setInsertionPoint(body->getTerminator());
  int64_t warps = kernel.getWarps();
  consumer = createRole(RoleKind::Consumer, warps, getConsumerRegisters(warps));
  Operation *end = consumer.getBodyBlock()->getTerminator();
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, end);
  kernel.setWarps(warps + producerWarps);
}

//===----------------------------------------------------------------------===//
// Producer: what the awaits depend on
//===----------------------------------------------------------------------===//

namespace {
/// The operations in `scope` (the consumer, or the kernel as it was) that its
/// copies depend on, and the carried values among them.
class ProducerSlice {
public:
  explicit ProducerSlice(Operation *scope) : scope(scope) {}

  /// Fails if a box depends on what fragments or effects gave.
  LogicalResult compute(std::string &reason);
  /// Copies of `from`'s operations go to the insertion point.
  void clone(OpBuilder &builder, Block *from, IRMapping &map);

private:
  void cloneLoop(OpBuilder &builder, scf::ForOp loop, IRMapping &map);
  void needOp(Operation *op);
  void need(Value value);

  Operation *scope;
  DenseSet<Operation *> ops;
  DenseSet<Value> values;
  SmallVector<Value> worklist;
};
} // namespace

void ProducerSlice::need(Value value) {
  if (scope->isAncestor(value.getParentRegion()->getParentOp()) &&
      values.insert(value).second)
    worklist.push_back(value);
}

/// An operation that runs needs the loops around it to run.
void ProducerSlice::needOp(Operation *op) {
  for (; op != scope; op = op->getParentOp()) {
    if (!ops.insert(op).second)
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      need(loop.getLowerBound());
      need(loop.getUpperBound());
      need(loop.getStep());
    }
  }
}

LogicalResult ProducerSlice::compute(std::string &reason) {
  scope->walk([&](Operation *op) {
    if (!isa<CopyOp, CopyAsyncOp>(op))
      return;
    needOp(op);
    for (Value operand : op->getOperands())
      if (!isWarpValue(operand.getType()))
        need(operand);
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (owner == scope)
        continue;
      auto loop = dyn_cast<scf::ForOp>(owner);
      if (!loop) {
        reason = "a copied box depends on a value of a region that is no loop";
        return failure();
      }
      needOp(loop);
      if (argument == loop.getInductionVar())
        continue;
      need(loop.getTiedLoopInit(argument)->get());
      need(loop.getTiedLoopYieldedValue(argument)->get());
      continue;
    }
    Operation *op = value.getDefiningOp();
    needOp(op);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      need(loop.getTiedLoopRegionIterArg(cast<OpResult>(value)));
      continue;
    }
    if (!isShared(*op)) {
      reason = "a copied box depends on more than scalars";
      return failure();
    }
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
          need(operand);
    });
  }
  return success();
}

/// The loop with the carried values that are needed.
void ProducerSlice::cloneLoop(OpBuilder &builder, scf::ForOp loop,
                              IRMapping &map) {
  SmallVector<unsigned> kept;
  SmallVector<Value> inits;
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!values.contains(argument))
      continue;
    kept.push_back(number);
    inits.push_back(map.lookupOrDefault(loop.getInitArgs()[number]));
  }
  auto result = scf::ForOp::create(
      builder, loop.getLoc(), map.lookupOrDefault(loop.getLowerBound()),
      map.lookupOrDefault(loop.getUpperBound()),
      map.lookupOrDefault(loop.getStep()), inits,
      [](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(result.getBody());
  map.map(loop.getInductionVar(), result.getInductionVar());
  for (auto [number, argument] :
       llvm::zip_equal(kept, result.getRegionIterArgs()))
    map.map(loop.getRegionIterArgs()[number], argument);
  clone(builder, loop.getBody(), map);
  SmallVector<Value> yielded;
  for (auto [number, value] : llvm::zip_equal(kept, result.getResults())) {
    yielded.push_back(map.lookupOrDefault(loop.getYieldedValues()[number]));
    map.map(loop.getResult(number), value);
  }
  scf::YieldOp::create(builder, loop.getLoc(), yielded);
}

void ProducerSlice::clone(OpBuilder &builder, Block *from, IRMapping &map) {
  for (Operation &op : from->without_terminator()) {
    if (!ops.contains(&op))
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      cloneLoop(builder, loop, map);
    else
      builder.clone(op, map);
  }
}

/// Takes the copies over from the consumer.
void Specialization::createProducer() {
  ProducerSlice slice(consumer);
  std::string reason;
  [[maybe_unused]] LogicalResult result = slice.compute(reason);
  assert(succeeded(result) && "checked before the kernel was changed");
  rewriter.setInsertionPoint(consumer);
  RoleOp producer =
      createRole(RoleKind::Producer, producerWarps, producerRegisters);
  rewriter.setInsertionPoint(producer.getBodyBlock()->getTerminator());
  IRMapping map;
  slice.clone(rewriter, consumer.getBodyBlock(), map);
  consumer.walk([&](CopyAsyncOp copy) { rewriter.eraseOp(copy); });
}

void Specialization::run() {
  for (CopiedTile &tile : tiles)
    awaitTile(tile);
  SetVector<Operation *> allocs;
  for (CopiedTile &tile : tiles) {
    allocs.insert(tile.alloc);
    rewriter.eraseOp(tile.copy);
  }
  for (Operation *alloc : allocs)
    rewriter.eraseOp(alloc);
  createConsumer();
  DenseMap<Value, Value> next;
  rewriter.setInsertionPointToStart(consumer.getBodyBlock());
  Value zero = arith::ConstantIndexOp::create(rewriter, kernel.getLoc(), 0);
  for (Value ring : getUsedRings(consumer.getBodyBlock()))
    next[ring] = zero;
  countItems(consumer.getBodyBlock(), next);
  // Nobody asks for the number behind the last item.
  for (auto &[ring, number] : next) {
    Operation *sum = number.getDefiningOp<arith::AddIOp>();
    if (!sum || !sum->use_empty())
      continue;
    Operation *one = sum->getOperand(1).getDefiningOp();
    rewriter.eraseOp(sum);
    rewriter.eraseOp(one);
  }
  createProducer();
}

LogicalResult attn::warp::specializeCopies(RewriterBase &rewriter,
                                           KernelOp kernel, int64_t depth,
                                           std::string &reason) {
  FailureOr<SmallVector<CopiedTile>> tiles =
      CopyMatcher(kernel, reason).match();
  if (failed(tiles))
    return failure();
  if (failed(ProducerSlice(kernel).compute(reason)))
    return failure();
  Specialization(rewriter, kernel, *tiles, depth).run();
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpSpecialize final
    : attn::warp::impl::WarpSpecializeBase<WarpSpecialize> {
  using Base::Base;

  void runOnOperation() override {
    if (depth < 0) {
      getOperation().emitError("warp-specialize: got depth ")
          << int64_t(depth)
          << ", expected at least 1, or 0 for the kernel's stages";
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](KernelOp kernel) {
      int64_t stages =
          depth != 0 ? int64_t(depth) : kernel.getStages().value_or(1);
      std::string reason;
      if (failed(specializeCopies(rewriter, kernel, stages, reason)))
        remark::missed(
            kernel.getLoc(),
            remark::RemarkOpts::name("Specialize").category("warp-specialize"))
            << reason;
    });
  }
};
} // namespace
