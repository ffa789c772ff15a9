//===- ShareColumns.cpp - warps in a grid read operands less often --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync reads its operands from shared memory by ldmatrix, a matrix of 16x16
// at a time: of a tile of 16 r x 16 c, a warp reads r + c of them for 2 r c
// instructions in each step of 16. Four warps that are stacked along the 64
// rows of a tile of 64 columns have 1 + 4, in a grid of 2 x 2 they have 2 + 2.
//
// What is then missing is the step from accumulator to operand inside the
// lanes: a warp has not all columns of P and dS. They go through a slot, as dS
// does for dQ; written one after the other, so that warps meet once for all of
// them.
//
// The grid is chosen per cluster: groups of fragments that are spread alike,
// and the groups of the products that take them as operands in registers.
//
//===----------------------------------------------------------------------===//

#include "FragmentGroups.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Layout/Products.h"
#include "attn/Support/SchedulePass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPSHARECOLUMNS
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Bytes that one ldmatrix reads.
static constexpr int64_t readBytes = 512;
/// A grid is worth its meetings from such a part of the reads on.
static constexpr int64_t leastGain = 16;

static SlotType getSlotType(Value fragment) {
  auto type = cast<FragType>(fragment.getType());
  return SlotType::get(type.getContext(), type.getShape(),
                       type.getElementType());
}

static int64_t getSlotBytes(Value fragment) {
  return getSlotType(fragment).getLayout().bytes();
}

/// Whether some store brings the value to a slot already.
static bool isExchanged(Value value) {
  return llvm::any_of(value.getUsers(), llvm::IsaPred<StoreFragOp>);
}

namespace {
/// Groups that are linked by operands in registers, and the grid of each.
struct Cluster {
  SmallVector<FragmentGroup *> groups;
  llvm::DenseMap<FragmentGroup *, int64_t> grids; // columns of warps

  /// The distinct values that products take from registers, of groups whose
  /// warps are in a grid.
  llvm::SmallSetVector<Value, 4> listOperands() const;
};

/// Reads by ldmatrix, and writes of as many bytes, in all loops once.
class Costs {
public:
  explicit Costs(ArrayRef<FragmentGroup> groups);

  FragmentGroup *getGroup(Value value) const { return groupOf.lookup(value); }
  /// The fragment's warps may stand in that grid.
  bool isLegal(const FragmentGroup &group, int64_t columns) const;
  /// Of the products of a group; none if it cannot be.
  std::optional<int64_t> countReads(const Cluster &cluster,
                                    const FragmentGroup &group,
                                    int64_t columns) const;
  /// Chooses the grids of the groups; those of operands have `columns` columns
  /// of warps. None if that cannot be.
  std::optional<int64_t> choose(Cluster &cluster, int64_t columns,
                                int64_t warps) const;

private:
  llvm::DenseMap<Value, FragmentGroup *> groupOf;
};
} // namespace

llvm::SmallSetVector<Value, 4> Cluster::listOperands() const {
  llvm::SmallSetVector<Value, 4> operands;
  for (FragmentGroup *group : groups)
    if (grids.lookup(group) > 1)
      for (ConvertOp convert : group->converts)
        operands.insert(convert.getValue());
  return operands;
}

Costs::Costs(ArrayRef<FragmentGroup> groups) {
  for (const FragmentGroup &group : groups)
    for (Value value : group.values)
      groupOf[value] = const_cast<FragmentGroup *>(&group);
}

bool Costs::isLegal(const FragmentGroup &group, int64_t columns) const {
  if (columns == 1)
    return true;
  auto takesParts = [&](Value value) {
    layout::SharedTile tile = getSlotType(value).getLayout();
    return tile.elementBytes == 2 && tile.check().empty() &&
           tile.splitsInto(columns);
  };
  return group.obstacle.empty() &&
         llvm::all_of(group.values,
                      [&](Value value) {
                        auto type = cast<FragType>(value.getType());
                        layout::Fragment layout = type.getLayout();
                        layout.gridColumns = columns;
                        return layout.check().empty();
                      }) &&
         llvm::all_of(group.converts,
                      [&](ConvertOp convert) {
                        return takesParts(convert.getValue());
                      }) &&
         llvm::all_of(group.exchanges, [&](StoreFragOp store) {
           return takesParts(store.getValue());
         });
}

