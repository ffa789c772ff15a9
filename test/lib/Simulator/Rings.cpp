//===- Rings.cpp - slots of shared memory and who may use them --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rings.h"

#include "llvm/ADT/STLExtras.h"

using namespace attn::simulator;

static std::string number(int64_t n) { return std::to_string(n); }

bool Ring::isReleasedByAll(const Slot &slot) const {
  for (auto [warp, holder] : llvm::enumerate(slot.holders))
    if (drainers[warp] && holder.state != Holder::Released)
      return false;
  return true;
}

int64_t Slot::findReader() const {
  for (auto [warp, holder] : llvm::enumerate(holders))
    if (holder.reads != 0)
      return warp;
  return -1;
}

int64_t Slot::findReaderOfAll() const {
  for (auto [warp, holder] : llvm::enumerate(holders))
    if (holder.readsOfAll != 0)
      return warp;
  return -1;
}

void Slot::fill(std::vector<float> content) {
  elements = std::move(content);
  lost.clear();
}

void SlotUse::beginRead(int64_t warp, bool isOfAll) const {
  ++slot().holders[warp].reads;
  slot().holders[warp].readsOfAll += isOfAll;
}

void SlotUse::endRead(int64_t warp, bool isOfAll) const {
  --slot().holders[warp].reads;
  slot().holders[warp].readsOfAll -= isOfAll;
}

std::string SlotUse::lose(int64_t warp, int64_t row, int64_t rows) const {
  Slot &slot = this->slot();
  const Holder &holder = slot.holders[warp];
  if (!isFixed && (slot.item != item || holder.state != Holder::Holds))
    return "goes via item " + number(item) + ", which this warp does not hold";
  if (holder.reads != 0)
    return "goes via a slot that a product in flight still reads";
  if (int64_t reader = slot.findReaderOfAll(); reader >= 0)
    return "goes via a slot that a product in flight of warp " +
           number(reader) + " reads";
  slot.lost.resize(rows);
  slot.lost[row] = true;
  return "";
}

std::string SlotUse::checkRead(int64_t warp) const {
  const Slot &slot = this->slot();
  if (isFixed)
    return slot.hasContent() ? "" : "reads a slot that nothing was copied to";
  const Holder &holder = slot.holders[warp];
  if (slot.item == item && holder.state == Holder::Released)
    return "reads item " + number(item) + ", which this warp has released";
  if (slot.item != item)
    return "reads item " + number(item) + ", whose slot holds " +
           (slot.item < 0 ? "nothing" : "item " + number(slot.item));
  if (!slot.hasContent() || holder.state == Holder::Away)
    return "reads item " + number(item) +
           ", which had not arrived when this warp waited for it";
  return "";
}

void Ring::start(Slot &slot, int64_t item) {
  slot.item = item;
  slot.fill({});
  for (Holder &holder : slot.holders)
    holder = Holder();
}

Answer Ring::beginCopy(int64_t item) {
  if (item != nextCopy)
    return Answer::wrong("copies item " + number(item) +
                         ", the next of this ring is item " + number(nextCopy));
  Slot &slot = slotOf(item);
  if (slot.item >= 0 && !isReleasedByAll(slot))
    return Answer::wait("the release of item " + number(slot.item));
  start(slot, item);
  ++nextCopy;
  return Answer::go();
}

void Ring::finishCopy(int64_t item, std::vector<float> elements) {
  slotOf(item).fill(std::move(elements));
}

Answer Ring::beginPart(int64_t warp, int64_t item) {
  Slot &slot = slotOf(item);
  Holder *own = slot.item == item ? &slot.holders[warp] : nullptr;
  if (slot.item > item || (own && own->part != Holder::Missing))
    return Answer::wrong("fills item " + number(item) + " a second time");
  if (own)
    return Answer::go();
  // The first of the warps that fill it.
  Answer answer = beginCopy(item);
  if (answer.kind == Answer::Go) {
    slot.parts.clear();
    slot.numParts = 0;
  }
  return answer;
}

