//===- HideFaint.cpp - keys whose weights are nothing are not visited -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores scale * q . k + slope * j of a row differ from slope * j by at most
//
//   B = |scale| max |q| max |k|
//
// (Cauchy and Schwarz). Let n be the last key that a row sees, and slope > 0.
// The row's greatest score is at least slope * n - B, and that of key j at most
// slope * j + B: the weight of key j is at most exp(-T) of the greatest one if
//
//   n - j > (2 B + T) / slope = the head's width.
//
// With T = 110 that is 2^-158: as f32 has it, nothing, and what the definition
// gives is the same number. So blocks that far from the last key are not
// visited; where the slope is negative, those that far from the first one; and
// where it is that of a distance, those that far from where that is 0.
//
// Three kernels of one warp a block run before: they take the norms of the
// rows, 32 to a block, of keys and of queries, and compute the widths. A key
// that is not finite has an infinite norm, and so has one whose value is not:
// then nothing is left out, and NaN goes where the definition has it.
//
//===----------------------------------------------------------------------===//

#include "SlopedKernel.h"

#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include <limits>

namespace attn::tile {
#define GEN_PASS_DEF_TILEHIDEFAINT
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Rows whose norms one warp takes.
static constexpr int64_t rowsOfWarp = 32;
/// Norms that one warp reads at once.
static constexpr int64_t normsAtOnce = 128;
/// Weights of at most exp(-T) count as nothing; f32 has none below exp(-104).
/// What is between is room for the rounding of scores.
static constexpr double faintness = 110;
/// Twice, with room for the rounding of norms and products.
static constexpr double twice = 2.002;
/// A width that leaves out no key.
static constexpr double noWidth = 0x1p30;
/// Biases below it are rounded by less than 1.
static constexpr double mostBias = 0x1p22;

namespace {
/// The greatest |row|^2 of each 32 rows of a head, and how many there are.
struct Norms {
  Value memory, blocks;
};

class FaintHider {
public:
  FaintHider(RewriterBase &rewriter, SlopedKernel &kernel)
      : b(rewriter), loc(kernel.grid.getLoc()), kernel(kernel) {}

  void build();

private:
  Value integer(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
  Value sizeOf(LoadOp load, int64_t dimension) {
    return memref::DimOp::create(b, loc, load.getView(), index(dimension));
  }
  Value allocate(ValueRange sizes);
  KernelOp beginKernel(StringRef suffix, ValueRange sizes);
  Value sumSquares(LoadOp load, ValueRange numbers, Value firstRow);
  Value greatest(Value vector);
  Norms buildNorms(LoadOp load, LoadOp beside, StringRef suffix);
  Value readNorm(const Norms &norms, Value batch, Value head);
  Value cloneHere(Value value, IRMapping &mapping);
  Value emit(ArrayRef<ConstantTerm> terms, IRMapping &mapping);
  void buildWidths(const Norms &keyNorms, const Norms &queryNorms);
  Value positionOf(Value row, const KeyOffset &offset);
  void limitLoops();

  RewriterBase &b;
  Location loc;
  SlopedKernel &kernel;
  Value keys; // how many
  Value widths;
};
} // namespace

//===----------------------------------------------------------------------===//
// Norms and widths
//===----------------------------------------------------------------------===//

Value FaintHider::allocate(ValueRange sizes) {
  SmallVector<int64_t> shape(sizes.size(), ShapedType::kDynamic);
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getI32Type()),
                                 sizes);
}

/// A kernel of one warp a block before that of the tiles; the builder stands in
/// it then.
KernelOp FaintHider::beginKernel(StringRef suffix, ValueRange sizes) {
  std::string name = (kernel.grid.getSymName() + suffix).str();
  auto grid = KernelOp::create(
      b, loc, KernelOp::findName(kernel.grid->getBlock(), name),
      kernel.grid.getPlan().withOneWarp(), sizes);
  b.setInsertionPoint(grid.getTerminator());
  return grid;
}