std::optional<int64_t> Costs::countReads(const Cluster &cluster,
                                         const FragmentGroup &group,
                                         int64_t columns) const {
  int64_t reads = 0;
  for (MmaOp product : group.products) {
    layout::Fragment acc = product.getResult().getType().getLayout();
    acc.gridColumns = columns;
    if (!layout::checkColumnParts(acc, layout::mmaSync).empty())
      return std::nullopt;
    bool isRead = true;
    if (auto convert = product.getA().getDefiningOp<ConvertOp>()) {
      isRead = cluster.grids.lookup(getGroup(convert.getValue())) > 1;
      if (!isRead && columns > 1)
        return std::nullopt;
    }
    int64_t depth =
        product.getB().getType().getShape()[product.getTransposeB() ? 1 : 0];
    int64_t perStep =
        (isRead ? acc.rowSteps() : 0) + llvm::divideCeil(acc.columnSteps(), 2);
    reads += depth / layout::mmaSync.depth * perStep * acc.warps;
  }
  return reads;
}

std::optional<int64_t> Costs::choose(Cluster &cluster, int64_t columns,
                                     int64_t warps) const {
  cluster.grids.clear();
  for (FragmentGroup *group : cluster.groups)
    if (!group->converts.empty()) {
      if (!isLegal(*group, columns))
        return std::nullopt;
      cluster.grids[group] = columns;
    }
  int64_t total = 0;
  for (FragmentGroup *group : cluster.groups) {
    bool isSource = !group->converts.empty();
    std::optional<int64_t> best;
    for (int64_t own = 1; own <= warps; own *= 2) {
      if (warps % own != 0 || (isSource && own != columns) ||
          !isLegal(*group, own))
        continue;
      std::optional<int64_t> reads = countReads(cluster, *group, own);
      if (reads && (!best || *reads < *best)) {
        best = reads;
        cluster.grids[group] = own;
      }
    }
    if (!best)
      return std::nullopt;
    total += *best;
  }
  for (Value operand : cluster.listOperands())
    if (!isExchanged(operand))
      total += llvm::divideCeil(getSlotBytes(operand), readBytes);
  return total;
}

/// Groups and those that they are linked to.
static std::vector<Cluster> collectClusters(MutableArrayRef<FragmentGroup> all,
                                            const Costs &costs) {
  llvm::MapVector<FragmentGroup *, FragmentGroup *> heads;
  auto headOf = [&](FragmentGroup *group) {
    while (heads[group] != group)
      group = heads[group];
    return group;
  };
  for (FragmentGroup &group : all)
    heads[&group] = &group;
  for (FragmentGroup &group : all)
    for (MmaOp product : group.products)
      if (auto convert = product.getA().getDefiningOp<ConvertOp>())
        if (FragmentGroup *source = costs.getGroup(convert.getValue()))
          heads[headOf(&group)] = headOf(source);
  llvm::MapVector<FragmentGroup *, Cluster> clusters;
  for (FragmentGroup &group : all)
    clusters[headOf(&group)].groups.push_back(&group);
  std::vector<Cluster> result;
  for (auto &[head, cluster] : clusters)
    result.push_back(std::move(cluster));
  return result;
}

//===----------------------------------------------------------------------===//
// The change
//===----------------------------------------------------------------------===//

namespace {
/// Brings operands that were in registers to slots.
class Exchange {
public:
  Exchange(RewriterBase &rewriter, KernelOp kernel)
      : rewriter(rewriter), kernel(kernel) {}

