//===- WarpTransfers.cpp - slots, rings and global memory -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"

#include "attn/Dialect/Warp/Analysis/PendingCopies.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

SlotUse WarpRunner::useOf(Value slot) {
  if (auto alloc = slot.getDefiningOp<AllocOp>())
    return {&block.rings.find(alloc)->second, 0, /*isFixed=*/true};
  return uses.lookup(slot);
}

Box WarpRunner::boxOf(Value view, OperandRange indices) {
  Box box;
  const Lanes &memref = values.get(view);
  size_t rank = indices.size();
  box.element = llvm::cast<MemRefType>(view.getType()).getElementType();
  box.address = memref[0][0] + memref[1][0] * ((bitsOf(box.element) + 7) / 8);
  for (size_t dim = 0; dim < rank; ++dim) {
    box.sizes.push_back(int64_t(memref[2 + dim][0]));
    box.strides.push_back(int64_t(memref[2 + rank + dim][0]));
  }
  for (Value index : indices)
    box.start.push_back(values.getSigned(index));
  return box;
}

WarpRunner::Step WarpRunner::copy(CopyOp op) {
  Answer answer = block.barrier.pass(blockWarp, op);
  if (answer.kind != Answer::Go)
    return settle(op, answer);
  // The first warp after the barrier copies for all.
  SlotUse use = useOf(op.getSlot());
  int64_t meeting = block.barrier.countPassed(blockWarp);
  Operation *alloc = op.getSlot().getDefiningOp();
  if (block.copiedAt.lookup(alloc) == meeting)
    return settle(op, answer);
  block.copiedAt[alloc] = meeting;
  Slot &slot = use.slot();
  if (int64_t reader = slot.findReader(); reader >= 0)
    return fail(op, "overwrites a slot that a product in flight of warp " +
                        Twine(reader) + " still reads");
  std::vector<Box> boxes;
  for (int64_t number : llvm::seq<int64_t>(op.getBoxes())) {
    Box &box = boxes.emplace_back(boxOf(op.getView(), op.getBox(number)));
    box.rows = op.getRowsPerBox();
    box.columns = op.getSlot().getType().getShape()[1];
  }
  std::vector<float> elements;
  if (std::string message = readBoxes(boxes, block.launch.global, elements);
      !message.empty())
    return fail(op, message);
  slot.item = 0;
  slot.fill(std::move(elements));
  return settle(op, answer);
}

std::string WarpRunner::checkFills(Value ring) {
  if (role && getFiller(ring) != role.getSymName())
    return "fills a ring that @" + getFiller(ring).str() + " fills";
  return "";
}

WarpRunner::Step WarpRunner::copyAsync(CopyAsyncOp op) {
  Ring &ring = block.rings.find(op.getRing().getDefiningOp())->second;
  int64_t item = values.getSigned(op.getItem());
  bool copies = !op.getCondition() || values.getSigned(op.getCondition()) != 0;
  std::vector<Box> boxes;
  for (int64_t number : llvm::seq<int64_t>(op.getBoxes())) {
    Box &box = boxes.emplace_back(boxOf(op.getView(), op.getBox(number)));
    box.rows = op.getRowsPerBox();
    box.columns = op.getRing().getType().getShape()[1];
  }
  if (role) {
    if (!copies)
      return settle(op, Answer::go());
    if (std::string message = checkFills(op.getRing()); !message.empty())
      return fail(op, message);
    Answer answer = ring.beginCopy(item);
    if (answer.kind == Answer::Go)
      block.transfers.push_back({op, &ring, item, std::move(boxes)});
    return settle(op, answer);
  }
  this->copies.push_back({copies ? &ring : nullptr, item});
  if (!copies)
    return settle(op, Answer::go());
  std::vector<float> elements;
  std::string message = readBoxes(boxes, block.launch.global, elements);
  if (message.empty())
    message = ring.beginCopyOfAll(
        blockWarp, item, block.barrier.countPassed(blockWarp), elements);
  return message.empty() ? settle(op, Answer::go()) : fail(op, message);
}

