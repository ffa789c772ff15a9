//===- Control.cpp - branches and loops of the simulator ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::simulator;

/// Copies the lanes that are switched on.
static void assign(Lanes &to, const Lanes &from,
                   const std::vector<uint8_t> &mask) {
  for (auto [target, source] : llvm::zip_equal(to, from))
    for (size_t t = 0; t < mask.size(); ++t)
      if (mask[t])
        target[t] = source[t];
}

LogicalResult Interpreter::runIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  std::vector<uint8_t> outer = mask;
  Part condition = get(branch.getCondition())[0];
  for (uint8_t side : {1, 0}) {
    Region &region = side ? branch.getThenRegion() : branch.getElseRegion();
    for (int64_t t = 0; t < threads; ++t)
      mask[t] = outer[t] && (condition[t] & 1) == side;
    if (region.empty() || !llvm::is_contained(mask, 1))
      continue;
    if (failed(run(region.front())))
      return failure();
    for (auto [result, yielded] :
         llvm::zip_equal(branch.getResults(),
                         region.front().getTerminator()->getOperands())) {
      Lanes value = get(yielded);
      assign(get(result), value, mask);
    }
  }
  mask = outer;
  return success();
}

LogicalResult Interpreter::runFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  std::vector<uint8_t> outer = mask;
  SmallVector<Lanes> carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(get(init));
  Lanes induction = get(loop.getLowerBound());
  Part upper = get(loop.getUpperBound())[0], step = get(loop.getStep())[0];
  while (true) {
    for (int64_t t = 0; t < threads; ++t)
      mask[t] = outer[t] && int64_t(induction[0][t]) < int64_t(upper[t]);
    if (!llvm::is_contained(mask, 1))
      break;
    set(loop.getInductionVar(), induction);
    for (auto [arg, lanes] : llvm::zip_equal(loop.getRegionIterArgs(), carried))
      set(arg, lanes);
    if (failed(run(*loop.getBody())))
      return failure();
    for (auto [lanes, yielded] :
         llvm::zip_equal(carried, loop.getYieldedValues()))
      assign(lanes, get(yielded), mask);
    for (int64_t t = 0; t < threads; ++t)
      if (mask[t])
        induction[0][t] += step[t];
  }
  mask = outer;
  for (auto [result, lanes] : llvm::zip_equal(loop.getResults(), carried))
    set(result, lanes);
  return success();
}

std::optional<LogicalResult> Interpreter::executeControl(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<scf::IfOp>([&](auto) { return runIf(op); })
      .Case<scf::ForOp>([&](auto) { return runFor(op); })
      .Case<gpu::LaunchFuncOp, memref::AllocOp>(
          [&](auto) -> std::optional<LogicalResult> {
            if (!onHost)
              return std::nullopt;
            return onHost(op);
          })
      .Default([](Operation *) { return std::nullopt; });
}