  /// Those of one block, in their order.
  void run(ArrayRef<ConvertOp> converts);

private:
  Value exchange(ConvertOp convert);
  StoreFragOp findStore(ConvertOp convert);
  Value getOwnSlot(SlotType type);
  /// The place of the last store, if the value is there; else its own.
  void setPlace(Value value, Operation *own);

  RewriterBase &rewriter;
  KernelOp kernel;
  llvm::MapVector<SlotType, SmallVector<Value>> slots;
  // Of the running block.
  llvm::DenseMap<SlotType, size_t> numUsed;
  llvm::DenseMap<Value, Value> slotOf;
  Operation *last = nullptr;
};
} // namespace

Value Exchange::getOwnSlot(SlotType type) {
  size_t number = numUsed[type]++;
  SmallVector<Value> &own = slots[type];
  if (number < own.size())
    return own[number];
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *memory = nullptr;
  for (Operation &op : *kernel.getBodyBlock())
    if (isa<AllocOp, RingOp>(op))
      memory = &op;
  if (memory)
    rewriter.setInsertionPointAfter(memory);
  else
    rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  own.push_back(
      AllocOp::create(rewriter, kernel.getLoc(), type, /*offset=*/nullptr)
          .getSlot());
  return own.back();
}

/// The store of the value in this block whose slot keeps it for all products
/// that want the convert.
StoreFragOp Exchange::findStore(ConvertOp convert) {
  Block *block = convert->getBlock();
  for (Operation *user : convert.getValue().getUsers()) {
    auto store = dyn_cast<StoreFragOp>(user);
    if (!store || store->getBlock() != block)
      continue;
    bool isKept =
        llvm::all_of(store.getTarget().getUsers(), [&](Operation *other) {
          if (other == store || !isa<StoreFragOp>(other))
            return true;
          Operation *here = block->findAncestorOpInBlock(*other);
          return !here || here->isBeforeInBlock(store) ||
                 llvm::all_of(convert->getUsers(), [&](Operation *product) {
                   Operation *place = block->findAncestorOpInBlock(*product);
                   return place && place->isBeforeInBlock(here);
                 });
        });
    bool isRead = llvm::all_of(convert->getUsers(), [&](Operation *product) {
      Operation *place = block->findAncestorOpInBlock(*product);
      return place && store->isBeforeInBlock(place);
    });
    if (isKept && isRead)
      return store;
  }
  return {};
}

void Exchange::setPlace(Value value, Operation *own) {
  Operation *definition = value.getDefiningOp();
  bool isThere =
      last && (!definition || definition->getBlock() != last->getBlock() ||
               definition->isBeforeInBlock(last));
  if (isThere)
    rewriter.setInsertionPointAfter(last);
  else
    rewriter.setInsertionPoint(own);
}

Value Exchange::exchange(ConvertOp convert) {
  Value value = convert.getValue();
  Value &slot = slotOf[value];
  if (slot)
    return slot;
  StoreFragOp store = findStore(convert);
  if (!store) {
    slot = getOwnSlot(getSlotType(value));
    setPlace(value, convert);
    last = StoreFragOp::create(rewriter, convert.getLoc(), value, slot,
                               /*item=*/Value());
    return slot;
  }
  slot = store.getTarget();
  setPlace(value, store);
  Operation *place = &*rewriter.getInsertionPoint();
  // Nobody reads what was there in between.
  bool isUnused = llvm::none_of(slot.getUsers(), [&](Operation *user) {
    Operation *here = store->getBlock()->findAncestorOpInBlock(*user);
    return here && here != store && here->isBeforeInBlock(store) &&
           !here->isBeforeInBlock(place);
  });
  if (isUnused && place != store)
    rewriter.moveOpBefore(store, place);
  last = store;
  return slot;
}

void Exchange::run(ArrayRef<ConvertOp> converts) {
  numUsed.clear();
  slotOf.clear();
  last = nullptr;
  for (ConvertOp convert : converts) {
    Value slot = exchange(convert);
    rewriter.replaceAllUsesWith(convert.getResult(), slot);
    rewriter.eraseOp(convert);
  }
}

