//===- Budget.cpp - bytes and registers of a plan -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Budget.h"

#include "attn/Layout/Products.h"
#include "attn/Support/RoleRegisters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace attn;
using namespace attn::plan;
using llvm::Twine;

static constexpr int64_t barrierBytesPerSlot = 16;

int64_t plan::padHeadDim(int64_t dim) {
  return llvm::alignTo(dim, layout::mmaSync.depth);
}

/// The instruction that multiplies such elements on a GPU.
static const layout::ProductTraits &chooseProduct(const Workload &workload,
                                                  const TargetInfo &target) {
  if (workload.elementBytes != 2)
    return workload.hasIeeeProducts ? layout::fmaF32 : layout::mmaTF32;
  return target.hasWarpgroups ? layout::wgmma : layout::mmaSync;
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
  if (chooseProduct(workload, target).readsPanels)
    rowBytes = llvm::alignTo(rowBytes, rowBytes % 128 == 0 ? 128
                                       : rowBytes <= 32    ? 32
                                                           : 64);
  return rows * rowBytes;
}

/// Columns of f32 that a kernel accumulates per row: those of the output; of
/// the gradients of key and value together, as long as lanes have registers for
/// them.
static int64_t countSummedColumns(const Workload &workload,
                                  const Tiles &tiles) {
  int64_t dim = padHeadDim(workload.headDim);
  int64_t valueDim = padHeadDim(workload.valueHeadDim);
  if (!workload.isBackward)
    return valueDim;
  int64_t most = layout::countMostSummedColumns(tiles.blockQ, tiles.warps);
  return dim + valueDim <= most ? dim + valueDim : std::max(dim, valueDim);
}

