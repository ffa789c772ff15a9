//===- Specialize.cpp - copies move to warps of their own -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel becomes a consumer, the role @softmax, which is the kernel as it
// was with each copy replaced by an await, and a producer, the role @load,
// which is what is left of the consumer when only the copies matter, each in
// the place of its await: the loops around them and the scalars that the copied
// boxes and the loop bounds are computed from. So both roles use the same items
// in the same order by construction (W3).
//
// Which copies share a ring: those of tiles that are used up in the block that
// copies them, of the same view, the same type and the same side of a product
// (the key tiles of a prologue and of all loops, for example). A tile that is
// read in loops after its copy (the query) has a ring of one slot for itself.
//
// Items are counted: a loop in which a ring is used carries the number of the
// ring's next item, one number for all rings that are used in step.
//
// Of a loop over tiles (`warp-persist`) only the producer knows which tile
// comes next. It sends what the loop carries, the consumer takes it: item 0
// before the loop, item n + 1 at the end of the body that has tile n.
//
//===----------------------------------------------------------------------===//

#include "CopiedTiles.h"
#include "PassedBlocks.h"
#include "ProducerSlice.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/RoleRegisters.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <map>

namespace attn::warp {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

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

/// The roles.
constexpr llvm::StringLiteral producerName = "load", consumerName = "softmax";

class Specialization {
public:
  Specialization(RewriterBase &rewriter, KernelOp kernel,
                 SmallVector<CopiedTile> &tiles, int64_t depth)
      : rewriter(rewriter), kernel(kernel), tiles(tiles), depth(depth) {}

