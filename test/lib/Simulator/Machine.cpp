//===- Machine.cpp - nvvm operations of the simulator ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cstring>

using namespace mlir;
using namespace attn::simulator;
using attn::layout::warpSize;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// cp.async: reads now, writes when waited for; the rest of `size` is zero.
LogicalResult Interpreter::copyAsync(Operation *op) {
  auto copy = cast<NVVM::CpAsyncOp>(op);
  int64_t size = copy.getSize();
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    int64_t bytes = copy.getCpSize() ? getSigned(copy.getCpSize(), t) : size;
    int64_t to = get(copy.getDst())[0][t];
    uint64_t from = get(copy.getSrc())[0][t];
    std::vector<uint8_t> data(size, 0);
    std::string message;
    if (from % size != 0)
      message = "reads a misaligned source";
    if (message.empty() && bytes != 0)
      message = bytes == size ? global.check(from, size)
                              : global.check(from + bytes - 1, 1);
    if (message.empty())
      message = shared->beginCopy(to, size, t / warpSize);
    if (!message.empty())
      return op->emitOpError(message) << " (thread " << t << ")";
    std::memcpy(data.data(), reinterpret_cast<void *>(from), bytes);
    groups[t].back().push_back({to, std::move(data)});
  }
  return success();
}

/// All groups but the youngest `younger` arrive.
LogicalResult Interpreter::waitGroups(Operation *op, size_t younger) {
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    // The last is not committed and does not count.
    while (groups[t].size() - 1 > younger) {
      for (Copy &copy : groups[t].front()) {
        std::string message = shared->finishCopy(
            copy.address, copy.data.size(), t / warpSize, copy.data.data());
        if (!message.empty())
          return op->emitOpError(message);
      }
      groups[t].erase(groups[t].begin());
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations of a warp
//===----------------------------------------------------------------------===//

/// ldmatrix of 8x8 matrices of 16 bits: lanes 8 i … 8 i + 7 name the rows of
/// matrix i. Lane l receives row l / 4, columns 2 (l mod 4) + {0, 1}, or, with
/// .trans, column l / 4 of rows 2 (l mod 4) + {0, 1}.
LogicalResult Interpreter::loadMatrix(Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  bool isTransposed = load.getLayout() == NVVM::MMALayout::col;
  Part &addresses = get(load.getPtr())[0];
  Lanes &out = get(load.getRes());
  for (int64_t warp = 0; warp < threads / warpSize; ++warp) {
    int64_t first = warp * warpSize;
    if (!mask[first])
      continue;
    for (int64_t matrix = 0; matrix < int64_t(load.getNum()); ++matrix) {
      uint16_t rows[8][8];
      for (int64_t row = 0; row < 8; ++row) {
        std::string message = shared->read(addresses[first + 8 * matrix + row],
                                           16, warp, rows[row]);
        if (!message.empty())
          return op->emitOpError(message);
      }
      for (int64_t lane = 0; lane < warpSize; ++lane) {
        int64_t a = lane / 4, b = 2 * (lane % 4);
        uint32_t lo = isTransposed ? rows[b][a] : rows[a][b];
        uint32_t hi = isTransposed ? rows[b + 1][a] : rows[a][b + 1];
        out[matrix][first + lane] = lo | hi << 16;
      }
    }
  }
  return success();
}

namespace {
/// The operands of one mma in the registers of a warp.
struct MmaShape {
  bool isTf32;
  int64_t k;
  Type element;
};
} // namespace

/// Element `half` of register `reg` of an operand. A register is an i32 or a
/// vector of two.
static float getOperand(const Lanes &lanes, const MmaShape &shape, int64_t half,
                        int64_t thread) {
  if (shape.isTf32)
    // The instruction looks at 19 bits.
    return llvm::bit_cast<float>(uint32_t(lanes[0][thread]) & ~0x1fffu);
  uint64_t bits = lanes.size() == 2 ? lanes[half][thread]
                                    : lanes[0][thread] >> (16 * half) & 0xffff;
  return toFloat(shape.element, bits);
}

/// mma.m16n8k16 of f16 or bf16 and mma.m16n8k8 of tf32, f32 accumulation (PTX
/// ISA, "Matrix Fragments").
LogicalResult Interpreter::multiply(Operation *op) {
  auto mma = cast<NVVM::MmaOp>(op);
  MLIRContext *context = op->getContext();
  MmaShape shape = {false, mma.getShape().getK(), Float16Type::get(context)};
  if (mma.getMultiplicandAPtxType() == NVVM::MMATypes::bf16)
    shape.element = BFloat16Type::get(context);
  if (mma.getMultiplicandAPtxType() == NVVM::MMATypes::tf32)
    shape.isTf32 = true;
  if (mma.getShape().getM() != 16 || mma.getShape().getN() != 8 ||
      shape.k != (shape.isTf32 ? 8 : 16) || mma.getOperandA().size() != 4)
    return op->emitOpError("has a shape unknown to the simulator");
  Lanes &out = get(mma.getRes());
  for (int64_t first = 0; first < threads; first += warpSize) {
    if (!mask[first])
      continue;
    float a[16][16], b[16][8];
    for (int64_t lane = 0; lane < warpSize; ++lane) {
      int64_t group = lane / 4, quad = lane % 4;
      int64_t halves = shape.isTf32 ? 1 : 2;
      for (int64_t half = 0; half < halves; ++half) {
        int64_t k = halves * quad + half;
        for (int64_t reg = 0; reg < 4; ++reg)
          a[group + 8 * (reg & 1)][k + shape.k / 2 * (reg >> 1)] = getOperand(
              get(mma.getOperandA()[reg]), shape, half, first + lane);
        for (int64_t reg = 0; reg < 2; ++reg)
          b[k + shape.k / 2 * reg][group] = getOperand(
              get(mma.getOperandB()[reg]), shape, half, first + lane);
      }
    }
    for (int64_t lane = 0; lane < warpSize; ++lane)
      for (int64_t i = 0; i < 4; ++i) {
        int64_t row = lane / 4 + 8 * (i >> 1),
                column = 2 * (lane % 4) + (i & 1);
        double sum = llvm::bit_cast<float>(
            uint32_t(get(mma.getOperandC()[i])[0][first + lane]));
        for (int64_t k = 0; k < shape.k; ++k)
          sum += double(a[row][k]) * b[k][column];
        out[i][first + lane] = llvm::bit_cast<uint32_t>(float(sum));
      }
  }
  return success();
}

LogicalResult Interpreter::shuffle(Operation *op) {
  auto shuffle = cast<NVVM::ShflOp>(op);
  Part &in = get(shuffle.getVal())[0], &out = get(shuffle.getRes())[0];
  for (int64_t t = 0; t < threads; ++t) {
    int64_t lane = t % warpSize, offset = getSigned(shuffle.getOffset(), t);
    // Which bits of a lane's number say its segment.
    int64_t segment = getSigned(shuffle.getMaskAndClamp(), t) >> 8;
    if (shuffle.getKind() == NVVM::ShflKind::bfly)
      lane ^= offset;
    else if (shuffle.getKind() == NVVM::ShflKind::idx)
      lane = (lane & segment) | (offset & ~segment);
    else
      return op->emitOpError("has a kind unknown to the simulator");
    int64_t source = t / warpSize * warpSize + lane % warpSize;
    if (mask[t] && !mask[source])
      return op->emitOpError("reads a lane that is switched off");
    out[t] = in[source];
  }
  return success();
}

/// vote.sync.any and .all of whole warps.
LogicalResult Interpreter::vote(Operation *op) {
  auto vote = cast<NVVM::VoteSyncOp>(op);
  bool ofAll = vote.getKind() == NVVM::VoteSyncKind::all;
  if (!ofAll && vote.getKind() != NVVM::VoteSyncKind::any)
    return op->emitOpError("has a kind unknown to the simulator");
  Part &in = get(vote.getPred())[0], &out = get(vote.getRes())[0];
  for (int64_t first = 0; first < threads; first += warpSize) {
    if (!mask[first])
      continue;
    bool holds = ofAll;
    for (int64_t t = first; t < first + warpSize; ++t) {
      if (!mask[t])
        return op->emitOpError("asks a lane that is switched off");
      bool own = in[t] & 1;
      holds = ofAll ? holds && own : holds || own;
    }
    std::fill_n(out.begin() + first, warpSize, holds);
  }
  return success();
}

//===----------------------------------------------------------------------===//

/// Whether all threads of the block run `op`.
static LogicalResult checkConverged(Operation *op,
                                    const std::vector<uint8_t> &mask) {
  if (!llvm::is_contained(mask, 0))
    return success();
  return op->emitOpError("is not reached by all threads");
}

std::optional<LogicalResult> Interpreter::executeMachine(Operation *op) {
  auto place3 = [&](gpu::Dimension dimension,
                    const std::array<int64_t, 3> &numbers) {
    get(op->getResult(0))[0].assign(threads, numbers[size_t(dimension)]);
    return success();
  };
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<gpu::BlockIdOp>(
          [&](auto id) { return place3(id.getDimension(), place.block); })
      .Case<gpu::GridDimOp>(
          [&](auto id) { return place3(id.getDimension(), place.grid); })
      .Case<gpu::BlockDimOp>(
          [&](auto id) { return place3(id.getDimension(), {threads, 1, 1}); })
      .Case<gpu::ThreadIdOp>([&](gpu::ThreadIdOp id) {
        for (int64_t t = 0; t < threads; ++t)
          get(id)[0][t] = id.getDimension() == gpu::Dimension::x ? t : 0;
        return success();
      })
      .Case<gpu::BarrierOp, NVVM::Barrier0Op>([&](auto) -> LogicalResult {
        shared->barrier();
        return checkConverged(op, mask);
      })
      .Case<NVVM::CpAsyncOp>([&](auto) { return copyAsync(op); })
      .Case<NVVM::CpAsyncCommitGroupOp>([&](auto) {
        for (int64_t t = 0; t < threads; ++t)
          if (mask[t])
            groups[t].emplace_back();
        return success();
      })
      .Case<NVVM::CpAsyncWaitGroupOp>(
          [&](auto wait) { return waitGroups(op, wait.getN()); })
      .Case<NVVM::LdMatrixOp>([&](auto) { return loadMatrix(op); })
      .Case<NVVM::MmaOp>([&](auto) { return multiply(op); })
      .Case<NVVM::ShflOp>([&](auto) { return shuffle(op); })
      .Case<NVVM::VoteSyncOp>([&](auto) { return vote(op); })
      .Case<LLVM::InlineAsmOp>(
          [&](auto assembly) -> std::optional<LogicalResult> {
            // A move that hides a value from the optimiser.
            StringRef text = assembly.getAsmString();
            if (text != "mov.b64 $0, $1;" && text != "mov.b32 $0, $1;")
              return std::nullopt;
            get(op->getResult(0)) = get(op->getOperand(0));
            return success();
          })
      .Default([](Operation *) { return std::nullopt; });
}