void WarpRunner::writeRows(Value frag, std::vector<float> &elements) {
  auto type = llvm::cast<FragType>(frag.getType());
  elements.resize(type.getNumElements());
  const Lanes &lanes = values.get(frag);
  for (auto [number, coord] :
       llvm::enumerate(block.launch.spreads.get(type, warp)))
    elements[coord.row * type.getShape()[1] + coord.column] =
        toFloat(type.getElementType(),
                lanes[number / layout::warpSize][number % layout::warpSize]);
}

WarpRunner::Step WarpRunner::storeFrag(StoreFragOp op) {
  Operation *target = op.getTarget().getDefiningOp();
  Ring &ring = block.rings.find(target)->second;
  if (op.getItem()) {
    if (std::string message = checkFills(op.getTarget()); !message.empty())
      return fail(op, message);
    int64_t item = values.getSigned(op.getItem());
    Answer answer = ring.beginPart(blockWarp, item);
    if (answer.kind == Answer::Go) {
      writeRows(op.getValue(), ring.slotOf(item).parts);
      ring.finishPart(blockWarp, item, role.getWarps());
    }
    return settle(op, answer);
  }
  // Nobody sees it before all have come to the barrier.
  writeRows(op.getValue(), block.stored[target]);
  Answer answer = block.barrier.pass(blockWarp, op);
  if (answer.kind != Answer::Go)
    return settle(op, answer);
  int64_t meeting = block.barrier.countPassed(blockWarp);
  if (block.copiedAt.lookup(target) == meeting)
    return settle(op, answer);
  block.copiedAt[target] = meeting;
  Slot &slot = ring.slotOf(0);
  if (int64_t reader = slot.findReader(); reader >= 0)
    return fail(op, "overwrites a slot that a product in flight of warp " +
                        Twine(reader) + " still reads");
  slot.fill(block.stored[target]);
  return settle(op, answer);
}

/// Waits until at most `younger` copies of this warp are in flight.
void WarpRunner::finishCopies(int64_t younger) {
  while (int64_t(copies.size()) > younger) {
    auto [ring, item] = copies.front();
    if (ring)
      ring->finishCopyOfAll(blockWarp, item);
    copies.pop_front();
  }
}

WarpRunner::Step WarpRunner::test(TestOp op) {
  Ring &ring = block.rings.find(op.getRing().getDefiningOp())->second;
  bool answer = ring.test(values.getSigned(op.getItem()));
  set(op.getArrived(), {Part(layout::warpSize, answer)});
  return settle(op, Answer::go());
}

WarpRunner::Step WarpRunner::await(AwaitOp op) {
  Ring &ring = block.rings.find(op.getRing().getDefiningOp())->second;
  int64_t item = values.getSigned(op.getItem());
  uses[op.getSlot()] = {&ring, item};
  if (role) {
    Answer answer = ring.await(blockWarp, item);
    if (answer.kind == Answer::Wait && op.getArrived() &&
        values.getSigned(op.getArrived()) != 0)
      answer = Answer::wrong("does not wait for " + answer.reason);
    return settle(op, answer);
  }
  if (waitsAt != op) {
    auto [entry, isNew] = block.launch.younger.insert({op, 0});
    if (isNew) {
      FailureOr<int64_t> younger = countYoungerCopies(op);
      if (failed(younger))
        return fail(op, "waits for a ring that nothing fills");
      entry->second = *younger;
    }
    finishCopies(entry->second);
  }
  Answer answer = block.barrier.pass(blockWarp, op);
  if (answer.kind == Answer::Go)
    if (std::string message = ring.take(blockWarp, item); !message.empty())
      return fail(op, message);
  return settle(op, answer);
}

WarpRunner::Step WarpRunner::release(ReleaseOp op) {
  SlotUse use = useOf(op.getSlot());
  std::string message = use.ring->release(blockWarp, use.item,
                                          block.barrier.countPassed(blockWarp));
  return message.empty() ? settle(op, Answer::go()) : fail(op, message);
}