/// |row|^2 of each row, from `firstRow` on, as vector<32xf32>.
Value FaintHider::sumSquares(LoadOp load, ValueRange numbers, Value firstRow) {
  auto type = cast<VectorType>(load.getType());
  Type f32 = b.getF32Type();
  auto part =
      VectorType::get({rowsOfWarp, type.getDimSize(1)}, type.getElementType());
  Value places[] = {numbers[0], numbers[1], firstRow, index(0)};
  Value tile = LoadOp::create(b, loc, part, load.getView(), places);
  if (!type.getElementType().isF32())
    tile = arith::ExtFOp::create(b, loc, VectorType::get(part.getShape(), f32),
                                 tile);
  Value squares = arith::MulFOp::create(b, loc, tile, tile);
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(VectorType::get(rowsOfWarp, f32)));
  return vector::MultiDimReductionOp::create(b, loc, squares, zero,
                                             ArrayRef<bool>{false, true},
                                             vector::CombiningKind::ADD);
}

/// Of i32 numbers that are not negative.
Value FaintHider::greatest(Value vector) {
  return vector::MultiDimReductionOp::create(b, loc, vector, integer(0),
                                             ArrayRef<bool>{true, true},
                                             vector::CombiningKind::MAXSI);
}

/// The greatest |row|^2 of each 32 rows, as the bits of f32: of numbers that
/// are not negative they have the same order, and those of NaN come last.
/// Infinite where a row of `beside` is not finite.
Norms FaintHider::buildNorms(LoadOp load, LoadOp beside, StringRef suffix) {
  Value length = sizeOf(load, 2);
  Value blocks =
      b.createOrFold<arith::CeilDivSIOp>(loc, length, index(rowsOfWarp));
  Value sizes[] = {sizeOf(load, 0), sizeOf(load, 1), blocks};
  Norms norms = {allocate(sizes), blocks};
  OpBuilder::InsertionGuard guard(b);
  KernelOp grid = beginKernel(suffix, sizes);
  ValueRange numbers = grid.getNumbers();
  Value firstRow = arith::MulIOp::create(b, loc, numbers[2], index(rowsOfWarp));
  Value squares = sumSquares(load, numbers, firstRow);
  if (beside) {
    Value others = sumSquares(beside, numbers, firstRow);
    Type type = squares.getType();
    Value infinite = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(cast<ShapedType>(type),
                               std::numeric_limits<float>::infinity()));
    Value isFinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                           others, infinite);
    squares = arith::SelectOp::create(b, loc, isFinite, squares, infinite);
  }
  Value column = vector::ShapeCastOp::create(
      b, loc, VectorType::get({rowsOfWarp, 1}, b.getF32Type()), squares);
  Value bits = arith::BitcastOp::create(
      b, loc, VectorType::get({rowsOfWarp, 1}, b.getI32Type()), column);
  memref::StoreOp::create(b, loc, greatest(bits), norms.memory, numbers);
  return norms;
}

/// The greatest |row|^2 of a head.
Value FaintHider::readNorm(const Norms &norms, Value batch, Value head) {
  auto type = VectorType::get({1, normsAtOnce}, b.getI32Type());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  auto loop = scf::ForOp::create(b, loc, index(0), norms.blocks,
                                 index(normsAtOnce), ValueRange{none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value places = CoordsOp::create(b, loc, type, toI32(loop.getInductionVar()),
                                    /*axis=*/1);
    // After the last block it reads 0.
    Value part =
        GatherOp::create(b, loc, type, norms.memory,
                         ValueRange{toI32(batch), toI32(head), places},
                         /*sorted=*/false, /*inside=*/false, /*aligned=*/false);
    Value most = arith::MaxSIOp::create(b, loc, loop.getRegionIterArg(0), part);
    scf::YieldOp::create(b, loc, most);
  }
  return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                  greatest(loop.getResult(0)));
}

