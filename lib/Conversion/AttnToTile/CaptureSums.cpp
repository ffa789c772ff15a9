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

std::optional<unsigned> CaptureSum::findTableRow() const {
  std::optional<unsigned> query = find(IndexKind::Query);
  return query ? query : find(IndexKind::Key);
}

SmallVector<unsigned> CaptureSum::getTableDims() const {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < kinds.size(); ++dim)
    if (dim != find(IndexKind::Batch) && dim != find(IndexKind::Head) &&
        dim != findTableRow())
      dims.push_back(dim);
  return dims;
}

// The arguments of a pullback: dy, x, b, h, i, j.
static constexpr unsigned firstPosition = 2;
static constexpr IndexKind positions[] = {IndexKind::Batch, IndexKind::Head,
                                          IndexKind::Query, IndexKind::Key};

/// Positions that sums by distance take as one: each of them has its own, over
/// all pairs that are as many apart.
static constexpr int64_t mostPositions = 512;

static IndexKind getKind(Block &pullback, Value index, PositionDigits &digits) {
  for (auto [number, kind] : llvm::enumerate(positions))
    if (index == pullback.getArgument(firstPosition + number))
      return kind;
  DigitForm form = digits.read(index);
  if (form.isUniform())
    return IndexKind::Uniform;
  bool isDistance =
      form.isOfDifferences && digits.getScales().back() <= mostPositions;
  return isDistance ? IndexKind::Distance : IndexKind::Other;
}

static CaptureSum readSum(Block &pullback, CaptureAddOp add) {
  PositionDigits digits(pullback, add.getIndices());
  CaptureSum sum;
  sum.op = add;
  sum.capture = cast<BlockArgument>(add.getCapture()).getArgNumber() -
                AttentionBackwardOp::kPullbackArguments;
  sum.scales = llvm::to_vector(digits.getScales());
  llvm::SmallDenseSet<unsigned> owned;
  for (Value index : add.getIndices()) {
    sum.kinds.push_back(getKind(pullback, index, digits));
    std::optional<CaptureSum::OwnDigit> own;
    if (sum.kinds.back() == IndexKind::Distance) {
      DigitForm form = digits.read(index);
      std::optional<unsigned> digit = form.getOwnDigit();
      if (digit && owned.insert(*digit).second)
        own = {*digit, form.query[*digit] > 0};
    }
    sum.ownDigits.push_back(own);
  }
  return sum;
}

/// The form of a sum by the kinds of its indices.
static std::optional<SumForm> findForm(ArrayRef<IndexKind> kinds) {
  auto has = [&](IndexKind kind) { return llvm::is_contained(kinds, kind); };
  bool hasQuery = has(IndexKind::Query), hasKey = has(IndexKind::Key);
  bool hasDistance = has(IndexKind::Distance);
  bool isComputed = hasDistance || has(IndexKind::Other);
  if (isComputed && hasQuery && hasKey)
    return std::nullopt;
  if (has(IndexKind::Other) || (isComputed && (hasQuery || hasKey)))
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

/// Whether bins for each element (CaptureTables.cpp) cost less than sums by
/// distance, which visit all pairs, hidden ones too: where the elements that
/// are not numbered by batch entries and heads are few, and the mask hides
/// some. Windows behind one another hide most.
static bool prefersBins(AttentionBackwardOp op, const CaptureSum &sum) {
  constexpr int64_t few = 136, fewOfWindows = 2 * few;
  if (!op.hasMask())
    return false;
  auto type = cast<ShapedType>(op.getCaptures()[sum.capture].getType());
  int64_t elements = 1;
  for (unsigned dim : sum.getTableDims()) {
    if (type.isDynamicDim(dim) || elements > fewOfWindows)
      return false;
    elements *= type.getDimSize(dim);
  }
  bool hasWindows = llvm::any_of(op.getMask().front(), [](Operation &inner) {
    return isa<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(inner);
  });
  return elements <= (hasWindows ? fewOfWindows : few);
}

FailureOr<SmallVector<CaptureSum>>
attn::matchCaptureSums(AttentionBackwardOp op) {
  SmallVector<CaptureSum> sums;
  if (!op.hasPullback())
    return sums;
  Block &block = op.getPullback().front();
  for (auto add : block.getOps<CaptureAddOp>()) {
    CaptureSum sum = readSum(block, add);
    unsigned capture = sum.capture;
    std::optional<SumForm> form = findForm(sum.kinds);
    if (!form)
      return add.emitOpError("adds to capture #")
             << capture << " at indices whose sums have no kernel, wanted "
             << "query or key beside those of batch and head, or both as the "
             << "last two, or computed ones and at most one of them";
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
    bool isTable = form == SumForm::Distances && prefersBins(op, sum);
    sum.form = isTable ? SumForm::Table : *form;
    sums.push_back(std::move(sum));
  }
  return sums;
}
