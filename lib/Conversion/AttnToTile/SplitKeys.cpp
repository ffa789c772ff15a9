//===- SplitKeys.cpp - blocks that share the keys of a query block --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few queries give few blocks, each with a long loop over keys (Dao et al.,
// "Flash-Decoding for long-context inference"). With `split_keys` = P two
// kernels do what one does otherwise:
//
//   @f_parts   block n = P b + p of the batch entries goes through share p of
//              the key blocks that batch entry b sees (tile.share_blocks), and
//              leaves o, m and l as they are after its loop
//   @f_merge   for a few rows and columns of the output, over p:
//
//                m' = max(m, m[p])
//                l' = l exp(m - m') + l[p] exp(m[p] - m')
//                o' = o exp(m - m') + o[p] exp(m[p] - m')
//
//              and then the end of the one kernel, with the sink
//
// m and l are two numbers where lse would be one: beside a large m it would not
// hold l. A part without keys has m = -inf and l = 0, and weighs nothing. The
// parts are added in their order: two launches agree in every bit.
//
//===----------------------------------------------------------------------===//

#include "ForwardKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// A merged tile is what a warp holds of many parts at once: blocks of few rows
/// and columns are many blocks where there are few queries.
static constexpr int64_t mergedRows = 16, mergedColumns = 16;

namespace {
class SplitForward {
public:
  SplitForward(OpBuilder &b, const QueryKernel &kernel, StringRef name,
               const ForwardResults &results);

  void buildParts();
  void buildMerge();
  void freeWorkspaces();

private:
  tile::KernelOp beginKernel(StringRef suffix, PlanAttr plan, ValueRange grid);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// The quotient and the remainder of a number of a block.
  std::pair<Value, Value> divide(Value number, Value divisor) {
    return {b.createOrFold<arith::DivUIOp>(loc, number, divisor),
            b.createOrFold<arith::RemUIOp>(loc, number, divisor)};
  }
  SoftmaxState readPart(const QueryKernel &merged, const QueryBlock &block,
                        Value part, int64_t columns);
  SoftmaxState join(const SoftmaxState &first, const SoftmaxState &second);

  OpBuilder &b;
  const QueryKernel &kernel;
  std::string name;
  const ForwardResults &results;
  Location loc;
  PlanAttr plan;
  Value numParts, partBatches;
  /// By batch entry and part, head, row (and column); the sums null where
  /// nobody asks for the output.
  Value sums, maxima, totals;
};
} // namespace

SplitForward::SplitForward(OpBuilder &b, const QueryKernel &kernel,
                           StringRef name, const ForwardResults &results)
    : b(b), kernel(kernel), name(name), results(results), loc(kernel.loc) {
  ScoredOp op = kernel.attention;
  plan = op.getPlanAttr();
  numParts = constant(plan.getSplitKeys());
  partBatches = b.createOrFold<arith::MulIOp>(loc, kernel.batches, numParts);
  auto attention = cast<AttentionOp>(op.getOperation());
  Type f32 = b.getF32Type();
  if (llvm::is_contained(results.returned, attention.getOutput()))
    sums = allocate(b, loc, f32,
                    {partBatches, kernel.heads, kernel.queryLength,
                     constant(kernel.paddedValueDim)});
  for (Value *rows : {&maxima, &totals})
    *rows =
        allocate(b, loc, f32, {partBatches, kernel.heads, kernel.queryLength});
}

/// The builder then stands in the kernel.
tile::KernelOp SplitForward::beginKernel(StringRef suffix, PlanAttr plan,
                                         ValueRange grid) {
  auto program =
      tile::KernelOp::create(b, loc, (name + suffix).str(), plan, grid);
  b.setInsertionPoint(program.getTerminator());
  return program;
}

void SplitForward::buildParts() {
  OpBuilder::InsertionGuard guard(b);
  tile::KernelOp program = beginKernel(
      "_parts", plan,
      ValueRange{partBatches, kernel.headParts, kernel.queryBlocks});
  auto numbers = program.getNumbers();
  auto [batch, part] = divide(numbers[0], numParts);
  tile::ShareBlocksOp::create(b, loc, part, plan.getSplitKeys());
  QueryBlock block =
      buildQueryBlock(b, kernel, {batch, numbers[1], numbers[2]});
  SoftmaxState state = buildSteps(b, kernel, block);
  block.batch = numbers[0];
  if (sums)
    storeTile(b, kernel, block, state.sums[0], sums);
  storeRows(b, kernel, block, state.max, maxima);
  storeRows(b, kernel, block, state.sum, totals);
}

