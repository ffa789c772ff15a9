//===- MakeAsync.cpp - products run beside what does not need them --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product that can be waited for later is split into its issue, which stays
// where it is, and its wait, which sinks to the first operation of the block
// that
//
// - uses the result, itself or in its regions, or ends the block (W1);
// - copies to a slot that the product reads, or, in a kernel without roles,
//   releases one or is a meeting of all warps after such a release (W2). In a
//   role nobody but the producer depends on a release, so there the releases
//   sink with the wait, at most to where the next item of the ring is awaited;
// - makes operand registers while a product reads operand registers (C7513,
//   see Atoms.h): a `warp.load_frag`, or a `warp.cast` to 16-bit floats that a
//   loop hands on as what the product reads; `warp.convert` then only renames
//   registers. What is handed on as another value (`warp-double-buffer`) has
//   registers of its own.
//
// Fragments that the wait passes on its way, and that neither come from another
// product nor are used up before the wait (a mask, a bias), stay after it: in
// front of it their registers would be held beside those of the products. So do
// long rows that are read from a ring's slot (delta of 128 queries takes 32
// registers), before it is given back; shorter ones arrive beside the products.
// Rows of captured numbers that lanes gather arrive beside them, too, as many
// as there are registers for: where a mask compares six numbers of each query,
// those beyond are gathered when the comparisons of the first are done.
//
//===----------------------------------------------------------------------===//

#include "FreeRegisters.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPMAKEASYNC
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

namespace {
/// A product in flight while its block is walked.
struct Flight {
  WaitOp wait;
  SmallVector<Value> slots;
  /// The operand in registers, if there is one, and the operations that make
  /// the value that a loop hands on in its place.
  Value registers;
  DenseSet<Operation *> successors;
  /// Releases of its slots, which wait with it.
  SmallVector<ReleaseOp> releases;
};

class AsyncProducts {
public:
  AsyncProducts(RewriterBase &rewriter, bool inRole)
      : rewriter(rewriter), inRole(inRole) {}

  int64_t run(Block *block);

private:
  void issue(MmaOp mma);
  static bool mustWait(Flight &flight, Operation *op);
  void land(Flight &flight, Operation *before);
  void sinkFragments(Operation *issue, Operation *before);
  void spreadGathers(Operation *issue, WaitOp wait);
  bool delayRelease(ReleaseOp release);

  RewriterBase &rewriter;
  bool inRole;
  SmallVector<Flight> inFlight;
  int64_t numIssued = 0;
};
} // namespace

static bool usesInside(Operation *op, Value value) {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return op->isAncestor(user); });
}

/// True for fragments of the elements that `operand` has.
static bool isLike(Type type, Value operand) {
  auto fragment = dyn_cast<FragType>(type);
  return fragment &&
         fragment.getElementType() == getElementTypeOrSelf(operand.getType());
}

/// The operations that make what takes the place of `operand` in the next
/// iteration, from where it became what a product reads: the yielded value, and
/// what it comes from through conversions, selections and branches.
static DenseSet<Operation *> findSuccessors(Value operand) {
  DenseSet<Operation *> found;
  Value value = operand;
  if (auto convert = value.getDefiningOp<ConvertOp>())
    value = convert.getValue();
  std::optional<CarriedValue> carried = getCarriedValue(value);
  if (!carried)
    return found;
  SmallVector<Value> worklist = {carried->yielded};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !found.insert(op).second)
      continue;
    for (Value source : op->getOperands())
      if (isLike(source.getType(), operand))
        worklist.push_back(source);
    if (!isa<scf::IfOp>(op))
      continue;
    unsigned number = cast<OpResult>(next).getResultNumber();
    for (Region &region : op->getRegions())
      worklist.push_back(region.front().getTerminator()->getOperand(number));
  }
  return found;
}

