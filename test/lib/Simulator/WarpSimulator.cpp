//===- WarpSimulator.cpp - warp kernels run warp by warp --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simulator/WarpSimulator.h"

#include "WarpRunner.h"
#include "mlir/Transforms/RegionUtils.h"
#include <random>

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

namespace {
/// Who of a block goes on: a warp, or a copy of TMA.
///
/// By the seed, in turn: anybody; the same warp as long as it can and copies
/// last; copies first; the warp of the highest priority, which change now and
/// then.
class WarpScheduler {
public:
  WarpScheduler(uint64_t seed, size_t warps)
      : policy(Policy(seed % numPolicies)), random(seed), priorities(warps) {
    for (uint64_t &priority : priorities)
      priority = random();
  }

  /// An index into `warps`, or one of `copies` after them.
  size_t pick(ArrayRef<size_t> warps, size_t copies);

private:
  enum Policy { Anybody, Greedy, CopiesFirst, Priorities };
  static constexpr uint64_t numPolicies = 4;

  size_t pickWarp(ArrayRef<size_t> warps);

  Policy policy;
  std::mt19937_64 random;
  std::vector<uint64_t> priorities;
  size_t last = 0;
};

/// One launch of a kernel.
class WarpSimulation {
public:
  explicit WarpSimulation(uint64_t seed) : seed(seed) {}
  LogicalResult run(func::FuncOp host, ArrayRef<HostArgument> arguments);

private:
  LogicalResult execute(Operation *op, Interpreter &host);
  LogicalResult runKernel(KernelOp kernel, Interpreter &host);
  LogicalResult runBlock(KernelOp kernel, Interpreter &host,
                         const BlockPlace &place);

  uint64_t seed;
  Launch launch;
};
} // namespace

size_t WarpScheduler::pickWarp(ArrayRef<size_t> warps) {
  if (policy == Greedy)
    for (auto [index, warp] : llvm::enumerate(warps))
      if (warp == last)
        return index;
  size_t index = random() % warps.size();
  if (policy == Priorities) {
    constexpr uint64_t changesEvery = 16;
    if (random() % changesEvery == 0)
      priorities[random() % priorities.size()] = random();
    for (size_t other = 0; other < warps.size(); ++other)
      if (priorities[warps[other]] > priorities[warps[index]])
        index = other;
  }
  last = warps[index];
  return index;
}

size_t WarpScheduler::pick(ArrayRef<size_t> warps, size_t copies) {
  bool picksCopy = random() % (warps.size() + copies) >= warps.size();
  if (policy == Greedy)
    picksCopy = false;
  if (policy == CopiesFirst)
    picksCopy = true;
  if ((picksCopy && copies != 0) || warps.empty())
    return warps.size() + random() % copies;
  return pickWarp(warps);
}

static LogicalResult reportDeadlock(MutableArrayRef<WarpRunner> warps,
                                    ArrayRef<size_t> waiting) {
  WarpRunner &first = warps[waiting.front()];
  InFlightDiagnostic diag =
      first.getPlace()->emitOpError("is where no warp can go on: ")
      << first.getName() << " waits for " << first.getReason();
  for (size_t number : waiting.drop_front())
    diag.attachNote(warps[number].getPlace()->getLoc())
        << warps[number].getName() << " waits for "
        << warps[number].getReason();
  return failure();
}

static std::vector<WarpRunner> makeWarps(KernelOp kernel, WarpBlock &block) {
  std::vector<WarpRunner> warps;
  for (RoleOp role : kernel.getRoles()) {
    bool hasBeside = !role.getBodyBlock()->getOps<BesideOp>().empty();
    int64_t count = hasBeside ? role.getWarps() : role.getActiveWarps();
    for (int64_t warp = 0; warp < count; ++warp)
      warps.emplace_back(block, role, warp);
  }
  for (int64_t warp = 0; !kernel.hasRoles() && warp < block.warps; ++warp)
    warps.emplace_back(block, RoleOp(), warp);
  return warps;
}

