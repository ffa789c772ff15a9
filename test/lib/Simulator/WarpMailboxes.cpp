//===- WarpMailboxes.cpp - tiles that are handed out -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"

#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

WarpRunner::Step WarpRunner::draw(DrawOp op) {
  if (!role || !role.isCopy())
    return fail(op, "is drawn by a warp of a role that does not copy");
  const Lanes &counter = values.get(op.getCounter());
  uint64_t at = counter[0][0] + counter[1][0] * sizeof(uint32_t);
  if (std::string message = block.launch.global.check(at, sizeof(uint32_t));
      !message.empty())
    return fail(op, message);
  uint32_t drawn;
  std::memcpy(&drawn, reinterpret_cast<void *>(at), sizeof(drawn));
  uint64_t last = values.getSigned(op.getTiles()) - 1;
  uint32_t next = drawn >= last ? 0 : drawn + 1;
  std::memcpy(reinterpret_cast<void *>(at), &next, sizeof(next));
  set(op.getNumber(),
      {Part(layout::warpSize, drawn + uint64_t(block.place.grid[0]))});
  ++frames.back().next;
  return Ran;
}

/// Directly in the kernel: nothing is in flight.
WarpRunner::Step WarpRunner::exitIf(ExitIfOp op) {
  if (values.getSigned(op.getCondition()) == 0) {
    ++frames.back().next;
    return Ran;
  }
  frames.clear();
  return Finished;
}

WarpRunner::Step WarpRunner::send(SendOp op) {
  Operation *numbers = op.getRing().getDefiningOp();
  Ring &ring = block.rings.find(numbers)->second;
  int64_t item = values.getSigned(op.getItem());
  if (std::string message = checkFills(op.getRing()); !message.empty())
    return fail(op, message);
  Answer answer = ring.beginCopy(item);
  if (answer.kind == Answer::Go) {
    ring.finishCopy(item, {0});
    SmallVector<int64_t> &content = block.numbers[{numbers, item}];
    for (Value value : op.getValues())
      content.push_back(values.getSigned(value));
  }
  return settle(op, answer);
}

WarpRunner::Step WarpRunner::takeNumbers(ReceiveOp op) {
  Operation *numbers = op.getRing().getDefiningOp();
  Ring &ring = block.rings.find(numbers)->second;
  int64_t item = values.getSigned(op.getItem());
  Answer answer = ring.await(blockWarp, item);
  if (answer.kind == Answer::Go) {
    for (auto [result, value] :
         llvm::zip_equal(op.getValues(), block.numbers[{numbers, item}]))
      set(result, {Part(layout::warpSize, value)});
    if (std::string message = ring.release(blockWarp, item, /*barriers=*/0);
        !message.empty())
      return fail(op, message);
  }
  return settle(op, answer);
}