std::string WarpRunner::write(StoreOp op, uint64_t at, uint64_t bits) {
  Type element = op.getValue().getType().getElementType();
  int64_t bytes = (bitsOf(element) + 7) / 8;
  Launch &launch = block.launch;
  if (std::string message = launch.global.check(at, bytes); !message.empty())
    return message;
  auto *memory = reinterpret_cast<void *>(at);
  if (op.getAccumulate()) {
    if (launch.stored.contains(at))
      return "adds to an element that was written before";
    launch.added.insert(at);
    uint64_t old = 0;
    std::memcpy(&old, memory, bytes);
    bits = fromFloat(element, toFloat(element, old) + toFloat(element, bits));
  } else if (launch.added.contains(at) || !launch.stored.insert(at).second) {
    return "writes an element that was written before";
  }
  std::memcpy(memory, &bits, bytes);
  return "";
}

std::optional<int64_t> WarpRunner::enterSlice(StoreOp op, const Box &first,
                                              Box &box, int64_t row) {
  if (op.getSlices() == 1)
    return row;
  int64_t perSlice = op.getValue().getType().getShape()[0] / op.getSlices();
  size_t dim = box.start.size() - (op.getRows() ? 2 : 3);
  int64_t &slice = box.start[dim];
  slice = first.start[dim] + row / perSlice;
  if (op.getSliceEnd() && slice >= values.getSigned(op.getSliceEnd()))
    return std::nullopt;
  return row % perSlice;
}

LogicalResult WarpRunner::store(StoreOp op) {
  FragType type = op.getValue().getType();
  layout::Fragment layout = type.getLayout();
  const Spread &spread = block.launch.spreads.get(type, warp);
  const Lanes &lanes = values.get(op.getValue());
  const Box first = boxOf(op.getView(), op.getIndices());
  Box box = first; // of the slice that a row belongs to
  if (Value staging = op.getStaging()) {
    SlotUse use = useOf(staging);
    for (const layout::Coord &coord : spread)
      if (std::string message = use.lose(
              blockWarp, coord.row, op.getStaging().getType().getShape()[0]);
          !message.empty())
        return refuse(op, message);
  }
  for (auto [number, coord] : llvm::enumerate(spread)) {
    int64_t part = int64_t(number) / layout::warpSize;
    int64_t lane = int64_t(number) % layout::warpSize;
    // Slices are held by several lanes; the first of them writes.
    if (!(layout.ownerOf(coord) == layout::Position{warp, lane, part, 0}))
      continue;
    std::optional<int64_t> row = enterSlice(op, first, box, coord.row);
    if (!row)
      continue;
    // Any order of packed tiles is as good as that of the lanes.
    std::optional<uint64_t> at =
        op.getRows() ? box.find(0, *row)
        : op.getPacked()
            ? box.find(0, coord.row * type.getShape()[1] + coord.column)
            : box.find(*row, coord.column);
    if (!at && op.getPacked())
      return refuse(op, "writes a packed tile that is outside");
    if (!at)
      continue;
    if (std::string message = write(op, *at, lanes[part][lane]);
        !message.empty())
      return refuse(op, message);
  }
  return success();
}

LogicalResult WarpRunner::load(LoadOp op) {
  FragType type = op.getResult().getType();
  const Spread &spread = block.launch.spreads.get(type, warp);
  Box box = boxOf(op.getView(), op.getIndices());
  int64_t bytes = bitsOf(box.element) / 8;
  Lanes result(spread.size() / layout::warpSize, Part(layout::warpSize, 0));
  for (auto [number, coord] : llvm::enumerate(spread)) {
    std::optional<uint64_t> at =
        box.find(0, coord.row * type.getShape()[1] + coord.column);
    if (!at)
      return refuse(op, "reads a packed tile that is outside");
    if (std::string message = block.launch.global.check(*at, bytes);
        !message.empty())
      return refuse(op, message);
    std::memcpy(&result[number / layout::warpSize][number % layout::warpSize],
                reinterpret_cast<void *>(*at), bytes);
  }
  values.set(op.getResult(), std::move(result));
  return success();
}

