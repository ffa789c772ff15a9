//===- CaptureSums.cpp - what gradients of captures are sums of -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CaptureSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

std::optional<unsigned> CaptureSum::find(IndexKind kind) const {
  const auto *found = llvm::find(kinds, kind);
  if (found == kinds.end())
    return std::nullopt;
  return found - kinds.begin();
}

SmallVector<unsigned> CaptureSum::getTableDims() const {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < kinds.size(); ++dim)
    if (dim != find(IndexKind::Batch) && dim != find(IndexKind::Head))
      dims.push_back(dim);
  return dims;
}

namespace {
/// What a value of the pullback is computed from.
struct Source {
  bool isUniform = true; // no numbers of the block, no query, no key
  /// By how much the value grows if query and key both grow by 1, as far as
  /// that is the same everywhere.
  std::optional<int64_t> growth = 0;
};

class IndexReader {
public:
  explicit IndexReader(Block &pullback);
  IndexKind read(Value index) const;

private:
  Source derive(Operation &op) const;
  std::optional<int64_t> deriveGrowth(Operation &op) const;

  Block &block;
  llvm::DenseMap<Value, Source> sources;
};
} // namespace

// The arguments of a pullback: dy, x, b, h, i, j.
static constexpr unsigned firstPosition = 2;
static constexpr IndexKind positions[] = {IndexKind::Batch, IndexKind::Head,
                                          IndexKind::Query, IndexKind::Key};

IndexReader::IndexReader(Block &pullback) : block(pullback) {
  for (BlockArgument argument : block.getArguments())
    sources[argument] = Source();
  for (unsigned number = 0; number < firstPosition; ++number)
    sources[block.getArgument(number)] = {false, std::nullopt};
  for (auto [number, kind] : llvm::enumerate(positions))
    if (kind == IndexKind::Query || kind == IndexKind::Key)
      sources[block.getArgument(firstPosition + number)] = {false, 1};
  for (Operation &op : block.without_terminator()) {
    Source source = derive(op);
    for (Value result : op.getResults())
      sources[result] = source;
  }
}

Source IndexReader::derive(Operation &op) const {
  Source source;
  for (Value operand : op.getOperands())
    source.isUniform &= sources.lookup(operand).isUniform;
  if (!source.isUniform)
    source.growth = deriveGrowth(op);
  return source;
}

std::optional<int64_t> IndexReader::deriveGrowth(Operation &op) const {
  SmallVector<int64_t> operands;
  for (Value operand : op.getOperands()) {
    std::optional<int64_t> growth = sources.lookup(operand).growth;
    if (!growth)
      return std::nullopt;
    operands.push_back(*growth);
  }
  if (isa<arith::AddIOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubIOp>(op))
    return operands[0] - operands[1];
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(op))
    return operands[0];
  // What no operand changes, a function of them does not.
  if (llvm::all_of(operands, [](int64_t growth) { return growth == 0; }))
    return 0;
  return std::nullopt;
}

IndexKind IndexReader::read(Value index) const {
  for (auto [number, kind] : llvm::enumerate(positions))
    if (index == block.getArgument(firstPosition + number))
      return kind;
  Source source = sources.lookup(index);
  if (source.isUniform)
    return IndexKind::Uniform;
  return source.growth == 0 ? IndexKind::Distance : IndexKind::Other;
}

/// The form of a sum by the kinds of its indices.
static std::optional<SumForm> findForm(ArrayRef<IndexKind> kinds) {
  auto has = [&](IndexKind kind) { return llvm::is_contained(kinds, kind); };
  bool hasQuery = has(IndexKind::Query), hasKey = has(IndexKind::Key);
  bool hasDistance = has(IndexKind::Distance);
  bool isComputed = hasDistance || has(IndexKind::Other);
  if (isComputed && (hasQuery || hasKey))
    return std::nullopt;
  if (has(IndexKind::Other))
    return SumForm::Table;
  if (hasDistance)
    return SumForm::Distances;
  if (!hasQuery || !hasKey)
    return hasKey ? SumForm::Keys : SumForm::Rows;
  // A block of scores is a box of the last two dimensions.
  auto isPosition = [](IndexKind kind) {
    return kind == IndexKind::Query || kind == IndexKind::Key;
  };
  bool isBox = llvm::count_if(kinds, isPosition) == 2 &&
               llvm::all_of(kinds.take_back(2), isPosition);
  return isBox ? std::optional(SumForm::Pairs) : std::nullopt;
}

FailureOr<SmallVector<CaptureSum>>
attn::matchCaptureSums(AttentionBackwardOp op) {
  SmallVector<CaptureSum> sums;
  if (!op.hasPullback())
    return sums;
  Block &block = op.getPullback().front();
  IndexReader reader(block);
  for (auto add : block.getOps<CaptureAddOp>()) {
    unsigned capture = cast<BlockArgument>(add.getCapture()).getArgNumber() -
                       AttentionBackwardOp::kPullbackArguments;
    auto kinds = llvm::map_to_vector(
        add.getIndices(), [&](Value index) { return reader.read(index); });
    std::optional<SumForm> form = findForm(kinds);
    if (!form)
      return add.emitOpError("adds to capture #")
             << capture << " at indices whose sums have no kernel, wanted "
             << "query or key beside those of batch and head, or both as the "
             << "last two, or computed ones and neither";
    for (const CaptureSum &other : sums) {
      bool isBox = *form == SumForm::Pairs || other.form == SumForm::Pairs;
      if (other.capture != capture || !isBox ||
          CaptureAddOp(other.op).getIndices() == add.getIndices())
        continue;
      InFlightDiagnostic error = add.emitOpError("adds to capture #")
                                 << capture << " at other indices than before, "
                                 << "wanted the same where one of them are "
                                 << "query and key";
      error.attachNote(CaptureAddOp(other.op).getLoc()) << "here";
      return error;
    }
    sums.push_back({add, capture, *form, std::move(kinds)});
  }
  return sums;
}
