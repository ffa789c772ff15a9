//===- WarpFragments.cpp - fragments from lane to lane ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"

#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

/// Each lane finds the elements of `to` among its own of `from`.
LogicalResult WarpRunner::stretch(Operation *op, Value from, Value to) {
  const Sources &sources = block.launch.spreads.getSources(
      llvm::cast<FragType>(from.getType()), llvm::cast<FragType>(to.getType()));
  const Lanes &have = values.get(from);
  Lanes result(sources.size() / layout::warpSize, Part(layout::warpSize));
  for (auto [number, source] : llvm::enumerate(sources)) {
    if (source < 0)
      return op->emitOpError("needs an element of another lane");
    size_t lane = number % layout::warpSize;
    result[number / layout::warpSize][lane] = have[source][lane];
  }
  values.set(to, std::move(result));
  return success();
}

static uint64_t castBits(CastKind kind, Type from, Type to, uint64_t bits) {
  int64_t width = bitsOf(from);
  switch (kind) {
  case CastKind::TruncF:
  case CastKind::ExtF:
    return fromFloat(to, toFloat(from, bits));
  case CastKind::SIToFP:
    return fromFloat(to, float(extend(bits, width)));
  case CastKind::UIToFP:
    return fromFloat(to, float(bits));
  case CastKind::FPToSI:
    return truncate(uint64_t(int64_t(toFloat(from, bits))), bitsOf(to));
  case CastKind::FPToUI:
    return truncate(uint64_t(toFloat(from, bits)), bitsOf(to));
  case CastKind::ExtSI:
    return truncate(uint64_t(extend(bits, width)), bitsOf(to));
  case CastKind::TruncI:
    return truncate(bits, bitsOf(to));
  case CastKind::ExtUI:
  case CastKind::Bitcast:
    return bits;
  }
  llvm_unreachable("all casts are listed");
}

LogicalResult WarpRunner::cast(CastOp op) {
  Type from = op.getValue().getType().getElementType();
  Type to = op.getResult().getType().getElementType();
  Lanes result = values.get(op.getValue());
  for (Part &part : result)
    for (uint64_t &bits : part)
      bits = castBits(op.getKind(), from, to, bits);
  values.set(op.getResult(), std::move(result));
  return success();
}

LogicalResult WarpRunner::reduce(ReduceOp op) {
  FragType from = op.getValue().getType(), to = op.getResult().getType();
  Type element = from.getElementType();
  bool isMax = op.getKind() == ReduceKind::Max;
  int64_t columns = to.getShape()[1], have = from.getShape()[1];
  // Column j of the tile belongs to column (j mod 8) / 2 of the partial sums.
  auto columnOf = [&](int64_t column) {
    if (columns == 1 || have == columns)
      return columns == 1 ? 0 : column;
    return column % 8 / 2;
  };
  // A slice holds an element more than once, it counts once.
  int64_t warps = from.getWarps(), rows = from.getShape()[0] / warps;
  std::vector<float> tile(rows * have), reduced(rows * columns);
  const Lanes &lanes = values.get(op.getValue());
  for (auto [number, coord] :
       llvm::enumerate(block.launch.spreads.get(from, warp)))
    tile[localRow(coord.row, warps) * have + coord.column] = toFloat(
        element, lanes[number / layout::warpSize][number % layout::warpSize]);
  std::vector<bool> isFirst(reduced.size(), true);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < have; ++column) {
      int64_t place = row * columns + columnOf(column);
      float next = tile[row * have + column];
      if (isFirst[place])
        reduced[place] = next;
      else
        reduced[place] =
            isMax ? std::fmax(reduced[place], next) : reduced[place] + next;
      isFirst[place] = false;
    }
  const Spread &spread = block.launch.spreads.get(to, warp);
  Lanes result(spread.size() / layout::warpSize, Part(layout::warpSize));
  for (auto [number, coord] : llvm::enumerate(spread))
    result[number / layout::warpSize][number % layout::warpSize] = fromFloat(
        element, reduced[localRow(coord.row, warps) * columns + coord.column]);
  values.set(op.getResult(), std::move(result));
  return success();
}

std::optional<LogicalResult> WarpRunner::executeFragments(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<SplatOp>([&](SplatOp splat) {
        Lanes result(countParts(splat.getResult().getType()),
                     values.get(splat.getScalar())[0]);
        values.set(splat.getResult(), std::move(result));
        return success();
      })
      .Case<SelectOp>([&](SelectOp select) {
        const Lanes condition = values.get(select.getCondition());
        const Lanes no = values.get(select.getFalseValue());
        Lanes result = values.get(select.getTrueValue());
        for (size_t part = 0; part < result.size(); ++part)
          for (size_t lane = 0; lane < layout::warpSize; ++lane)
            if (!(condition[part][lane] & 1))
              result[part][lane] = no[part][lane];
        values.set(select.getResult(), std::move(result));
        return success();
      })
      .Case<CoordsOp>([&](CoordsOp coords) {
        FragType type = coords.getResult().getType();
        const Spread &spread = block.launch.spreads.get(type, warp);
        int64_t base = values.getSigned(coords.getBase());
        Lanes result(spread.size() / layout::warpSize, Part(layout::warpSize));
        for (auto [number, coord] : llvm::enumerate(spread)) {
          int64_t at = coords.getAxis() == 0 ? coord.row : coord.column;
          result[number / layout::warpSize][number % layout::warpSize] =
              truncate(base + at, 32);
        }
        values.set(coords.getResult(), std::move(result));
        return success();
      })
      .Case<AnyOp>([&](AnyOp any) {
        bool answer = llvm::any_of(values.get(any.getValue()), [](Part &part) {
          return llvm::is_contained(part, 1);
        });
        values.set(any.getResult(), {Part(layout::warpSize, answer)});
        return success();
      })
      .Case<ExtremeOp>([&](ExtremeOp extreme) {
        bool isLeast = extreme.getKind() == ExtremeKind::Least;
        std::optional<int32_t> found;
        for (const Part &part : values.get(extreme.getValue()))
          for (uint64_t bits : part) {
            int32_t one = int32_t(uint32_t(bits));
            found = !found    ? one
                    : isLeast ? std::min(*found, one)
                              : std::max(*found, one);
          }
        values.set(extreme.getResult(),
                   {Part(layout::warpSize, uint32_t(*found))});
        return success();
      })
      .Case<BroadcastOp, ConvertOp>([&](auto change) {
        return stretch(op, change.getValue(), change.getResult());
      })
      .Case<CastOp>([&](CastOp cast) { return this->cast(cast); })
      .Case<ReduceOp>([&](ReduceOp reduce) { return this->reduce(reduce); })
      .Default([](Operation *) { return std::nullopt; });
}