/// An i32, or what meets element `number` of a result in an i32 fragment that
/// stretches to it.
int64_t WarpRunner::indexOf(Value index, Type result, size_t number) {
  int64_t part = 0;
  if (auto frag = dyn_cast<FragType>(index.getType()))
    part = block.launch.spreads.getSources(
        frag, llvm::cast<FragType>(result))[number];
  return extend(values.get(index)[part][number % layout::warpSize], 32);
}

LogicalResult WarpRunner::gather(GatherOp op) {
  FragType type = op.getResult().getType();
  size_t elements = block.launch.spreads.get(type, warp).size();
  Box box = boxOf(op.getView(), OperandRange(nullptr, 0));
  const Lanes &memref = values.get(op.getView());
  size_t rank = op.getIndices().size();
  int64_t bytes = (bitsOf(box.element) + 7) / 8;
  Lanes result(elements / layout::warpSize, Part(layout::warpSize, 0));
  for (size_t number = 0; number < elements; ++number) {
    size_t part = number / layout::warpSize, lane = number % layout::warpSize;
    int64_t offset = 0;
    bool isInside = true;
    for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
      int64_t at = indexOf(index, type, number);
      isInside &= at >= 0 && at < int64_t(memref[2 + dim][0]);
      offset += at * int64_t(memref[2 + rank + dim][0]);
    }
    if (!isInside)
      continue;
    uint64_t at = box.address + offset * bytes;
    if (std::string message = block.launch.global.check(at, bytes);
        !message.empty())
      return refuse(op, message);
    std::memcpy(&result[part][lane], reinterpret_cast<void *>(at), bytes);
  }
  values.set(op.getResult(), std::move(result));
  return success();
}

LogicalResult WarpRunner::dotRows(DotRowsOp op) {
  FragType type = op.getResult().getType();
  const Spread &spread = block.launch.spreads.get(type, warp);
  size_t dims = op.getIndices().size(), rank = dims + 1;
  Type element = llvm::cast<MemRefType>(op.getLhs().getType()).getElementType();
  int64_t bytes = bitsOf(element) / 8, perChunk = layout::chunkBytes / bytes;
  int64_t columns = op.getRowBytes() / bytes;
  std::string message;
  /// The element of a row, counted from the first; 0 past the end.
  auto read = [&](Value view, int64_t row, int64_t column) -> float {
    const Lanes &memref = values.get(view);
    int64_t offset = memref[1][0] + column;
    for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
      int64_t at = values.getSigned(index) + (dim + 1 == dims ? row : 0);
      if (at >= int64_t(memref[2 + dim][0]))
        return 0;
      offset += at * int64_t(memref[2 + rank + dim][0]);
    }
    uint64_t address = memref[0][0] + offset * bytes, bits = 0;
    if (message.empty())
      message = block.launch.global.check(address, bytes);
    if (message.empty())
      std::memcpy(&bits, reinterpret_cast<void *>(address), bytes);
    return toFloat(element, bits);
  };
  Lanes result(spread.size() / layout::warpSize, Part(layout::warpSize));
  for (auto [number, coord] : llvm::enumerate(spread)) {
    float sum = 0;
    for (int64_t column = 0; column < columns; ++column)
      if (column / perChunk % layout::laneColumns == coord.column)
        sum = std::fma(read(op.getLhs(), coord.row, column),
                       read(op.getRhs(), coord.row, column), sum);
    result[number / layout::warpSize][number % layout::warpSize] =
        fromFloat(type.getElementType(), sum);
  }
  if (!message.empty())
    return refuse(op, message);
  values.set(op.getResult(), std::move(result));
  return success();
}