void Ring::finishPart(int64_t warp, int64_t item, int64_t parts) {
  Slot &slot = slotOf(item);
  slot.holders[warp].part = Holder::Complete;
  if (++slot.numParts == parts)
    slot.fill(slot.parts);
}

bool Ring::test(int64_t item) {
  int64_t depth = slots.size();
  const Slot &slot = slotOf(item);
  int64_t numComplete =
      slot.item < 0 ? 0 : slot.item / depth + slot.hasContent();
  return (numComplete - item / depth) % 2 != 0;
}

Answer Ring::await(int64_t warp, int64_t item) {
  if (!drainers[warp])
    return Answer::wrong("waits for an item of a ring that its role does not "
                         "drain");
  if (item != nextAwait[warp])
    return Answer::wrong("waits for item " + number(item) +
                         ", the next of this ring is item " +
                         number(nextAwait[warp]));
  Slot &slot = slotOf(item);
  if (slot.item != item || !slot.hasContent())
    return Answer::wait("the arrival of item " + number(item));
  slot.holders[warp].state = Holder::Holds;
  ++nextAwait[warp];
  return Answer::go();
}

std::string Ring::beginCopyOfAll(int64_t warp, int64_t item, int64_t barriers,
                                 const std::vector<float> &elements) {
  if (item < 0)
    return "copies item " + number(item);
  Slot &slot = slotOf(item);
  Holder &own = slot.holders[warp];
  if (slot.item == item) {
    if (own.part != Holder::Missing)
      return "copies item " + number(item) + " a second time";
    own.part = Holder::InFlight;
    return "";
  }
  for (auto [other, holder] : llvm::enumerate(slot.holders)) {
    if (slot.item < 0)
      break;
    std::string what = "overwrites item " + number(slot.item);
    if (holder.state == Holder::Away)
      return what + ", which warp " + number(other) + " has not awaited";
    if (holder.state == Holder::Holds)
      return what + ", which warp " + number(other) + " has not released";
    if (int64_t(other) != warp && holder.releasedAt >= barriers)
      return what + ", which warp " + number(other) +
             " released with no barrier in between";
  }
  start(slot, item);
  own.part = Holder::InFlight;
  slot.fill(elements);
  return "";
}

void Ring::finishCopyOfAll(int64_t warp, int64_t item) {
  Slot &slot = slotOf(item);
  if (slot.item == item)
    slot.holders[warp].part = Holder::Complete;
}

std::string Ring::take(int64_t warp, int64_t item) {
  if (item < 0)
    return "waits for item " + number(item);
  Slot &slot = slotOf(item);
  if (slot.item != item) {
    // Not copied, or replaced: whoever reads it is told.
    return "";
  }
  for (auto [other, holder] : llvm::enumerate(slot.holders))
    if (holder.part != Holder::Complete)
      return "waits for item " + number(item) + ", of which warp " +
             number(other) +
             (holder.part == Holder::Missing ? " has not copied its part"
                                             : " still has copies in flight");
  Holder &own = slot.holders[warp];
  if (own.state != Holder::Away)
    return "waits for item " + number(item) + " a second time";
  own.state = Holder::Holds;
  return "";
}

std::string Ring::release(int64_t warp, int64_t item, int64_t barriers) {
  Slot &slot = slotOf(item);
  if (slot.item != item) // it was not copied
    return "";
  Holder &holder = slot.holders[warp];
  if (holder.state == Holder::Released)
    return "releases item " + number(item) + " a second time";
  if (holder.state == Holder::Away)
    return "releases item " + number(item) + ", which it does not hold";
  if (holder.reads != 0)
    return "releases item " + number(item) +
           ", which a product in flight still reads";
  holder.state = Holder::Released;
  holder.releasedAt = barriers;
  return "";
}

std::string Ring::checkEnd() const {
  for (const Slot &slot : slots)
    for (auto [warp, holder] : llvm::enumerate(slot.holders)) {
      if (slot.item < 0 || !drainers[warp] || holder.state == Holder::Released)
        continue;
      return "ends with item " + number(slot.item) + " that warp " +
             number(warp) + " never " +
             (holder.state == Holder::Away ? "awaited" : "released");
    }
  return "";
}