/// The converts of a cluster whose operands go through slots, by their blocks.
static llvm::MapVector<Block *, SmallVector<ConvertOp>>
listExchanges(const Cluster &cluster) {
  llvm::MapVector<Block *, SmallVector<ConvertOp>> blocks;
  for (FragmentGroup *group : cluster.groups)
    if (cluster.grids.lookup(group) > 1)
      for (ConvertOp convert : group->converts)
        blocks[convert->getBlock()].push_back(convert);
  for (auto &[block, converts] : blocks)
    llvm::sort(converts,
               [](ConvertOp a, ConvertOp b) { return a->isBeforeInBlock(b); });
  return blocks;
}

/// Bytes of shared memory that the slots of a cluster add, at most.
static int64_t countBytesAdded(const Cluster &cluster) {
  int64_t most = 0;
  for (auto &[block, converts] : listExchanges(cluster)) {
    llvm::SmallSetVector<Value, 4> values;
    for (ConvertOp convert : converts)
      if (!isExchanged(convert.getValue()))
        values.insert(convert.getValue());
    int64_t bytes = 0;
    for (Value value : values)
      bytes += getSlotBytes(value);
    most = std::max(most, bytes);
  }
  return most;
}

static void setGrid(RewriterBase &rewriter, FragmentGroup &group,
                    int64_t columns) {
  auto inGrid = [&](Value value) {
    return cast<FragType>(value.getType()).inGrid(columns);
  };
  for (Value value : group.values)
    value.setType(inGrid(value));
  for (OpOperand *use : group.splats) {
    auto splat = use->get().getDefiningOp<SplatOp>();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfter(splat);
    Value own = SplatOp::create(rewriter, splat.getLoc(), inGrid(splat),
                                splat.getScalar());
    rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(own); });
  }
}

/// The kernel of the products of a cluster.
static KernelOp getKernel(const Cluster &cluster) {
  for (FragmentGroup *group : cluster.groups)
    if (!group->products.empty())
      return group->products.front()->getParentOfType<KernelOp>();
  return {};
}

int64_t attn::warp::shareColumns(RewriterBase &rewriter, func::FuncOp function,
                                 int64_t limit, std::string &reason) {
  std::vector<FragmentGroup> groups = collectFragmentGroups(function);
  Costs costs(groups);
  int64_t numShared = 0;
  for (Cluster &cluster : collectClusters(groups, costs)) {
    KernelOp kernel = getKernel(cluster);
    if (!kernel || kernel.hasRoles())
      continue;
    int64_t warps = kernel.getWarps();
    Cluster best = cluster;
    std::optional<int64_t> usual = costs.choose(best, 1, 1);
    std::optional<int64_t> least = usual;
    for (int64_t columns = 1; columns <= warps; columns *= 2) {
      std::optional<int64_t> reads = costs.choose(cluster, columns, warps);
      if (!reads || !least || *reads >= *least ||
          (*usual - *reads) * leastGain < *usual)
        continue;
      if (getSharedBytesUsed(kernel) + countBytesAdded(cluster) > limit) {
        reason = "no shared memory is left for what warps compute for others";
        continue;
      }
      least = reads;
      best = cluster;
    }
    if (least == usual)
      continue;
    Exchange exchange(rewriter, kernel);
    auto exchanges = listExchanges(best);
    for (FragmentGroup *group : best.groups)
      if (int64_t columns = best.grids.lookup(group); columns > 1) {
        setGrid(rewriter, *group, columns);
        numShared += group->products.size();
      }
    for (auto &[block, converts] : exchanges)
      exchange.run(converts);
  }
  return numShared;
}

namespace {
struct WarpShareColumns final
    : attn::SchedulePass<
          attn::warp::impl::WarpShareColumnsBase<WarpShareColumns>,
          func::FuncOp, WarpForm::Buffered, CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, func::FuncOp function) override {
    std::string reason;
    report("products", shareColumns(rewriter, function, sharedLimit, reason),
           reason);
  }
};
} // namespace
