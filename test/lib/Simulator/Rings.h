//===- Rings.h - slots of shared memory and who may use them ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_RINGS_H
#define ATTN_TEST_SIMULATOR_RINGS_H

#include <cstdint>
#include <string>
#include <vector>

namespace attn::simulator {

/// What a warp is told when it asks to do something.
struct Answer {
  enum Kind { Go, Wait, Wrong } kind = Go;
  /// What it waits for, or what is wrong.
  std::string reason;

  static Answer go() { return {}; }
  static Answer wait(std::string reason) { return {Wait, std::move(reason)}; }
  static Answer wrong(std::string reason) { return {Wrong, std::move(reason)}; }
};

/// What a warp does with an item.
struct Holder {
  enum State { Away, Holds, Released } state = Away;
  /// Barriers of the block that the warp had passed when it released.
  int64_t releasedAt = -1;
  /// Products in flight that read the slot, and those that read all of it.
  int64_t reads = 0, readsOfAll = 0;
  /// The warp's part of a copy by all warps.
  enum Part { Missing, InFlight, Complete } part = Missing;
};

/// A tile of shared memory. Without elements it has no content.
struct Slot {
  explicit Slot(int64_t warps) : holders(warps) {}

  /// The item that lies here, or is on its way; -1: none yet.
  int64_t item = -1;
  /// Row by row.
  std::vector<float> elements;
  /// What came so far of an item that warps of a role fill.
  std::vector<float> parts;
  int64_t numParts = 0;
  /// Rows that results took on their way out; empty: none.
  std::vector<bool> lost;
  std::vector<Holder> holders;

  bool hasContent() const { return !elements.empty(); }
  /// A warp of which a product in flight reads the slot, or all of it; or -1.
  int64_t findReader() const;
  int64_t findReaderOfAll() const;
  bool isLost(int64_t row) const { return !lost.empty() && lost[row]; }
  void fill(std::vector<float> content);
};

/// The slots of a `warp.ring`, or the one of a `warp.alloc`.
class Ring {
public:
  /// `drainers` are the warps of the block that drain it.
  Ring(int64_t depth, std::vector<bool> drainers)
      : slots(depth, Slot(int64_t(drainers.size()))), drainers(drainers),
        nextAwait(drainers.size(), 0) {}

  Slot &slotOf(int64_t item) { return slots[item % slots.size()]; }

  // With roles: items in order.

  /// The role that fills it starts copying an item.
  Answer beginCopy(int64_t item);
  void finishCopy(int64_t item, std::vector<float> elements);
  /// A warp of a role that computes wants to fill its part of an item.
  Answer beginPart(int64_t warp, int64_t item);
  /// It has; `parts` warps fill an item.
  void finishPart(int64_t warp, int64_t item, int64_t parts);
  /// What the barrier of an item's slot says. It knows the parity of its phase
  /// only, so for an item that is not the next one it may be wrong.
  bool test(int64_t item);
  /// A warp wants to read an item.
  Answer await(int64_t warp, int64_t item);

  // Without: all warps copy a part each, and meet at barriers, of which
  // `barriers` have been passed.

  std::string beginCopyOfAll(int64_t warp, int64_t item, int64_t barriers,
                             const std::vector<float> &elements);
  void finishCopyOfAll(int64_t warp, int64_t item);
  /// After the barrier of an await.
  std::string take(int64_t warp, int64_t item);

  // Both.

  std::string release(int64_t warp, int64_t item, int64_t barriers);
  /// What is left over when the block ends.
  std::string checkEnd() const;

private:
  void start(Slot &slot, int64_t item);
  bool isReleasedByAll(const Slot &slot) const;

  std::vector<Slot> slots;
  std::vector<bool> drainers;
  int64_t nextCopy = 0;
  std::vector<int64_t> nextAwait;
};

/// What a warp may read: an awaited slot, or one of `warp.alloc`.
struct SlotUse {
  Ring *ring = nullptr;
  int64_t item = -1;
  /// Of `warp.alloc`: nobody releases it.
  bool isFixed = false;

  Slot &slot() const { return ring->slotOf(item); }
  std::string checkRead(int64_t warp) const;
  /// A product of the warp reads some rows of it (its own), or all.
  void beginRead(int64_t warp, bool isOfAll) const;
  void endRead(int64_t warp, bool isOfAll) const;
  /// The warp stores rows of it on their way out.
  std::string lose(int64_t warp, int64_t row, int64_t rows) const;
};

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_RINGS_H