  /// `reason` says why groups go through blocks that only others see.
  void run(std::string &reason);

private:
  ArrayAttr getDrainers() {
    return rewriter.getArrayAttr(
        FlatSymbolRefAttr::get(kernel.getContext(), consumerName));
  }
  Value getRing(CopiedTile &tile);
  void awaitTile(CopiedTile &tile, Value ring);
  void exchange(AllocOp alloc);
  RoleOp createRole(StringRef name, RoleKind kind, int64_t warps,
                    int64_t registers);
  void createConsumer();
  void createProducer();
  void takeNumbers();
  void takeNumbers(Operation *user, MutableOperandRange carried, Value ring);
  void dropPublications();
  void moveToProducer(RoleOp producer);
  void countItems(Block *block, DenseMap<Value, Value> &next);
  LoopLikeOpInterface carryCounters(LoopLikeOpInterface loop,
                                    ArrayRef<Value> rings,
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
  auto ring =
      RingOp::create(rewriter, tile.alloc.getLoc(), type,
                     FlatSymbolRefAttr::get(kernel.getContext(), producerName),
                     getDrainers(), /*offset=*/nullptr);
  lastRing = ring;
  if (tile.isLocal)
    rings[key] = ring.getRing();
  return ring.getRing();
}

/// Whether lanes read a tile, in each iteration of a loop. A release behind
/// such loads may overtake them: an mbarrier is told at once, while loads wait
/// until the memory pipe has taken the products before them (seen on an H100:
/// weights made with the lse of two blocks later). At the end of an iteration
/// products have been issued whose operands were made of what was loaded.
static bool isReadByLanes(const CopiedTile &tile) {
  return isa<scf::ForOp>(tile.copy->getParentOp()) &&
         llvm::any_of(tile.readers, llvm::IsaPred<LoadFragOp>);
}

/// What a release behind the loads of lanes stands in front of: the end of the
/// block or, of a tile of its own, the next loop, through which no item is
/// held.
static Operation *findEnd(CopiedTile &tile) {
  bool isTile = llvm::any_of(tile.readers, [](Operation *reader) {
    auto load = dyn_cast<LoadFragOp>(reader);
    return load && load.readsTile();
  });
  for (Operation *op = tile.last->getNextNode(); isTile && op;
       op = op->getNextNode())
    if (isa<scf::ForOp, scf::WhileOp>(op))
      return op;
  return isTile || isReadByLanes(tile) ? tile.last->getBlock()->getTerminator()
                                       : nullptr;
}

/// Await before the first reader, release after the last. Before the
/// await stands its copy, until the producer takes it over.
void Specialization::awaitTile(CopiedTile &tile, Value ring) {
  Location loc = tile.copy.getLoc();
  rewriter.setInsertionPoint(tile.first);
  // The number follows in `countItems`.
  Value number = arith::ConstantIndexOp::create(rewriter, loc, 0);
  SlotType slot = tile.alloc.getSlot().getType();
  CopyAsyncOp::create(
      rewriter, loc, tile.copy.getView(), tile.copy.getIndices(), ring, number,
      /*condition=*/Value(), CopyAtom::TMA, tile.copy.getBoxes());
  auto await = AwaitOp::create(rewriter, loc, slot, ring, number);
  if (Operation *end = findEnd(tile))
    rewriter.setInsertionPoint(end);
  else
    rewriter.setInsertionPointAfter(tile.last);
  ReleaseOp::create(rewriter, loc, await.getSlot());
  for (Operation *reader : tile.readers)
    rewriter.modifyOpInPlace(reader, [&] {
      reader->replaceUsesOfWith(tile.alloc.getSlot(), await.getSlot());
    });
}

/// The product that reads what a store wrote: it follows in the block, before
/// the next store. Null if there is none.
static ProductOp findReader(StoreFragOp store) {
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode())
    if (llvm::is_contained(op->getOperands(), store.getTarget()))
      return dyn_cast<ProductOp>(op);
  return {};
}

/// Whether each tile that the kernel writes to a slot is read by one product.
static LogicalResult matchExchanges(KernelOp kernel, std::string &reason) {
  for (auto alloc : kernel.getBodyBlock()->getOps<AllocOp>()) {
    SmallVector<StoreFragOp> stores;
    int64_t numUsers = 0;
    for (Operation *user : alloc.getSlot().getUsers()) {
      ++numUsers;
      if (auto store = dyn_cast<StoreFragOp>(user))
        stores.push_back(store);
    }
    int64_t numStores = stores.size();
    if (numStores != 0 &&
        (numUsers != 2 * numStores || !llvm::all_of(stores, findReader))) {
      reason = "a tile that the kernel writes to a slot is not read by one "
               "product that follows";
      return failure();
    }
  }
  return success();
}

/// What the consumer writes for itself goes through a ring that it fills and
/// drains.
void Specialization::exchange(AllocOp alloc) {
  SlotType slot = alloc.getSlot().getType();
  rewriter.setInsertionPointAfter(lastRing);
  auto self = FlatSymbolRefAttr::get(kernel.getContext(), consumerName);
  auto type = RingType::get(kernel.getContext(), 1, slot.getShape(),
                            slot.getElementType(), slot.getPanelBytes());
  auto ring = RingOp::create(rewriter, alloc.getLoc(), type, self,
                             getDrainers(), /*offset=*/nullptr);
  lastRing = ring;
  SmallVector<StoreFragOp> stores;
  for (Operation *user : alloc.getSlot().getUsers())
    if (auto store = dyn_cast<StoreFragOp>(user))
      stores.push_back(store);
  for (StoreFragOp store : stores) {
    Location loc = store.getLoc();
    Operation *reader = findReader(store);
    rewriter.setInsertionPoint(store);
    Value number = arith::ConstantIndexOp::create(rewriter, loc, 0);
    StoreFragOp::create(rewriter, loc, store.getValue(), ring, number);
    rewriter.eraseOp(store);
    rewriter.setInsertionPoint(reader);
    number = arith::ConstantIndexOp::create(rewriter, loc, 0);
    auto await = AwaitOp::create(rewriter, loc, slot, ring, number);
    rewriter.modifyOpInPlace(reader, [&] {
      reader->replaceUsesOfWith(alloc.getSlot(), await.getSlot());
    });
    rewriter.setInsertionPointAfter(reader);
    ReleaseOp::create(rewriter, loc, await.getSlot());
  }
  rewriter.eraseOp(alloc);
}

/// The ring that the consumer reads, and the number of the item.
static std::pair<Value, Value> getUse(Operation *op) {
  if (auto await = dyn_cast<AwaitOp>(op))
    return {await.getRing(), await.getItem()};
  if (auto receive = dyn_cast<ReceiveOp>(op))
    return {receive.getRing(), receive.getItem()};
  return {};
}

/// The rings that are used in a block and below, in order of first use.
static SetVector<Value> getUsedRings(Block *block) {
  SetVector<Value> rings;
  block->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (Value ring = getUse(op).first)
      rings.insert(ring);
  });
  return rings;
}