/// Runs the warps of a block until all are at the end.
static LogicalResult runWarps(WarpBlock &block,
                              MutableArrayRef<WarpRunner> warps,
                              WarpScheduler &scheduler) {
  SmallVector<bool> waits(warps.size()), isFinished(warps.size());
  while (true) {
    if (block.hasNews)
      waits.assign(warps.size(), false);
    block.hasNews = false;
    SmallVector<size_t> ready, waiting;
    for (size_t number = 0; number < warps.size(); ++number)
      if (!isFinished[number])
        (waits[number] ? waiting : ready).push_back(number);
    size_t copies = block.transfers.size();
    if (ready.empty() && copies == 0)
      return waiting.empty() ? block.checkEnd()
                             : reportDeadlock(warps, waiting);
    size_t pick = scheduler.pick(ready, copies);
    if (pick >= ready.size()) {
      size_t number = pick - ready.size();
      if (failed(block.finish(block.transfers[number])))
        return failure();
      block.transfers.erase(block.transfers.begin() + number);
      block.hasNews = true;
      continue;
    }
    WarpRunner &warp = warps[ready[pick]];
    WarpRunner::Step step;
    do
      step = warp.step();
    while (step == WarpRunner::Ran);
    if (step == WarpRunner::Failed)
      return failure();
    waits[ready[pick]] = step == WarpRunner::Waits;
    isFinished[ready[pick]] = step == WarpRunner::Finished;
  }
}

LogicalResult WarpSimulation::runBlock(KernelOp kernel, Interpreter &host,
                                       const BlockPlace &place) {
  WarpBlock block(kernel, launch, place);
  std::vector<WarpRunner> warps = makeWarps(kernel, block);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(kernel.getBody(), captured);
  for (WarpRunner &warp : warps) {
    for (Value value : captured) {
      Lanes lanes;
      for (const Part &part : host.get(value))
        lanes.push_back(Part(layout::warpSize, part[0]));
      warp.set(value, std::move(lanes));
    }
    for (auto [dim, index] : llvm::enumerate(place.block))
      warp.set(kernel.getBody().getArgument(dim),
               {Part(layout::warpSize, index)});
  }
  WarpScheduler scheduler(seed, warps.size());
  return runWarps(block, warps, scheduler);
}

LogicalResult WarpSimulation::runKernel(KernelOp kernel, Interpreter &host) {
  std::array<int64_t, 3> grid = {host.getSigned(kernel.getGridX()),
                                 host.getSigned(kernel.getGridY()),
                                 host.getSigned(kernel.getGridZ())};
  launch.stored.clear();
  launch.added.clear();
  // One to three blocks do all, one after the other.
  constexpr uint64_t maxResident = 3;
  if (kernel.getResident())
    grid[0] = std::min<int64_t>(grid[0], 1 + seed % maxResident);
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; ++x)
        if (failed(runBlock(kernel, host, {{x, y, z}, grid})))
          return failure();
  return success();
}

LogicalResult WarpSimulation::execute(Operation *op, Interpreter &host) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return runKernel(kernel, host);
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return allocate(alloc, host, launch.global), success();
  if (isa<memref::DeallocOp>(op))
    return success();
  return host.execute(op);
}

LogicalResult WarpSimulation::run(func::FuncOp host,
                                  ArrayRef<HostArgument> arguments) {
  Interpreter interpreter(/*threads=*/1, BlockPlace(), /*shared=*/nullptr,
                          launch.global);
  if (failed(bindArguments(host, arguments, interpreter, launch.global)))
    return failure();
  for (Operation &op : host.getBody().front().without_terminator())
    if (failed(execute(&op, interpreter)))
      return failure();
  return success();
}

LogicalResult attn::simulator::simulateWarps(func::FuncOp host,
                                             ArrayRef<HostArgument> arguments,
                                             uint64_t seed) {
  return WarpSimulation(seed).run(host, arguments);
}
