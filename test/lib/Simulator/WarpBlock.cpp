//===- WarpBlock.cpp - what the warps of a block share ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpBlock.h"

#include <cstring>
#include <map>

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

static int64_t countWarps(KernelOp kernel) {
  int64_t warps = 0;
  for (RoleOp role : kernel.getRoles())
    warps += role.getWarps();
  return kernel.hasRoles() ? warps : kernel.getWarps();
}

/// The warps that drain a ring: all of them in a kernel without roles.
static std::vector<bool> findDrainers(KernelOp kernel, Value ring) {
  std::vector<bool> drainers(countWarps(kernel), !kernel.hasRoles());
  for (RoleOp role : kernel.getRoles())
    if (drains(role, ring))
      std::fill_n(drainers.begin() + role.getFirstWarp(), role.getActiveWarps(),
                  true);
  return drainers;
}

WarpBlock::WarpBlock(KernelOp kernel, Launch &launch, const BlockPlace &place)
    : kernel(kernel), launch(launch), place(place), warps(countWarps(kernel)),
      barrier(warps), issues(warps) {
  auto add = [&](Operation *op, int64_t depth) {
    rings.insert({op, Ring(depth, findDrainers(kernel, op->getResult(0)))});
  };
  for (Operation &op : *kernel.getBodyBlock()) {
    if (auto ring = dyn_cast<RingOp>(op))
      add(&op, ring.getRing().getType().getDepth());
    else if (auto numbers = dyn_cast<MailboxOp>(op))
      add(&op, numbers.getRing().getType().getDepth());
    else if (isa<AllocOp>(op))
      rings.insert({&op, Ring(1, std::vector<bool>(warps, true))});
    else if (auto role = dyn_cast<RoleOp>(op))
      turns.insert({&op, Turns(role.getWarps())});
  }
}

LogicalResult WarpBlock::finish(const Transfer &transfer) {
  std::vector<float> elements;
  if (std::string message = readBoxes(transfer.boxes, launch.global, elements);
      !message.empty())
    return transfer.op->emitOpError(message);
  transfer.ring->finishCopy(transfer.item, std::move(elements));
  return success();
}

LogicalResult WarpBlock::checkEnd() {
  for (auto &[op, ring] : rings) {
    if (!isa<RingOp, MailboxOp>(op))
      continue;
    if (std::string message = ring.checkEnd(); !message.empty())
      return op->emitOpError(message);
  }
  for (const auto &[op, taken] : turns)
    if (std::string message = taken.checkEnd(); !message.empty())
      return op->emitOpError(message);
  if (std::string message = issues.checkEnd(); !message.empty())
    return kernel.emitOpError(message);
  return success();
}

std::optional<uint64_t> Box::find(int64_t row, int64_t column) const {
  size_t rank = sizes.size();
  int64_t offset = 0;
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t index = start[dim];
    if (dim + 2 == rank)
      index += row;
    if (dim + 1 == rank)
      index += column;
    if (index < 0 || index >= sizes[dim])
      return std::nullopt;
    offset += index * strides[dim];
  }
  return address + offset * ((bitsOf(element) + 7) / 8);
}

std::string Box::read(const GlobalMemory &global,
                      std::vector<float> &elements) const {
  int64_t bytes = (bitsOf(element) + 7) / 8;
  size_t first = elements.size();
  elements.resize(first + rows * columns, 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      std::optional<uint64_t> at = find(row, column);
      if (!at)
        continue;
      if (std::string message = global.check(*at, bytes); !message.empty())
        return message;
      uint64_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<void *>(*at), bytes);
      elements[first + row * columns + column] = toFloat(element, bits);
    }
  return "";
}

std::string attn::simulator::readBoxes(ArrayRef<Box> boxes,
                                       const GlobalMemory &global,
                                       std::vector<float> &elements) {
  std::string message;
  for (const Box &box : boxes)
    if (message.empty())
      message = box.read(global, elements);
  return message;
}

int64_t attn::simulator::localRow(int64_t row, int64_t warps) {
  return row / (layout::groupRows * warps) * layout::groupRows +
         row % layout::groupRows;
}

const Spread &Spreads::get(FragType type, int64_t warp) {
  Spread &spread = spreads[{type, warp}];
  if (!spread.empty())
    return spread;
  layout::Fragment layout = type.getLayout();
  int64_t elements = layout.elementsPerRegister();
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg)
    for (int64_t element = 0; element < elements; ++element)
      for (int64_t lane = 0; lane < layout::warpSize; ++lane)
        spread.push_back(layout.coordOf({warp, lane, reg, element}));
  return spread;
}

const Sources &Spreads::getSources(FragType from, FragType to) {
  if (auto found = sources.find({from, to}); found != sources.end())
    return found->second;
  Spread have = get(from, 0);
  const Spread &want = get(to, 0);
  constexpr int64_t lanes = layout::warpSize;
  std::map<std::array<int64_t, 3>, int64_t> parts;
  for (auto [number, coord] : llvm::enumerate(have))
    parts.insert({{int64_t(number) % lanes, coord.row, coord.column},
                  int64_t(number) / lanes});
  Sources result;
  for (auto [number, coord] : llvm::enumerate(want)) {
    int64_t row = from.getShape()[0] == 1 ? 0 : coord.row;
    int64_t column = from.getShape()[1] == 1 ? 0 : coord.column;
    auto found = parts.find({int64_t(number) % lanes, row, column});
    result.push_back(found == parts.end() ? -1 : found->second);
  }
  return sources[{from, to}] = std::move(result);
}