/// A loop that carries the item numbers of `rings` too.
LoopLikeOpInterface
Specialization::carryCounters(LoopLikeOpInterface loop, ArrayRef<Value> rings,
                              DenseMap<Value, Value> &next) {
  SmallVector<Value> inits;
  for (Value ring : rings)
    inits.push_back(next[ring]);
  if (auto tiles = dyn_cast<scf::WhileOp>(*loop))
    return addCarriedValues(rewriter, tiles, inits);
  auto yieldSame = [](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
    return SmallVector<Value>(carried.begin(), carried.end());
  };
  FailureOr<LoopLikeOpInterface> replaced = loop.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, yieldSame);
  assert(succeeded(replaced) && "scf.for takes more carried values");
  return *replaced;
}

/// The block of a loop that uses rings.
static Block *getLoopBody(LoopLikeOpInterface loop) {
  if (auto tiles = dyn_cast<scf::WhileOp>(*loop))
    return tiles.getAfterBody();
  return cast<scf::ForOp>(*loop).getBody();
}

/// How often a ring is used in a block: before, in and after each loop in it.
/// What a role fills for itself it may come to be ahead of
/// (`warp-delay-exchange`).
static std::string describeUses(Block *block, Value ring) {
  std::string text = getFiller(ring) == consumerName ? "own " : "";
  int64_t numUses = 0;
  for (Operation &op : *block) {
    numUses += getUse(&op).first == ring;
    if (!isa<scf::ForOp, scf::WhileOp>(op))
      continue;
    Block *body = getLoopBody(cast<LoopLikeOpInterface>(op));
    text += std::to_string(numUses) + "(" + describeUses(body, ring) + ")";
    numUses = 0;
  }
  return text + std::to_string(numUses);
}

/// Of each ring the first one that is used in step with it in the body of a
/// loop and comes with the same number.
static DenseMap<Value, Value> groupRings(const SetVector<Value> &rings,
                                         Block *body,
                                         const DenseMap<Value, Value> &next) {
  std::map<std::pair<void *, std::string>, Value> groups;
  DenseMap<Value, Value> firstOf;
  for (Value ring : rings) {
    auto key = std::pair(next.lookup(ring).getAsOpaquePointer(),
                         describeUses(body, ring));
    firstOf[ring] = groups.try_emplace(std::move(key), ring).first->second;
  }
  return firstOf;
}

/// Numbers the uses of items in a block; `next` holds the number of each ring's
/// next item.
void Specialization::countItems(Block *block, DenseMap<Value, Value> &next) {
  // Rings in step have the same numbers, as values, too.
  DenseMap<Value, Value> successors;
  for (Operation &op : llvm::make_early_inc_range(*block)) {
    if (auto store = dyn_cast<StoreFragOp>(op)) {
      // The number of the await that follows.
      rewriter.replaceOp(store.getItem().getDefiningOp(),
                         next[store.getTarget()]);
      continue;
    }
    if (auto [ring, item] = getUse(&op); ring) {
      Value number = next[ring];
      rewriter.replaceOp(item.getDefiningOp(), number);
      Value &successor = successors[number];
      if (!successor) {
        rewriter.setInsertionPointAfter(&op);
        Location loc = op.getLoc();
        Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
        successor = arith::AddIOp::create(rewriter, loc, number, one);
      }
      next[ring] = successor;
      continue;
    }
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    if (!loop || !isa<scf::ForOp, scf::WhileOp>(op))
      continue;
    SetVector<Value> used = getUsedRings(getLoopBody(loop));
    if (used.empty())
      continue;
    DenseMap<Value, Value> firstOf = groupRings(used, getLoopBody(loop), next);
    SmallVector<Value> counted;
    for (Value ring : used)
      if (firstOf[ring] == ring)
        counted.push_back(ring);
    loop = carryCounters(loop, counted, next);
    Block *body = getLoopBody(loop);
    auto counters = body->getArguments().take_back(counted.size());
    for (auto [ring, counter] : llvm::zip_equal(counted, counters))
      next[ring] = counter;
    for (Value ring : used)
      next[ring] = next[firstOf[ring]];
    countItems(body, next);
    auto yield = cast<scf::YieldOp>(body->getTerminator());
    unsigned first = yield.getNumOperands() - counted.size();
    rewriter.modifyOpInPlace(yield, [&] {
      for (auto [number, ring] : llvm::enumerate(counted))
        yield.setOperand(first + number, next[ring]);
    });
    for (auto [ring, counter] : llvm::zip_equal(counted, counters))
      next[ring] = getLastValue(counter);
    for (Value ring : used)
      next[ring] = next[firstOf[ring]];
  }
}

