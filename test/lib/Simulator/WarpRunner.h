//===- WarpRunner.h - one warp of a warp kernel -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_WARPRUNNER_H
#define ATTN_TEST_SIMULATOR_WARPRUNNER_H

#include "WarpBlock.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <deque>
#include <map>

namespace attn::simulator {

/// A warp as a coroutine: it runs one operation at a time. The part of an
/// operation's group (fragments, products, transfers) stands in the file of
/// that name.
class WarpRunner {
public:
  /// `role` is null in a kernel without roles. Of one that copies only one
  /// warp runs, the others what stands beside.
  WarpRunner(WarpBlock &block, warp::RoleOp role, int64_t warp);

  enum Step {
    Ran,      // an operation of this warp alone
    Met,      // one that other warps may notice
    Waits,    // it could not go on
    Finished, // the kernel is at its end
    Failed    // an error was emitted
  };
  Step step();

  void set(Value value, Lanes lanes) { values.set(value, std::move(lanes)); }
  /// The operation it stands at.
  Operation *getPlace() { return &*frames.back().next; }
  StringRef getReason() const { return reason; }
  std::string getName();

private:
  /// A block that runs; where it is, if it is the body of a counted loop.
  struct Frame {
    Block::iterator next;
    int64_t induction = 0, upper = 0, increment = 0;
  };
  /// A product in flight.
  struct Product {
    int64_t number;
    Operation *op;
    Lanes result;
    SmallVector<std::pair<SlotUse, bool>> reads; // of all rows, or its own
    size_t depth;                                // frames around it
  };
  /// What a value holds, of any type.
  struct Content {
    Lanes lanes;
    SlotUse use;
    int64_t product = -1;
  };

  Content take(Value value);
  void put(Value value, Content content);
  SmallVector<Content> takeAll(OperandRange range);
  void putAll(ValueRange values, MutableArrayRef<Content> contents);
  void enter(Block *block) { frames.push_back({block->begin()}); }
  LogicalResult refuse(Operation *op, const Twine &message);
  Step fail(Operation *op, const Twine &message);
  Step settle(Operation *op, const Answer &answer);

  Step runRegion(Operation *op);
  Step leave(Operation *terminator);
  Step leaveNumber(warp::AllOp all);
  Step leaveCondition(scf::ConditionOp condition);
  Step beginLoop(scf::ForOp loop);
  Step leaveLoop(scf::ForOp loop, Operation *yield);
  LogicalResult checkNothingInFlight();

  Step copy(warp::CopyOp op);
  Step copyAsync(warp::CopyAsyncOp op);
  /// What is wrong with this warp filling a ring.
  std::string checkFills(Value ring);
  Step storeFrag(warp::StoreFragOp op);
  /// Writes what this warp has of a fragment.
  void writeRows(Value frag, std::vector<float> &elements);
  Step test(warp::TestOp op);
  Step await(warp::AwaitOp op);
  Step release(warp::ReleaseOp op);
  Step wait(warp::WaitOp op);
  Step draw(warp::DrawOp op);
  Step exitIf(warp::ExitIfOp op);
  Step send(warp::SendOp op);
  Step takeNumbers(warp::ReceiveOp op);
  void finishCopies(int64_t younger);

  // Nothing: not an operation of the group.
  std::optional<LogicalResult> executeFragments(Operation *op);
  std::optional<LogicalResult> executeProducts(Operation *op);
  std::optional<LogicalResult> executeTransfers(Operation *op);

  LogicalResult stretch(Operation *op, Value from, Value to);
  LogicalResult cast(warp::CastOp op);
  LogicalResult reduce(warp::ReduceOp op);
  /// Moves `box` from the slice of `first` to that of a row of the tile; the
  /// row in it, nothing if the slice is not written.
  std::optional<int64_t> enterSlice(warp::StoreOp op, const Box &first,
                                    Box &box, int64_t row);
  LogicalResult store(warp::StoreOp op);
  /// What is wrong with writing an element, which it does.
  std::string write(warp::StoreOp op, uint64_t at, uint64_t bits);
  LogicalResult load(warp::LoadOp op);
  LogicalResult gather(warp::GatherOp op);
  LogicalResult dotRows(warp::DotRowsOp op);
  LogicalResult clearBins(warp::ClearBinsOp op);
  LogicalResult scatterAdd(warp::ScatterAddOp op);
  LogicalResult storeBins(warp::StoreBinsOp op);
  LogicalResult search(warp::SearchOp op);
  int64_t indexOf(Value index, Type result, size_t number);
  FailureOr<Lanes> multiply(warp::ProductOp op);
  FailureOr<std::vector<float>> readRows(Operation *op, Value a,
                                         bool isTransposed, warp::FragType acc);
  SlotUse useOf(Value slot);
  Box boxOf(Value view, OperandRange indices);

  WarpBlock &block;
  warp::RoleOp role;
  int64_t warp;      // in its role; 0 if it is by itself
  int64_t blockWarp; // among those of the block
  /// Among the idle warps of its role; none: not one of these.
  std::optional<int64_t> idleNumber;
  Interpreter values;
  llvm::DenseMap<Value, SlotUse> uses;
  llvm::DenseMap<Value, int64_t> pending;
  std::vector<Frame> frames;
  std::deque<Product> products;
  int64_t numProducts = 0;
  /// Copies of this warp in flight, oldest first; no ring: nothing is copied.
  std::deque<std::pair<Ring *, int64_t>> copies;
  /// Sums of this warp by slot, row of the tile (0 where rows share them) and
  /// bin; null: they were not cleared.
  llvm::DenseMap<Operation *, std::map<std::pair<int64_t, int64_t>, float>>
      bins;
  Operation *waitsAt = nullptr;
  std::string reason;
};

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_WARPRUNNER_H