Budget plan::computeBudget(const Workload &workload, const Tiles &tiles,
                           const TargetInfo &target) {
  int64_t dim = padHeadDim(workload.headDim);
  int64_t valueDim = padHeadDim(workload.valueHeadDim);
  const layout::ProductTraits &product = chooseProduct(workload, target);
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
  // What warps compute for those that have other columns of their rows.
  if (workload.isBackward && !product.readsPanels &&
      layout::chooseGridColumns(tiles.blockQ, tiles.warps) > 1)
    budget.buffers.insert(budget.buffers.end(),
                          {{"weights", slot(tiles.blockQ, tiles.blockK)},
                           {"dS", slot(tiles.blockQ, tiles.blockK)}});
  if (workload.isJvp)
    budget.buffers.insert(
        budget.buffers.end(),
        {{"tQ", slot(tiles.blockQ, dim)},
         {"tK", slot(tiles.blockK, dim), tiles.stages, /*isRing=*/true},
         {"tV", slot(tiles.blockK, valueDim), tiles.stages, /*isRing=*/true}});

  int64_t threads = tiles.warps * layout::warpSize;
  auto perThread = [&](int64_t elements, int64_t bytes) -> int64_t {
    return llvm::divideCeil(elements * bytes, threads * 4);
  };
  budget.tiles = {
      {"scores", perThread(tiles.blockQ * tiles.blockK, 4)},
      {"output",
       perThread(tiles.blockQ * countSummedColumns(workload, tiles), 4)}};
  if (workload.isBackward)
    budget.tiles.push_back(
        {"gradient", perThread(tiles.blockQ * tiles.blockK, 4)});
  if (workload.isJvp)
    budget.tiles.insert(
        budget.tiles.end(),
        {{"score tangents", perThread(tiles.blockQ * tiles.blockK, 4)},
         {"output tangents", perThread(tiles.blockQ * valueDim, 4)}});
  budget.allowance = product.registers;
  if (product.isAsync) {
    for (const TileBuffer &buffer : budget.buffers)
      budget.barrierBytes += barrierBytesPerSlot * buffer.slots;
    budget.registerLimit =
        shareRegisters(tiles.warps, tiles.consumerRegisters, tiles.blocksPerSM)
            .consumer;
    // Of gradients the weights lie where scores were.
    if (!workload.isBackward)
      budget.tiles.push_back({"weights", perThread(tiles.blockQ * tiles.blockK,
                                                   workload.isJvp ? 4 : 2)});
    return budget;
  }
  int64_t rowsPerThread =
      2 * llvm::divideCeil(tiles.blockQ, tiles.warps * product.rows);
  budget.registerLimit = target.registersPerThread;
  budget.tiles.push_back({"statistics", 3 * rowsPerThread});
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
    return tiles.blocksPerSM;
  int64_t threads = tiles.warps * layout::warpSize;
  int64_t registersPerWarp =
      llvm::alignTo(std::min(budget.registers(), target.registersPerThread) *
                        layout::warpSize,
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

/// What is in the way of warps that share rows: as gradients of f32 have them,
/// whose sums would not fit the registers of fewer warps.
static std::string findRowSharingObstacle(const Workload &workload,
                                          const Tiles &tiles, int64_t groups,
                                          const TargetInfo &target) {
  const layout::ProductTraits &product = chooseProduct(workload, target);
  bool canShare = workload.isBackward && product.sharesColumns &&
                  !product.readsPanels && workload.elementBytes == 4;
  if (!canShare)
    return notMultiple("block_q", tiles.blockQ, product.rows * tiles.warps,
                       ", 16 rows per warp");
  if (tiles.qInRegisters)
    return "q_in_registers = true, warps that share rows read the queries in "
           "shared memory";
  for (auto [field, columns] :
       {std::pair("block_k", tiles.blockK),
        {"head_dim", padHeadDim(workload.headDim)},
        {"value_dim", padHeadDim(workload.valueHeadDim)}})
    if (columns % (8 * groups) != 0)
      return notMultiple(field, columns, 8 * groups,
                         ", " + Twine(groups) + " warps share a row");
  return "";
}

/// What is in the way of `split_keys` and `packed_heads`.
static std::string findSharingObstacle(const Workload &workload,
                                       const Tiles &tiles,
                                       const TargetInfo &target) {
  auto refuse = [&](const char *field, int64_t value, const char *why) {
    return (Twine(field) + " = " + Twine(value) + ", " +
            (workload.isBackward ? "gradients" : "tangents") +
            " take 1: " + why)
        .str();
  };
  bool isAttention = !workload.isBackward && !workload.isJvp;
  if (tiles.splitKeys != 1 && workload.isJvp)
    return refuse("split_keys", tiles.splitKeys,
                  "only attention and its gradients merge parts");
  if (tiles.blocksPerSM != 1 && !isAttention)
    return refuse("blocks_per_sm", tiles.blocksPerSM,
                  "only attention itself shares a multiprocessor");
  int64_t heads = tiles.packedHeads;
  if (heads == 1)
    return "";
  if (!isAttention)
    return refuse("packed_heads", heads,
                  "only attention itself has tiles of several heads");
  if (workload.headsPerKeyHead != 0 && heads > workload.headsPerKeyHead)
    return (Twine("packed_heads = ") + Twine(heads) + ", " +
            Twine(workload.headsPerKeyHead) + " query heads share a key head")
        .str();
  // Rows of shared memory are swizzled by eight.
  int64_t least = target.sm == 0 ? 1 : layout::rowsOfSwizzle;
  if (tiles.blockQ % (heads * least) != 0)
    return notMultiple("block_q", tiles.blockQ, heads * least,
                       ", " + Twine(heads) + " heads" +
                           (least == 1 ? "" : " by 8 rows"));
  return "";
}

std::string plan::findObstacle(const Workload &workload, const Tiles &tiles,
                               const TargetInfo &target) {
  std::string sharing = findSharingObstacle(workload, tiles, target);
  if (!sharing.empty())
    return sharing;
  if (target.sm == 0)
    return findCPUObstacle(tiles, target);
  const layout::ProductTraits &product = chooseProduct(workload, target);
  if (product.isAsync) {
    if (tiles.warps != 4 && tiles.warps != 8 && tiles.warps != 12 &&
        tiles.warps != 16)
      return outside("warps", tiles.warps, "4, 8, 12 or 16", target);
  } else if (tiles.warps != 1 && tiles.warps != 2 && tiles.warps != 4 &&
             tiles.warps != 8) {
    return outside("warps", tiles.warps, "1, 2, 4 or 8", target);
  }
  int64_t rows = product.rows * (tiles.warps / product.warpsAtOnce);
  if (product.isAsync) {
    if (tiles.blockQ % rows)
      return notMultiple("block_q", tiles.blockQ, rows,
                         ", 64 rows per group of 4 warps");
    if (tiles.blockK > 256)
      return outside("block_k", tiles.blockK, "at most 256", target);
    // They take them from registers, too; but registers that stay for all steps
    // of a loop ptxas 13.0 gives to other values within it (a gradient of a
    // window was wrong on an H100).
    if (tiles.qInRegisters)
      return "q_in_registers = true, the matrix instructions of " +
             std::string(target.name) + " read the queries in shared memory";
  } else if (tiles.consumerRegisters != 0) {
    return "consumer_registers = " + std::to_string(tiles.consumerRegisters) +
           ", expected none: such a kernel has no roles";
  } else if (tiles.blocksPerSM != 1) {
    return "blocks_per_sm = " + std::to_string(tiles.blocksPerSM) +
           ", expected 1: such a kernel has no roles";
  } else if (int64_t groups =
                 layout::chooseGridColumns(tiles.blockQ, tiles.warps);
             groups > 1) {
    std::string obstacle =
        findRowSharingObstacle(workload, tiles, groups, target);
    if (!obstacle.empty())
      return obstacle;
  } else if (tiles.blockQ % rows) {
    return notMultiple("block_q", tiles.blockQ, rows, ", 16 rows per warp");
  }
  if (tiles.blockK % layout::mmaSync.depth)
    return notMultiple("block_k", tiles.blockK, layout::mmaSync.depth,
                       ", the depth of a matrix instruction");
  if (tiles.stages > 4)
    return outside("stages", tiles.stages, "1 to 4", target);
  Budget budget = computeBudget(workload, tiles, target);
  if (budget.sharedBytes() > target.sharedBytesPerBlock)
    return (Twine(budget.describeShared()) + ", " +
            llvm::StringRef(target.name) + " has " +
            Twine(target.sharedBytesPerBlock) + " B")
        .str();
  if (int64_t blocks = tiles.blocksPerSM; blocks != 1) {
    if (!tiles.onGrid)
      return "blocks_per_sm = " + std::to_string(blocks) +
             ", expected scheduler = grid: other blocks stay, one for each "
             "multiprocessor";
    int64_t bytes =
        target.sharedBytesPerSM / blocks - target.sharedBytesReserved;
    if (budget.sharedBytes() > bytes)
      return (Twine(budget.describeShared()) + ", each of " + Twine(blocks) +
              " blocks of a multiprocessor has " + Twine(bytes) + " B")
          .str();
  }
  if (budget.registers() > budget.registerLimit)
    return ("about " + Twine(budget.registers()) + " registers per thread, " +
            llvm::StringRef(target.name) + " has " +
            Twine(budget.registerLimit) +
            (product.isAsync ? " with " + Twine(tiles.warps) + " warps"
                             : Twine("")))
        .str();
  return "";
}