/// Whether an operation, or one inside it, makes operands in the registers that
/// a product in flight reads.
static bool makesOperandRegisters(Operation *op, const Flight &flight) {
  WalkResult walk = op->walk([&](Operation *inner) {
    // Tiles that are no operands are read by lanes, as other memory is.
    if (auto load = dyn_cast<LoadFragOp>(inner))
      return load.readsTile() ? WalkResult::advance() : WalkResult::interrupt();
    bool makes = isa<CastOp>(inner) &&
                 isLike(inner->getResult(0).getType(), flight.registers) &&
                 flight.successors.contains(inner);
    return makes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

bool AsyncProducts::mustWait(Flight &flight, Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() ||
      usesInside(op, flight.wait.getResult()))
    return true;
  if (flight.registers && makesOperandRegisters(op, flight))
    return true;
  // An item is not held through a loop that waits for others.
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop && getPassedEnd(loop))
    return true;
  return llvm::any_of(flight.slots, [&](Value slot) {
    auto await = dyn_cast<AwaitOp>(op), own = slot.getDefiningOp<AwaitOp>();
    if (await && own && await.getRing() == own.getRing())
      return true;
    return llvm::any_of(slot.getUsers(), [&](Operation *user) {
      return isa<CopyOp, ReleaseOp>(user) && op->isAncestor(user);
    });
  });
}

/// Whether a fragment may as well be made at `place`, further down its block.
static bool mayMoveTo(Operation *op, Operation *place) {
  if (op->getNumResults() != 1 || !isa<FragType>(op->getResult(0).getType()))
    return false;
  auto load = dyn_cast<LoadFragOp>(op);
  if (!load)
    return isPure(op) && op->getNumRegions() == 0;
  constexpr int64_t manyRegisters = 32;
  FragType type = load.getResult().getType();
  bool isLongRow = type.getShape().front() == 1 &&
                   type.getLayout().numRegisters() >= manyRegisters;
  // Nobody fills a slot that is not released.
  return isLongRow && load.getSlot().getDefiningOp<AwaitOp>() &&
         llvm::none_of(load.getSlot().getUsers(), [&](Operation *user) {
           Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
           return isa<ReleaseOp>(user) && here && here->isBeforeInBlock(place);
         });
}

/// What comes from no wait and has no user before `before` moves there.
void AsyncProducts::sinkFragments(Operation *issue, Operation *before) {
  DenseSet<Operation *> fromWaits;
  SmallVector<Operation *> fragments;
  for (Operation *op = issue->getNextNode(); op != before;
       op = op->getNextNode()) {
    bool dependsOnWait = isa<WaitOp>(op);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        dependsOnWait |= fromWaits.contains(operand.getDefiningOp());
    });
    if (dependsOnWait)
      fromWaits.insert(op);
    else if (mayMoveTo(op, before))
      fragments.push_back(op);
  }
  Block *block = before->getBlock();
  Operation *place = before;
  for (Operation *op : llvm::reverse(fragments)) {
    bool isUsedBefore = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      return ancestor && ancestor->isBeforeInBlock(place);
    });
    if (isUsedBefore)
      continue;
    rewriter.moveOpBefore(op, place);
    place = op;
  }
}

/// The last operation of the block for which the registers of `value` are held:
/// those of a row are also those of its broadcasts, and LLVM compares in the
/// block of branches where the comparison is read.
static Operation *findLastUse(Value value, Block *block) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (here == user && isa<BroadcastOp, arith::CmpIOp, arith::CmpFOp>(user))
      if (Operation *further = findLastUse(user->getResult(0), block))
        here = further;
    if (here && (!last || last->isBeforeInBlock(here)))
      last = here;
  }
  return last;
}

/// The first operation of the block that uses `value`.
static Operation *findFirstUse(Value value, Block *block) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first)))
      first = here;
  }
  return first;
}

/// What joins truths behind `wait` follows the later one of them.
static void joinEarly(RewriterBase &rewriter, WaitOp wait) {
  Block *block = wait->getBlock();
  SmallVector<Operation *> joins;
  for (Operation *op = wait; op; op = op->getNextNode())
    if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) &&
        getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1))
      joins.push_back(op);
  for (Operation *join : joins) {
    Operation *last = wait;
    for (Value operand : join->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->getBlock() == block && last->isBeforeInBlock(maker))
        last = maker;
    rewriter.moveOpAfter(join, last);
  }
}

