//===- StageGathers.cpp - boxes of captured tensors as tiles --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bias of each query and key is a box of a captured tensor for each tile of
// scores. Lane by lane it is read in pieces of four bytes (in a tile of keys by
// queries of two), eight rows of memory with each instruction; where TMA may
// copy the box to shared memory, as it does tiles of keys, ldmatrix reads
// sixteen bytes of each row there. Of an H200, 8192 tokens, d = 64 to 256: 1.3
// to 1.9 times as fast, gradients 1.6 to 2.5 times.
//
// Only what the caller promises to be aligned comes in this way: other tensors
// would have to be copied first.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "attn/Dialect/Attn/IR/ArgumentAttributes.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;

/// The first of coordinates along an axis.
static Value matchCoords(Value index, int64_t axis) {
  auto coords = index.getDefiningOp<tile::CoordsOp>();
  bool isAlong = coords && static_cast<int64_t>(coords.getAxis()) == axis;
  return isAlong ? coords.getBase() : Value();
}

/// Whether a gather is a box of rows of consecutive elements, which are rows of
/// the result or, `transposed`, columns.
static bool isBox(tile::GatherOp gather, bool transposed) {
  ValueRange indices = gather.getIndices();
  if (indices.size() < 2 || !matchCoords(indices.back(), transposed ? 0 : 1) ||
      !matchCoords(indices.drop_back().back(), transposed ? 1 : 0))
    return false;
  return llvm::all_of(indices.drop_back(2),
                      [](Value index) { return index.getType().isInteger(); });
}

/// Whether a tile stands where a ring may be refilled, and is read beside it.
static bool isInStep(Operation *op) {
  return isa<scf::ForOp, warp::KernelOp>(op->getParentOp()) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock();
         });
}

/// The rows of the tensor that a result is of.
static VectorType getBoxType(tile::GatherOp gather) {
  auto type = cast<VectorType>(gather.getResult().getType());
  SmallVector<int64_t> shape(type.getShape());
  if (isBox(gather, /*transposed=*/true))
    std::swap(shape[0], shape[1]);
  return VectorType::get(shape, type.getElementType());
}

static bool isStageable(tile::GatherOp gather, AtomChoice choice) {
  auto type = dyn_cast<VectorType>(gather.getResult().getType());
  auto view = cast<MemRefType>(gather.getView().getType());
  if (!type || type.getRank() != 2 || llvm::is_contained(type.getShape(), 1) ||
      !isa<Float16Type, BFloat16Type>(type.getElementType()) ||
      !isAlignedArgument(gather.getView()) || !isInStep(gather))
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(view.getStridesAndOffset(strides, offset)) || strides.empty() ||
      strides.back() != 1)
    return false;
  // ldmatrix transposes what lies in one panel.
  constexpr int64_t columnsOfPanel = 64;
  if (!isBox(gather, /*transposed=*/false) &&
      (!isBox(gather, /*transposed=*/true) ||
       type.getShape()[0] % columnsOfPanel != 0))
    return false;
  VectorType box = getBoxType(gather);
  warp::SlotType slot =
      getSlotType(box.getShape(), box.getElementType(), choice);
  return warp::findTMAObstacle(view, slot, box.getShape()[0]).empty();
}

namespace {
/// The bytes of shared memory that a kernel's tiles take, about.
class TileBytes {
public:
  TileBytes(warp::KernelOp kernel, AtomChoice choice)
      : stages(kernel.getStages().value_or(1)), choice(choice) {}

  void count(warp::KernelOp kernel);
  void add(Operation *op, Value view, VectorType type);
  int64_t total() const {
    int64_t bytes = 0;
    for (auto &[key, slots] : tiles)
      bytes += slots;
    return bytes;
  }

private:
  int64_t slotBytes(VectorType type) const {
    return getSlotType(type.getShape(), type.getElementType(), choice)
        .getLayout()
        .bytes();
  }

  int64_t stages;
  AtomChoice choice;
  llvm::MapVector<std::pair<Value, Type>, int64_t> tiles;
};
} // namespace

/// Tiles of a view that are refilled share a ring.
void TileBytes::add(Operation *op, Value view, VectorType type) {
  int64_t &bytes = tiles[{view, type}];
  int64_t depth = isa<scf::ForOp>(op->getParentOp()) ? stages : 1;
  bytes = std::max(bytes, depth * slotBytes(type));
}

void TileBytes::count(warp::KernelOp kernel) {
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      auto type = cast<VectorType>(load.getResult().getType());
      if (!load.getPacked() && type.getRank() == 2)
        add(op, load.getView(), type);
    }
    // Operands that products take from memory.
    auto contract = dyn_cast<vector::ContractionOp>(op);
    if (!contract)
      return;
    auto addComputed = [&](Value operand) {
      if (!operand.getDefiningOp<tile::LoadOp>())
        tiles[{operand, operand.getType()}] =
            slotBytes(cast<VectorType>(operand.getType()));
    };
    addComputed(contract.getRhs());
    if (isTransposed(contract, 0))
      addComputed(contract.getLhs());
  });
}

static Value toIndex(RewriterBase &rewriter, Location loc, Value number) {
  auto cast = number.getDefiningOp<arith::IndexCastOp>();
  if (cast && cast.getIn().getType().isIndex())
    return cast.getIn();
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(),
                                    number);
}

static void stage(RewriterBase &rewriter, tile::GatherOp gather) {
  Location loc = gather.getLoc();
  rewriter.setInsertionPoint(gather);
  SmallVector<Value> indices;
  for (Value index : gather.getIndices()) {
    auto coords = index.getDefiningOp<tile::CoordsOp>();
    indices.push_back(
        toIndex(rewriter, loc, coords ? coords.getBase() : index));
  }
  Value box = tile::LoadOp::create(
      rewriter, loc, getBoxType(gather), gather.getView(), indices,
      /*sliceEnd=*/Value(), /*packed=*/false, /*slices=*/1);
  if (isBox(gather, /*transposed=*/true))
    box = vector::TransposeOp::create(rewriter, loc, box,
                                      ArrayRef<int64_t>{1, 0});
  rewriter.replaceOp(gather, box);
}

void attn::stageGathers(RewriterBase &rewriter, warp::KernelOp kernel,
                        AtomChoice choice, int64_t sharedBytes) {
  // All of a tensor, or none, and one in each block: the first ones and those
  // of loops share a ring.
  llvm::MapVector<Value, SmallVector<tile::GatherOp>> gathers;
  DenseSet<Value> others;
  DenseSet<std::pair<Value, Block *>> seen;
  kernel.walk([&](tile::GatherOp gather) {
    Value view = gather.getView();
    if (isStageable(gather, choice) &&
        seen.insert({view, gather->getBlock()}).second)
      gathers[view].push_back(gather);
    else
      others.insert(view);
  });
  // Barriers and the numbers of tiles lie in shared memory, too.
  constexpr int64_t rest = 1024;
  TileBytes bytes(kernel, choice);
  bytes.count(kernel);
  for (auto &[view, ofView] : gathers) {
    TileBytes with = bytes;
    for (tile::GatherOp gather : ofView)
      with.add(gather, view, getBoxType(gather));
    if (others.contains(view) || with.total() + rest > sharedBytes)
      continue;
    for (tile::GatherOp gather : ofView) {
      bytes.add(gather, view, getBoxType(gather));
      stage(rewriter, gather);
    }
  }
}
