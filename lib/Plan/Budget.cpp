//===- Budget.cpp - bytes and registers of a plan -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Budget.h"

#include "attn/Support/RoleRegisters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace attn;
using namespace attn::plan;
using llvm::Twine;

static constexpr int64_t matrixRows = 16;
static constexpr int64_t matrixDepth = 16;
static constexpr int64_t warpSize = 32;
// Operand fragments, addresses, loop counters; from the ptxas reports of the
// kernels in the heuristics' table.
static constexpr int64_t registerAllowance = 48;
// Eight columns of two rows, and of two columns, where f32 lanes multiply.
static constexpr int64_t multiplyAddAllowance = 32;
static constexpr int64_t warpsPerGroup = 4;
static constexpr int64_t groupRows = 64;
static constexpr int64_t barrierBytesPerSlot = 16;
// The same beside the two accumulators and the weights of a warpgroup: of 240
// registers scans of kernels found 212 to compile without spills.
static constexpr int64_t warpgroupAllowance = 28;

int64_t plan::padHeadDim(int64_t dim) {
  return llvm::alignTo(dim, matrixDepth);
}

/// True if the target's matrix instructions are those of warpgroups for such
/// elements, which read panels and run in roles.
static bool usesWarpgroups(const Workload &workload, const TargetInfo &target) {
  return target.hasWarpgroups && workload.elementBytes == 2;
}

const TileBuffer &Budget::getBuffer(std::string_view name) const {
  return *llvm::find_if(
      buffers, [&](const TileBuffer &buffer) { return buffer.name == name; });
}

int64_t Budget::sharedBytes() const {
  int64_t bytes = barrierBytes;
  for (const TileBuffer &buffer : buffers)
    bytes += buffer.slots * buffer.slotBytes;
  return bytes;
}

int64_t Budget::stepBytes() const {
  int64_t bytes = 0;
  for (const TileBuffer &buffer : buffers)
    bytes += buffer.isRing ? buffer.slotBytes : 0;
  return bytes;
}

int64_t Budget::registers() const {
  int64_t count = allowance;
  for (const TileRegisters &tile : tiles)
    count += tile.count;
  return count;
}

std::string Budget::describeShared() const {
  std::string text;
  auto add = [&](const Twine &part) {
    text += (text.empty() ? part : " + " + part).str();
  };
  for (const TileBuffer &buffer : buffers) {
    llvm::StringRef name = buffer.name;
    if (buffer.isRing)
      add(name + " ring " + Twine(buffer.slots) + " x " +
          Twine(buffer.slotBytes) + " B");
    else
      add(name + " tile " + Twine(buffer.slotBytes) + " B");
  }
  if (barrierBytes != 0)
    add("barriers " + Twine(barrierBytes) + " B");
  return (text + " = " + Twine(sharedBytes()) + " B").str();
}

/// Bytes of a tile in shared memory.
static int64_t tileBytes(int64_t rows, int64_t dim, const Workload &workload,
                         const TargetInfo &target) {
  int64_t rowBytes = dim * workload.elementBytes;
  if (usesWarpgroups(workload, target))
    rowBytes = llvm::alignTo(rowBytes, rowBytes % 128 == 0 ? 128
                                       : rowBytes <= 32    ? 32
                                                           : 64);
  return rows * rowBytes;
}

/// Columns of f32 that a kernel accumulates per row: those of the output; of
/// the gradients of key and value together, as long as lanes have registers for
/// them.
static int64_t countSummedColumns(const Workload &workload) {
  int64_t dim = padHeadDim(workload.headDim);
  int64_t valueDim = padHeadDim(workload.valueHeadDim);
  if (!workload.isBackward)
    return valueDim;
  return dim + valueDim <= maxSummedColumns ? dim + valueDim
                                            : std::max(dim, valueDim);
}

Budget plan::computeBudget(const Workload &workload, const Tiles &tiles,
                           const TargetInfo &target) {
  int64_t dim = padHeadDim(workload.headDim);
  int64_t valueDim = padHeadDim(workload.valueHeadDim);
  bool warpgroups = usesWarpgroups(workload, target);
  Budget budget;
  auto slot = [&](int64_t rows, int64_t columns) {
    return tileBytes(rows, columns, workload, target);
  };
  budget.buffers = {
      {"Q", slot(tiles.blockQ, dim)},
      {"K", slot(tiles.blockK, dim), tiles.stages, /*isRing=*/true},
      {"V", slot(tiles.blockK, valueDim), tiles.stages, /*isRing=*/true}};
  if (workload.isBackward)
    budget.buffers.insert(
        budget.buffers.end(),
        {{"dO", slot(tiles.blockQ, valueDim)},
         {"lse", tiles.blockK * 4, tiles.stages, /*isRing=*/true},
         {"delta", tiles.blockK * 4, tiles.stages, /*isRing=*/true}});

  int64_t threads = tiles.warps * warpSize;
  auto perThread = [&](int64_t elements, int64_t bytes) -> int64_t {
    return llvm::divideCeil(elements * bytes, threads * 4);
  };
  budget.tiles = {
      {"scores", perThread(tiles.blockQ * tiles.blockK, 4)},
      {"output", perThread(tiles.blockQ * countSummedColumns(workload), 4)}};
  if (workload.isBackward)
    budget.tiles.push_back(
        {"gradient", perThread(tiles.blockQ * tiles.blockK, 4)});
  if (warpgroups) {
    for (const TileBuffer &buffer : budget.buffers)
      budget.barrierBytes += barrierBytesPerSlot * buffer.slots;
    budget.registerLimit =
        shareRegisters(tiles.warps, tiles.consumerRegisters).consumer;
    budget.allowance = warpgroupAllowance;
    // Of gradients the weights lie where scores were.
    if (!workload.isBackward)
      budget.tiles.push_back(
          {"weights", perThread(tiles.blockQ * tiles.blockK, 2)});
    return budget;
  }
  int64_t rowsPerThread =
      2 * llvm::divideCeil(tiles.blockQ, tiles.warps * matrixRows);
  budget.registerLimit = target.registersPerThread;
  budget.allowance = registerAllowance;
  budget.tiles.push_back({"statistics", 3 * rowsPerThread});
  if (workload.hasIeeeProducts)
    budget.allowance += multiplyAddAllowance;
  if (tiles.qInRegisters)
    budget.tiles.push_back(
        {"Q", perThread(tiles.blockQ * dim, workload.elementBytes)});
  return budget;
}