LogicalResult WarpRunner::search(SearchOp op) {
  Type type = op.getResult().getType();
  const Lanes &memref = values.get(op.getView());
  size_t rank = op.getIndices().size() + 1;
  constexpr int64_t bytes = sizeof(int32_t);
  Lanes result(countParts(type), Part(layout::warpSize, 0));
  for (size_t number = 0; number < result.size() * layout::warpSize; ++number) {
    int64_t offset = memref[1][0], value = indexOf(op.getValue(), type, number);
    bool isInside = true;
    for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
      int64_t at = indexOf(index, type, number);
      isInside &= at >= 0 && at < int64_t(memref[2 + dim][0]);
      offset += at * int64_t(memref[2 + rank + dim][0]);
    }
    int64_t count = 0;
    int64_t size = isInside ? memref[1 + rank][0] : 0;
    for (; count < size; ++count) {
      int64_t stride = memref[1 + 2 * rank][0];
      uint64_t at = memref[0][0] + (offset + count * stride) * bytes;
      if (std::string message = block.launch.global.check(at, bytes);
          !message.empty())
        return refuse(op, message);
      int32_t element;
      std::memcpy(&element, reinterpret_cast<void *>(at), bytes);
      if (element > value)
        break;
    }
    result[number / layout::warpSize][number % layout::warpSize] = count;
  }
  values.set(op.getResult(), std::move(result));
  return success();
}

LogicalResult WarpRunner::clearBins(ClearBinsOp op) {
  bins[op.getBins().getDefiningOp()] = {};
  return success();
}

LogicalResult WarpRunner::scatterAdd(ScatterAddOp op) {
  auto found = bins.find(op.getBins().getDefiningOp());
  if (found == bins.end())
    return refuse(op, "adds to bins that are not cleared");
  FragType type = op.getValue().getType();
  const Lanes &numbers = values.get(op.getValue());
  for (auto [number, coord] :
       llvm::enumerate(block.launch.spreads.get(type, warp))) {
    int64_t bin = indexOf(op.getIndex(), type, number);
    if (bin < 0 || bin >= static_cast<int64_t>(op.getCount()))
      continue;
    found->second[{op.getRows() ? coord.row : 0, bin}] +=
        toFloat(type.getElementType(),
                numbers[number / layout::warpSize][number % layout::warpSize]);
  }
  return success();
}

LogicalResult WarpRunner::storeBins(StoreBinsOp op) {
  auto found = bins.find(op.getBins().getDefiningOp());
  if (found == bins.end())
    return refuse(op, "writes bins that are not cleared");
  Box box = boxOf(op.getView(), op.getIndices());
  std::vector<int64_t> rows = {0};
  if (op.getRows()) {
    auto type = FragType::get(
        op.getContext(), {static_cast<int64_t>(op.getRows()), 1},
        Float32Type::get(op.getContext()), FragKind::Acc, op.getWarps());
    for (const layout::Coord &coord : block.launch.spreads.get(type, warp))
      rows.push_back(coord.row);
    rows.erase(rows.begin());
  }
  // Lanes share rows.
  llvm::sort(rows);
  rows.erase(llvm::unique(rows), rows.end());
  for (int64_t row : rows)
    for (int64_t bin = 0; bin < static_cast<int64_t>(op.getCount()); ++bin) {
      std::optional<uint64_t> at = box.find(op.getRows() ? row : warp, bin);
      if (!at)
        continue;
      if (std::string message = block.launch.global.check(*at, sizeof(float));
          !message.empty())
        return refuse(op, message);
      if (!block.launch.stored.insert(*at).second)
        return refuse(op, "writes an element that was written before");
      float sum = found->second[{row, bin}];
      std::memcpy(reinterpret_cast<void *>(*at), &sum, sizeof(float));
    }
  return success();
}

std::optional<LogicalResult> WarpRunner::executeTransfers(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<RingOp, MailboxOp, AllocOp>([](auto) { return success(); })
      .Case<StoreOp>([&](StoreOp store) { return this->store(store); })
      .Case<LoadOp>([&](LoadOp load) { return this->load(load); })
      .Case<GatherOp>([&](GatherOp gather) { return this->gather(gather); })
      .Case<DotRowsOp>([&](DotRowsOp rows) { return this->dotRows(rows); })
      .Case<ClearBinsOp>([&](ClearBinsOp clear) { return clearBins(clear); })
      .Case<ScatterAddOp>([&](ScatterAddOp add) { return scatterAdd(add); })
      .Case<StoreBinsOp>([&](StoreBinsOp store) { return storeBins(store); })
      .Case<SearchOp>([&](SearchOp search) { return this->search(search); })
      .Default([](Operation *) { return std::nullopt; });
}