RoleOp Specialization::createRole(StringRef name, RoleKind kind, int64_t warps,
                                  int64_t registers) {
  auto role = RoleOp::create(rewriter, kernel.getLoc(), name, kind, warps,
                             rewriter.getI64IntegerAttr(registers));
  OpBuilder::InsertionGuard guard(rewriter);
  Block *body = rewriter.createBlock(&role.getBody());
  if (!role.isCopy())
    body->addArgument(rewriter.getIndexType(), kernel.getLoc());
  YieldOp::create(rewriter, kernel.getLoc());
  return role;
}

/// Everything but rings, scalars and the end of idle blocks moves into the
/// consumer.
void Specialization::createConsumer() {
  Block *body = kernel.getBodyBlock();
  SmallVector<Operation *> moved;
  llvm::SmallPtrSet<Operation *, 16> isMoved;
  for (Operation &op : body->without_terminator()) {
    if (isa<RingOp, AllocOp, ExitIfOp>(op))
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
  consumer =
      createRole(consumerName, RoleKind::Compute, warps,
                 attn::shareRegisters(warps, kernel.getRegisters().value_or(0),
                                      kernel.getBlocksPerSM().value_or(1))
                     .consumer);
  Operation *end = consumer.getBodyBlock()->getTerminator();
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, end);
  kernel.setWarps(warps + attn::producerWarps);
}

//===----------------------------------------------------------------------===//
// Numbers of tiles
//===----------------------------------------------------------------------===//

/// Before `user`; the publication stands there until the producer takes it
/// over.
void Specialization::takeNumbers(Operation *user, MutableOperandRange carried,
                                 Value ring) {
  rewriter.setInsertionPoint(user);
  Location loc = user->getLoc();
  // The number follows in `countItems`.
  Value item = arith::ConstantIndexOp::create(rewriter, loc, 0);
  SmallVector<Value> values = llvm::to_vector(carried.getAsOperandRange());
  SendOp::create(rewriter, loc, values, ring, item);
  auto receive = ReceiveOp::create(rewriter, loc, ring, item);
  rewriter.modifyOpInPlace(user, [&] { carried.assign(receive.getValues()); });
}

void Specialization::takeNumbers() {
  auto loops = consumer.getBodyBlock()->getOps<scf::WhileOp>();
  auto tiles = llvm::find_if(loops, [](scf::WhileOp loop) {
    return !getUsedRings(loop.getAfterBody()).empty();
  });
  if (tiles == loops.end())
    return;
  scf::WhileOp loop = *tiles;
  rewriter.setInsertionPointAfter(lastRing);
  // Two, so that the producer need not wait for a consumer that has yet to read
  // the last one.
  constexpr int64_t depth = 2;
  auto type =
      MailboxType::get(kernel.getContext(), depth, loop.getInits().size());
  Value ring = MailboxOp::create(
      rewriter, loop.getLoc(), type,
      FlatSymbolRefAttr::get(kernel.getContext(), producerName), getDrainers());
  takeNumbers(loop, loop.getInitsMutable(), ring);
  scf::YieldOp yield = loop.getYieldOp();
  takeNumbers(yield, yield.getResultsMutable(), ring);
}

/// The producer has taken over what was sent, and how it came about.
void Specialization::dropPublications() {
  bool hadAny = false;
  consumer.walk([&](SendOp send) {
    rewriter.eraseOp(send);
    hadAny = true;
  });
  if (!hadAny)
    return;
  // Users come first.
  consumer.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op) || (findsTile(*op) && op->use_empty()))
      rewriter.eraseOp(op);
  });
}