Value FaintHider::cloneHere(Value value, IRMapping &mapping) {
  if (mapping.contains(value) ||
      !kernel.grid->isAncestor(value.getParentRegion()->getParentOp()))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  SetVector<Value> read(llvm::from_range, op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  for (Value operand : read)
    cloneHere(operand, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

Value FaintHider::emit(ArrayRef<ConstantTerm> terms, IRMapping &mapping) {
  Value sum;
  for (const ConstantTerm &term : terms) {
    Value part = number(term.constant);
    for (Value factor : term.factors)
      part = arith::MulFOp::create(b, loc, part, cloneHere(factor, mapping));
    sum = sum ? arith::AddFOp::create(b, loc, sum, part).getResult() : part;
  }
  return sum ? sum : number(0);
}

void FaintHider::buildWidths(const Norms &keyNorms, const Norms &queryNorms) {
  Value queries = sizeOf(kernel.query, 2);
  keys = sizeOf(kernel.key, 2);
  Value sizes[] = {sizeOf(kernel.query, 0), sizeOf(kernel.query, 1)};
  widths = allocate(sizes);
  OpBuilder::InsertionGuard guard(b);
  KernelOp grid =
      beginKernel("_widths", ValueRange{sizes[0], sizes[1], index(1)});
  Value batch = grid.getNumber(0), head = grid.getNumber(1);
  IRMapping mapping;
  mapping.map(kernel.query.getIndices()[0], batch);
  mapping.map(kernel.query.getIndices()[1], head);
  Value keyHead = cloneHere(kernel.key.getIndices()[1], mapping);
  Value norms = arith::MulFOp::create(b, loc, readNorm(queryNorms, batch, head),
                                      readNorm(keyNorms, batch, keyHead));
  Value scale = math::AbsFOp::create(b, loc, emit(kernel.form.scale, mapping));
  Value slope = emit(kernel.form.slope, mapping);
  if (kernel.nearest != SlopedKernel::Nearest::Last)
    slope = arith::NegFOp::create(b, loc, slope);
  // 2 B + T
  Value bound =
      arith::MulFOp::create(b, loc, scale, math::SqrtOp::create(b, loc, norms));
  Value gap =
      math::FmaOp::create(b, loc, bound, number(twice), number(faintness));
  Value width = arith::DivFOp::create(b, loc, gap, slope);
  auto toFloat = [&](Value length) {
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), toI32(length));
  };
  Value positions =
      arith::AddFOp::create(b, loc, toFloat(queries), toFloat(keys));
  Value bias = arith::MulFOp::create(b, loc, slope, positions);
  // None of it holds of NaN.
  auto holds = [&](arith::CmpFPredicate predicate, Value value, double limit) {
    return arith::CmpFOp::create(b, loc, predicate, value, number(limit));
  };
  Value isKnown = arith::AndIOp::create(
      b, loc, holds(arith::CmpFPredicate::OGT, slope, 0),
      arith::AndIOp::create(b, loc,
                            holds(arith::CmpFPredicate::OLT, bias, mostBias),
                            holds(arith::CmpFPredicate::OLT, width, noWidth)));
  if (kernel.form.peak) {
    // Of each row there is a key: peak >= 0, peak + queries <= keys.
    Value peak = positionOf(index(0), *kernel.form.peak);
    Value end = arith::AddIOp::create(b, loc, peak, queries);
    auto isOrdered = [&](Value low, Value high) {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, low,
                                   high);
    };
    Value areKeys = arith::AndIOp::create(b, loc, isOrdered(index(0), peak),
                                          isOrdered(end, keys));
    isKnown = arith::AndIOp::create(b, loc, isKnown, areKeys);
  }
  width = arith::SelectOp::create(b, loc, isKnown, width, number(noWidth));
  Value whole = arith::AddIOp::create(
      b, loc, arith::FPToSIOp::create(b, loc, b.getI32Type(), width),
      integer(1));
  memref::StoreOp::create(b, loc, whole, widths, ValueRange{batch, head});
}

//===----------------------------------------------------------------------===//
// The loops
//===----------------------------------------------------------------------===//

/// The key that lies `offset` from a row.
Value FaintHider::positionOf(Value row, const KeyOffset &offset) {
  Value position = arith::AddIOp::create(b, loc, row, index(offset.constant));
  for (auto [value, count] : offset.values)
    position = arith::AddIOp::create(
        b, loc, position,
        arith::MulIOp::create(b, loc, toIndex(value), index(count)));
  return position;
}