int64_t plan::blocksPerSM(const Budget &budget, const Tiles &tiles,
                          const TargetInfo &target) {
  if (target.sm == 0)
    return 1;
  // Blocks with roles take all registers of a multiprocessor.
  if (budget.barrierBytes != 0)
    return 1;
  int64_t threads = tiles.warps * warpSize;
  int64_t registersPerWarp = llvm::alignTo(
      std::min(budget.registers(), target.registersPerThread) * warpSize,
      target.registerGranularity);
  return std::min({target.sharedBytesPerSM /
                       (budget.sharedBytes() + target.sharedBytesReserved),
                   target.registersPerSM / (registersPerWarp * tiles.warps),
                   target.threadsPerSM / threads, target.blocksPerSM});
}

static std::string notMultiple(const char *field, int64_t value, int64_t factor,
                               const Twine &why) {
  return (Twine(field) + " = " + Twine(value) + " is not a multiple of " +
          Twine(factor) + why)
      .str();
}

static std::string outside(const char *field, int64_t value, const char *wanted,
                           const TargetInfo &target) {
  return (Twine(field) + " = " + Twine(value) + ", " +
          llvm::StringRef(target.name) + " takes " + wanted)
      .str();
}

static std::string findCPUObstacle(const Tiles &tiles,
                                   const TargetInfo &target) {
  if (tiles.warps != 1)
    return outside("warps", tiles.warps, "1", target);
  if (tiles.stages != 1)
    return outside("stages", tiles.stages, "1", target);
  if (tiles.qInRegisters)
    return "q_in_registers = true, cpu has no register tiles";
  if (tiles.blockQ > 1024)
    return outside("block_q", tiles.blockQ, "at most 1024", target);
  if (tiles.blockK > 1024)
    return outside("block_k", tiles.blockK, "at most 1024", target);
  return "";
}

std::string plan::findObstacle(const Workload &workload, const Tiles &tiles,
                               const TargetInfo &target) {
  if (target.sm == 0)
    return findCPUObstacle(tiles, target);
  if (target.hasWarpgroups) {
    if (tiles.warps != 4 && tiles.warps != 8 && tiles.warps != 12 &&
        tiles.warps != 16)
      return outside("warps", tiles.warps, "4, 8, 12 or 16", target);
  } else if (tiles.warps != 1 && tiles.warps != 2 && tiles.warps != 4 &&
             tiles.warps != 8) {
    return outside("warps", tiles.warps, "1, 2, 4 or 8", target);
  }
  if (usesWarpgroups(workload, target)) {
    int64_t rows = groupRows * (tiles.warps / warpsPerGroup);
    if (tiles.blockQ % rows)
      return notMultiple("block_q", tiles.blockQ, rows,
                         ", 64 rows per group of 4 warps");
    if (tiles.blockK > 256)
      return outside("block_k", tiles.blockK, "at most 256", target);
    if (tiles.qInRegisters)
      return "q_in_registers = true, the matrix instructions of " +
             std::string(target.name) + " read the queries in shared memory";
  } else if (tiles.consumerRegisters != 0) {
    return "consumer_registers = " + std::to_string(tiles.consumerRegisters) +
           ", expected none: such a kernel has no roles";
  } else if (tiles.blockQ % (matrixRows * tiles.warps)) {
    return notMultiple("block_q", tiles.blockQ, matrixRows * tiles.warps,
                       ", 16 rows per warp");
  }
  if (tiles.blockK % matrixDepth)
    return notMultiple("block_k", tiles.blockK, matrixDepth,
                       ", the depth of a matrix instruction");
  if (tiles.stages > 4)
    return outside("stages", tiles.stages, "1 to 4", target);
  Budget budget = computeBudget(workload, tiles, target);
  if (budget.sharedBytes() > target.sharedBytesPerBlock)
    return (Twine(budget.describeShared()) + ", " +
            llvm::StringRef(target.name) + " has " +
            Twine(target.sharedBytesPerBlock) + " B")
        .str();
  if (budget.registers() > budget.registerLimit)
    return ("about " + Twine(budget.registers()) + " registers per thread, " +
            llvm::StringRef(target.name) + " has " +
            Twine(budget.registerLimit) +
            (usesWarpgroups(workload, target)
                 ? " with " + Twine(tiles.warps) + " warps"
                 : Twine("")))
        .str();
  return "";
}