/// Scalars that only the producer reads.
void Specialization::moveToProducer(RoleOp producer) {
  Operation *first = &producer.getBodyBlock()->front();
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(*kernel.getBodyBlock()))) {
    if (isa<RoleOp>(op) || op.use_empty() || !isMemoryEffectFree(&op) ||
        !llvm::all_of(op.getUsers(), [&](Operation *user) {
          return producer->isProperAncestor(user);
        }))
      continue;
    rewriter.moveOpBefore(&op, first);
    first = &op;
  }
}

//===----------------------------------------------------------------------===//
// Producer: what the awaits depend on
//===----------------------------------------------------------------------===//

/// Takes the copies over from the consumer.
void Specialization::createProducer() {
  ProducerSlice slice(consumer);
  std::string reason;
  [[maybe_unused]] LogicalResult result = slice.compute(reason);
  assert(succeeded(result) && "checked before the kernel was changed");
  rewriter.setInsertionPoint(consumer);
  RoleOp producer = createRole(
      producerName, RoleKind::Copy, attn::producerWarps,
      attn::shareRegisters(consumer.getWarps(), *consumer.getRegisters(),
                           kernel.getBlocksPerSM().value_or(1))
          .producer);
  rewriter.setInsertionPoint(producer.getBodyBlock()->getTerminator());
  IRMapping map;
  slice.clone(rewriter, consumer.getBodyBlock(), map);
  consumer.walk([&](CopyAsyncOp copy) { rewriter.eraseOp(copy); });
  dropPublications();
  moveToProducer(producer);
}

void Specialization::run(std::string &reason) {
  // Where both are read first at the same place, what waits for a whole loop to
  // leave its only slot stands after what need not.
  SmallVector<Value> ringOf;
  for (CopiedTile &tile : tiles)
    ringOf.push_back(getRing(tile));
  for (bool isLocal : {true, false})
    for (auto [tile, ring] : llvm::zip_equal(tiles, ringOf))
      if (tile.isLocal == isLocal)
        awaitTile(tile, ring);
  SetVector<Operation *> allocs;
  for (CopiedTile &tile : tiles) {
    allocs.insert(tile.alloc);
    rewriter.eraseOp(tile.copy);
  }
  for (Operation *alloc : allocs)
    rewriter.eraseOp(alloc);
  for (auto alloc :
       llvm::make_early_inc_range(kernel.getBodyBlock()->getOps<AllocOp>()))
    if (llvm::any_of(alloc.getSlot().getUsers(), llvm::IsaPred<StoreFragOp>))
      exchange(alloc);
  createConsumer();
  passOverBlocks(rewriter, consumer, reason);
  takeNumbers();
  DenseMap<Value, Value> next;
  rewriter.setInsertionPointToStart(consumer.getBodyBlock());
  Value zero = arith::ConstantIndexOp::create(rewriter, kernel.getLoc(), 0);
  for (Value ring : getUsedRings(consumer.getBodyBlock()))
    next[ring] = zero;
  countItems(consumer.getBodyBlock(), next);
  // Nobody asks for the number after the last item, which rings may share.
  SetVector<Operation *> sums;
  for (auto &[ring, number] : next)
    if (auto sum = number.getDefiningOp<arith::AddIOp>())
      sums.insert(sum);
  for (Operation *sum : sums) {
    if (!sum->use_empty())
      continue;
    Operation *one = sum->getOperand(1).getDefiningOp();
    rewriter.eraseOp(sum);
    rewriter.eraseOp(one);
  }
  createProducer();
  expandGroupBounds(rewriter, consumer);
}

FailureOr<int64_t> attn::warp::specializeCopies(RewriterBase &rewriter,
                                                KernelOp kernel, int64_t depth,
                                                std::string &reason) {
  assert(depth >= 0 && "slots, or 0 for the stages of the kernel");
  FailureOr<SmallVector<CopiedTile>> tiles = matchCopiedTiles(kernel, reason);
  if (failed(tiles))
    return failure();
  if (failed(matchExchanges(kernel, reason)) ||
      failed(ProducerSlice(kernel).compute(reason)))
    return failure();
  depth = getRingDepth(kernel, depth);
  Specialization(rewriter, kernel, *tiles, depth).run(reason);
  return int64_t(tiles->size());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpSpecialize final
    : attn::SchedulePass<attn::warp::impl::WarpSpecializeBase<WarpSpecialize>,
                         KernelOp, WarpForm::Resident> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("copies", specializeCopies(rewriter, kernel, depth, reason), reason);
  }
};
} // namespace