/// Of the rows that are gathered in front of a wait only so many stay there as
/// have registers; each other one follows the last use of the first of those
/// before it. What the uses leave for those behind takes as many registers as
/// the scores, so few gathers stay.
void AsyncProducts::spreadGathers(Operation *issue, WaitOp wait) {
  Block *block = wait->getBlock();
  SmallVector<GatherOp> gathers;
  int64_t all = 0;
  for (Operation *op = issue; op != wait; op = op->getNextNode()) {
    auto gather = dyn_cast<GatherOp>(op);
    Operation *first =
        gather ? findFirstUse(gather.getResult(), block) : nullptr;
    if (!first || first->isBeforeInBlock(wait) ||
        gather.getResult().getType().getShape().front() != 1)
      continue;
    gathers.push_back(gather);
    all += countRegisters(gather.getResult().getType());
  }
  SmallVector<MmaAsyncOp> products;
  for (Flight &flight : inFlight)
    products.push_back(flight.wait.getPending().getDefiningOp<MmaAsyncOp>());
  int64_t free = countFreeRegisters(block, products), held = 0;
  if (free >= all || all - free <= countRegisters(wait.getResult().getType()))
    return;
  joinEarly(rewriter, wait);
  size_t first = 0;            // of those that are held
  Operation *before = nullptr; // the one that moved last
  for (auto [number, gather] : llvm::enumerate(gathers)) {
    held += countRegisters(gather.getResult().getType());
    Operation *place = nullptr;
    for (; held > free && first < number; ++first) {
      Value value = gathers[first].getResult();
      held -= countRegisters(value.getType());
      Operation *last = findLastUse(value, block);
      if (last && (!place || place->isBeforeInBlock(last)))
        place = last;
    }
    if (!place)
      continue;
    if (before && place->isBeforeInBlock(before))
      place = before;
    Operation *user = findFirstUse(gather.getResult(), block);
    if (user == place || user->isBeforeInBlock(place))
      rewriter.moveOpBefore(gather, user);
    else
      rewriter.moveOpAfter(gather, place);
    before = gather;
  }
}

/// The wait goes before `before`, the releases follow it.
void AsyncProducts::land(Flight &flight, Operation *before) {
  rewriter.moveOpBefore(flight.wait, before);
  for (ReleaseOp release : flight.releases)
    rewriter.moveOpBefore(release, before);
  Operation *issue = flight.wait.getPending().getDefiningOp();
  sinkFragments(issue, before);
  spreadGathers(issue, flight.wait);
}

/// In a role a release waits with the last product in flight that reads the
/// slot.
bool AsyncProducts::delayRelease(ReleaseOp release) {
  if (!inRole)
    return false;
  for (Flight &flight : llvm::reverse(inFlight))
    if (llvm::is_contained(flight.slots, release.getSlot())) {
      flight.releases.push_back(release);
      return true;
    }
  return false;
}

void AsyncProducts::issue(MmaOp mma) {
  rewriter.setInsertionPoint(mma);
  auto async = MmaAsyncOp::create(rewriter, mma.getLoc(), mma.getAtom(),
                                  mma.getA(), mma.getB(), mma.getAcc(),
                                  mma.getTransposeA(), mma.getTransposeB());
  auto wait = WaitOp::create(rewriter, mma.getLoc(), async.getResult());
  Flight flight;
  flight.wait = wait;
  if (isa<FragType>(mma.getA().getType())) {
    flight.registers = mma.getA();
    flight.successors = findSuccessors(mma.getA());
  }
  for (Value operand : {mma.getA(), Value(mma.getB())})
    if (isa<SlotType>(operand.getType()))
      flight.slots.push_back(operand);
  rewriter.replaceOp(mma, wait.getResult());
  inFlight.push_back(flight);
  ++numIssued;
}

int64_t AsyncProducts::run(Block *block) {
  for (Operation &op : llvm::make_early_inc_range(*block)) {
    if (auto release = dyn_cast<ReleaseOp>(op))
      if (delayRelease(release))
        continue;
    // Products end in the order of issue, so who waits for one waits for those
    // before it.
    size_t landed = inFlight.size();
    while (landed > 0 && !mustWait(inFlight[landed - 1], &op))
      --landed;
    for (size_t number = 0; number < landed; ++number)
      land(inFlight[number], &op);
    if (landed > 0) // else each flight would be moved to itself
      inFlight.erase(inFlight.begin(), inFlight.begin() + landed);
    auto mma = dyn_cast<MmaOp>(op);
    if (mma && getTraits(mma.getAtom()).isAsync)
      issue(mma);
  }
  return numIssued;
}

int64_t attn::warp::makeProductsAsync(RewriterBase &rewriter, KernelOp kernel,
                                      std::string &reason) {
  SetVector<Block *> blocks;
  kernel.walk([&](MmaOp mma) { blocks.insert(mma->getBlock()); });
  int64_t numIssued = 0;
  for (Block *block : blocks)
    numIssued += AsyncProducts(rewriter, kernel.hasRoles()).run(block);
  if (numIssued == 0)
    reason = "no product is of an atom that can be waited for later";
  return numIssued;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpMakeAsync final
    : attn::SchedulePass<attn::warp::impl::WarpMakeAsyncBase<WarpMakeAsync>,
                         KernelOp, WarpForm::Roles> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("products", makeProductsAsync(rewriter, kernel, reason), reason);
  }
};
} // namespace