/// Blocks too far from the nearest keys of the tile's rows are not visited.
void FaintHider::limitLoops() {
  BlockLoops &chain = kernel.chain;
  b.setInsertionPoint(chain.front());
  auto place = kernel.query.getIndices();
  Value width = toIndex(
      memref::LoadOp::create(b, loc, widths, ValueRange{place[0], place[1]}));
  Value firstRow = place[2], blockSize = index(kernel.keysOfBlock);
  SmallVector<Value> bounds = chain.getBounds();
  // Of the block with the last key so far above one.
  auto endAbove = [&](Value key) -> Value {
    key = arith::AddIOp::create(b, loc, key, width);
    Value block = arith::FloorDivSIOp::create(b, loc, key, blockSize);
    return arith::AddIOp::create(b, loc, block, index(1));
  };
  auto startBelow = [&](Value key) -> Value {
    key = arith::SubIOp::create(b, loc, key, width);
    return arith::FloorDivSIOp::create(b, loc, key, blockSize);
  };
  auto end = [&](Value block) {
    for (Value &bound : MutableArrayRef(bounds).drop_front())
      bound = arith::MinSIOp::create(b, loc, bound, block);
  };
  auto start = [&](Value block, size_t numMoved) {
    block = arith::MinSIOp::create(b, loc, block, bounds[numMoved]);
    for (Value &bound : MutableArrayRef(bounds).take_front(numMoved))
      bound = arith::MaxSIOp::create(b, loc, bound, block);
  };
  switch (kernel.nearest) {
  case SlopedKernel::Nearest::First:
    end(endAbove(index(0)));
    break;
  case SlopedKernel::Nearest::Peak: {
    Value first = positionOf(firstRow, *kernel.form.peak);
    Value last =
        arith::AddIOp::create(b, loc, first, index(kernel.rowsOfTile - 1));
    end(endAbove(last));
    start(startBelow(first), chain.loops.size());
    break;
  }
  case SlopedKernel::Nearest::Last: {
    Value last = arith::SubIOp::create(b, loc, keys, index(1));
    for (const KeyOffset &upper : kernel.shown.upper)
      last = arith::MinSIOp::create(b, loc, last, positionOf(firstRow, upper));
    // A window's left edge is the first loop. Else the loop that has no mask
    // is: the bound after it stays what it is, and groups of rows compute their
    // own (tile-group-bounds).
    start(startBelow(last),
          kernel.shown.lower.empty() ? 1 : chain.loops.size());
    break;
  }
  }
  for (auto [number, loop] : llvm::enumerate(chain.loops)) {
    loop.setLowerBound(bounds[number]);
    loop.setUpperBound(bounds[number + 1]);
  }
}

void FaintHider::build() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.grid);
  Norms keyNorms = buildNorms(kernel.key, kernel.value, "_key_norms");
  Norms queryNorms = buildNorms(kernel.query, LoadOp(), "_query_norms");
  buildWidths(keyNorms, queryNorms);
  limitLoops();
  auto function = kernel.grid->getParentOfType<func::FuncOp>();
  b.setInsertionPoint(function.getBody().front().getTerminator());
  for (Value memory : {keyNorms.memory, queryNorms.memory, widths})
    memref::DeallocOp::create(b, loc, memory);
}

LogicalResult attn::tile::hideFaintKeys(RewriterBase &rewriter, KernelOp grid,
                                        std::string &reason) {
  FailureOr<SlopedKernel> kernel = SlopedKernel::read(grid, reason);
  if (failed(kernel))
    return failure();
  FaintHider(rewriter, *kernel).build();
  return success();
}

namespace {
struct TileHideFaint final
    : attn::SchedulePass<attn::tile::impl::TileHideFaintBase<TileHideFaint>,
                         KernelOp, TileForm::Peeled, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    if (failed(hideFaintKeys(rewriter, kernel, reason)))
      return missed(reason);
    passed() << "keys too far from the greatest bias are not visited";
  }
};
} // namespace