/// What a part left of the rows and columns of a block. Rows behind the last
/// query read what that one has, and are not stored: tests of each would take
/// longer than all loads.
SoftmaxState SplitForward::readPart(const QueryKernel &merged,
                                    const QueryBlock &block, Value part,
                                    int64_t columns) {
  Value first = arith::MulIOp::create(b, loc, block.batch, numParts);
  Value number =
      toCoordinate(b, loc, arith::AddIOp::create(b, loc, first, part));
  Value lastQuery = toCoordinate(
      b, loc, arith::SubIOp::create(b, loc, kernel.queryLength, constant(1)));
  Value rows = arith::MinSIOp::create(
      b, loc, block.rows,
      vector::BroadcastOp::create(b, loc, block.rows.getType(), lastQuery));
  SmallVector<Value> at = {number, block.head32, rows};
  auto gather = [&](Value view, int64_t size) -> Value {
    auto type = VectorType::get({merged.numRows, size}, b.getF32Type());
    return tile::GatherOp::create(b, loc, type, view, at, /*sorted=*/false,
                                  /*inside=*/true, /*aligned=*/size != 1);
  };
  SoftmaxState state;
  state.max = gather(maxima, 1);
  state.sum = gather(totals, 1);
  if (!sums)
    return state;
  at.push_back(tile::CoordsOp::create(
      b, loc, VectorType::get({1, columns}, b.getI32Type()),
      toCoordinate(b, loc, block.column), 1));
  state.sums.push_back(gather(sums, columns));
  return state;
}

SoftmaxState SplitForward::join(const SoftmaxState &first,
                                const SoftmaxState &second) {
  JoinedMaxima maxima = joinMaxima(b, loc, first.max, second.max);
  auto add = [&](Value lhs, Value rhs) -> Value {
    auto stretch = [&](Value weight) -> Value {
      return weight.getType() == lhs.getType()
                 ? weight
                 : vector::BroadcastOp::create(b, loc, lhs.getType(), weight);
    };
    Value kept =
        arith::MulFOp::create(b, loc, lhs, stretch(maxima.firstWeight));
    return math::FmaOp::create(b, loc, rhs, stretch(maxima.secondWeight), kept);
  };
  SoftmaxState joined;
  joined.max = maxima.max;
  joined.sum = add(first.sum, second.sum);
  for (auto [lhs, rhs] : llvm::zip_equal(first.sums, second.sums))
    joined.sums.push_back(add(lhs, rhs));
  return joined;
}

/// How many parts are read before the first is joined, so that one does not
/// wait for another: as many as the registers of a warp have room for.
static int64_t countPartsAtOnce(int64_t parts) {
  constexpr int64_t most = 8;
  for (int64_t count = most; count != 1; --count)
    if (parts % count == 0)
      return count;
  return 1;
}

void SplitForward::buildMerge() {
  OpBuilder::InsertionGuard guard(b);
  QueryKernel merged = kernel;
  merged.numRows = mergedRows;
  merged.blockRows = merged.queriesPerBlock = constant(mergedRows);
  merged.packedHeads = 1;
  int64_t columns = std::min(mergedColumns, kernel.paddedValueDim);
  Value columnBlocks =
      constant(sums ? llvm::divideCeil(kernel.paddedValueDim, columns) : 1);
  Value rowBlocks = ceilDiv(b, loc, kernel.queryLength, merged.blockRows);
  tile::KernelOp program = beginKernel(
      "_merge", plan.withOneWarp(),
      ValueRange{kernel.batches, kernel.heads,
                 b.createOrFold<arith::MulIOp>(loc, rowBlocks, columnBlocks)});
  auto numbers = program.getNumbers();
  auto [rowBlock, columnBlock] = divide(numbers[2], columnBlocks);
  QueryBlock block =
      buildQueryBlock(b, merged, {numbers[0], numbers[1], rowBlock});
  block.column =
      b.createOrFold<arith::MulIOp>(loc, columnBlock, constant(columns));
  if (getConstantIntValue(columnBlocks) != 1)
    block.ownsRows = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           columnBlock, kernel.c0);
  auto toValues = [](const SoftmaxState &state) {
    SmallVector<Value> values = {state.max, state.sum};
    llvm::append_range(values, state.sums);
    return values;
  };
  auto toState = [](ValueRange values) {
    return SoftmaxState{llvm::to_vector<2>(values.drop_front(2)), values[0],
                        values[1]};
  };
  SmallVector<int64_t> sumColumns(sums ? 1 : 0, columns);
  int64_t atOnce = countPartsAtOnce(plan.getSplitKeys());
  auto loop = scf::ForOp::create(b, loc, kernel.c0, numParts, constant(atOnce),
                                 toValues(emptySoftmax(b, merged, sumColumns)));
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<SoftmaxState> parts;
  for (int64_t place = 0; place != atOnce; ++place) {
    Value part = b.createOrFold<arith::AddIOp>(loc, loop.getInductionVar(),
                                               constant(place));
    parts.push_back(readPart(merged, block, part, columns));
  }
  SoftmaxState joined = toState(loop.getRegionIterArgs());
  for (const SoftmaxState &part : parts)
    joined = join(joined, part);
  scf::YieldOp::create(b, loc, toValues(joined));
  b.setInsertionPointAfter(loop);
  buildEpilogue(b, merged, block, results, toState(loop.getResults()));
}

void SplitForward::freeWorkspaces() {
  for (Value memory : {sums, maxima, totals})
    if (memory)
      memref::DeallocOp::create(b, loc, memory);
}

void attn::buildSplitForward(OpBuilder &b, const QueryKernel &kernel,
                             StringRef name, const ForwardResults &results) {
  SplitForward split(b, kernel, name, results);
  split.buildParts();
  split.buildMerge();
  split.freeWorkspaces();
}
