//===- VisitBounds.cpp - visit sets as index arithmetic -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/VisitBounds.h"

#include "SymbolEmitter.h"

using namespace mlir;
using namespace attn::tile;

static bool haveSame(ArrayRef<BlockInterval> intervals,
                     SmallVector<LinearForm, 2> (BlockInterval::*bounds)()
                         const) {
  return llvm::all_of(intervals, [&](const BlockInterval &interval) {
    return (interval.*bounds)() == (intervals.front().*bounds)();
  });
}

/// Whether the interval reaches down, or up, as far as all of `visited`.
static bool reaches(const BlockInterval &interval,
                    ArrayRef<BlockInterval> visited,
                    SmallVector<LinearForm, 2> (BlockInterval::*bounds)()
                        const) {
  SmallVector<LinearForm, 2> own = (interval.*bounds)();
  return own.empty() ||
         (haveSame(visited, bounds) && own == (visited.front().*bounds)());
}

bool attn::tile::isOneInterval(const VisitSet &set) {
  if (set.visited.empty())
    return true;
  if (!haveSame(set.visited, &BlockInterval::lowerBounds) &&
      !haveSame(set.visited, &BlockInterval::upperBounds))
    return false;
  return llvm::all_of(set.masked, [&](const BlockInterval &interval) {
    return reaches(interval, set.visited, &BlockInterval::lowerBounds) ||
           reaches(interval, set.visited, &BlockInterval::upperBounds);
  });
}

/// Whether `interval`, where something is hidden, is all that is visited.
static bool isEverything(const BlockInterval &interval, const VisitSet &set) {
  return reaches(interval, set.visited, &BlockInterval::lowerBounds) &&
         reaches(interval, set.visited, &BlockInterval::upperBounds) &&
         interval.conditions().empty();
}

bool attn::tile::isAllMasked(const VisitSet &set) {
  return llvm::any_of(set.masked, [&](const BlockInterval &interval) {
    return isEverything(interval, set);
  });
}

namespace {
class VisitEmitter : public SymbolEmitter {
public:
  VisitEmitter(OpBuilder &builder, const MaskProblem &problem, scf::ForOp loop,
               Value lo, Value hi)
      : SymbolEmitter(builder, problem, loop), problem(problem), lo(lo),
        hi(hi) {}

  KeyBlockRange emitRange(const VisitSet &set);
  KeyBlockPieces emitPieces(const VisitSet &set);

private:
  /// factor * n >= -rest
  Value lowerBound(const LinearForm &bound) {
    int64_t factor = bound.coefficient(VisitProblem::block);
    LinearForm rest = bound - LinearForm::variable(VisitProblem::block, factor);
    return floorDiv(linear(rest, -1, factor - 1), factor);
  }
  /// The first block after: factor * n <= rest.
  Value upperBound(const LinearForm &bound) {
    int64_t factor = -bound.coefficient(VisitProblem::block);
    LinearForm rest = bound + LinearForm::variable(VisitProblem::block, factor);
    return ceilDiv(linear(rest, 1, 1), factor);
  }
  Value lowerBound(const BlockInterval &interval, Value start) {
    for (const LinearForm &bound : interval.lowerBounds()) {
      start = max(lowerBound(bound), start);
      // Memory may hold anything; the first block of an empty range must still
      // have coordinates.
      if (dependsOnMemory(bound))
        start = min(start, hi);
    }
    return start;
  }
  bool dependsOnMemory(const LinearForm &form) {
    return llvm::any_of(form.terms, [&](const auto &term) {
      auto source = problem.symbols.find(term.first);
      return source != problem.symbols.end() &&
             (source->second.kind == SymbolSource::Kind::Quotient
                  ? dependsOnMemory(source->second.limit)
                  : source->second.kind != SymbolSource::Kind::Scalar);
    });
  }
  Value upperBound(const BlockInterval &interval, Value end) {
    for (const LinearForm &bound : interval.upperBounds())
      end = min(end, upperBound(bound));
    return end;
  }
  /// `value` if the interval's conditions hold.
  Value choose(const BlockInterval &interval, Value value, Value otherwise) {
    for (const LinearForm &condition : interval.conditions())
      value = select(notBelow(linear(condition, 1, 0), constant(0)), value,
                     otherwise);
    return value;
  }

  SmallVector<KeyBlockPiece> emitSorted(ArrayRef<BlockInterval> intervals);

  const MaskProblem &problem;
  Value lo, hi; // of all blocks
};
} // namespace

KeyBlockRange VisitEmitter::emitRange(const VisitSet &set) {
  Value start = lo, end = hi;
  KeyBlockRange range;
  if (set.visited.empty()) {
    range.lo = range.fullLo = range.fullHi = range.hi = start;
    return range;
  }
  ArrayRef<BlockInterval> visited = set.visited;
  if (haveSame(visited, &BlockInterval::lowerBounds)) {
    range.lo = lowerBound(visited.front(), start);
    for (const BlockInterval &interval : visited) {
      Value hi = choose(interval, upperBound(interval, end), range.lo);
      range.hi = range.hi ? max(range.hi, hi) : hi;
    }
  } else {
    range.hi = upperBound(visited.front(), end);
    for (const BlockInterval &interval : visited) {
      Value lo = choose(interval, lowerBound(interval, start), range.hi);
      range.lo = range.lo ? min(range.lo, lo) : lo;
    }
  }
  if (range.lo != start || range.hi != end)
    range.hi = max(range.hi, range.lo);

  for (const BlockInterval &interval : set.masked) {
    bool fromStart = reaches(interval, visited, &BlockInterval::lowerBounds);
    bool toEnd = reaches(interval, visited, &BlockInterval::upperBounds);
    if (isEverything(interval, set)) {
      range.isAllMasked = true;
    } else if (fromStart && !toEnd) {
      Value full;
      for (const LinearForm &bound : interval.upperBounds()) {
        Value hi = upperBound(bound);
        full = full ? min(full, hi) : hi;
      }
      full = choose(interval, full, range.lo);
      range.fullLo = range.fullLo ? max(range.fullLo, full) : full;
      range.hasLower = true;
    } else {
      Value full = toEnd && fromStart ? range.lo : Value();
      if (!full)
        for (const LinearForm &bound : interval.lowerBounds()) {
          Value lo = lowerBound(bound);
          full = full ? max(full, lo) : lo;
        }
      full = choose(interval, full, range.hi);
      range.fullHi = range.fullHi ? min(range.fullHi, full) : full;
      range.hasUpper = true;
    }
  }
  range.fullLo =
      range.fullLo ? min(max(range.fullLo, range.lo), range.hi) : range.lo;
  range.fullHi =
      range.fullHi ? max(min(range.fullHi, range.hi), range.fullLo) : range.hi;
  return range;
}

/// In ascending order, made disjoint. Intervals that begin or end alike,
/// whatever the symbols, are one piece: each piece more lives in registers for
/// every loop over blocks.
SmallVector<KeyBlockPiece>
VisitEmitter::emitSorted(ArrayRef<BlockInterval> intervals) {
  SmallVector<KeyBlockPiece> pieces;
  // What all intervals of a piece have in common; of one by itself both.
  struct Common {
    const BlockInterval *interval;
    bool begin = true, end = true;
  };
  SmallVector<Common> commons;
  auto join = [&](const BlockInterval &interval, const KeyBlockPiece &added) {
    for (auto [piece, common] : llvm::zip_equal(pieces, commons)) {
      const BlockInterval *other = common.interval;
      if (!interval.conditions().empty() || !other->conditions().empty())
        continue;
      if (common.end && interval.upperBounds() == other->upperBounds()) {
        piece.lo = min(piece.lo, added.lo);
        common.begin = false;
        return true;
      }
      if (common.begin && interval.lowerBounds() == other->lowerBounds()) {
        piece.hi = max(piece.hi, added.hi);
        common.end = false;
        return true;
      }
    }
    return false;
  };
  for (const BlockInterval &interval : intervals) {
    KeyBlockPiece piece;
    piece.lo = lowerBound(interval, lo);
    piece.hi = choose(interval, upperBound(interval, hi), piece.lo);
    if (join(interval, piece))
      continue;
    pieces.push_back(piece);
    commons.push_back({&interval});
  }
  for (size_t last = pieces.size(); last > 1; --last)
    for (size_t i = 0; i + 1 < last; ++i) {
      KeyBlockPiece &a = pieces[i], &b = pieces[i + 1];
      Value isSorted = notBelow(b.lo, a.lo);
      KeyBlockPiece first = {select(isSorted, a.lo, b.lo),
                             select(isSorted, a.hi, b.hi)};
      KeyBlockPiece second = {select(isSorted, b.lo, a.lo),
                              select(isSorted, b.hi, a.hi)};
      a = first;
      b = second;
    }
  Value end;
  for (KeyBlockPiece &piece : pieces) {
    if (end)
      piece.lo = max(piece.lo, end);
    piece.hi = max(piece.hi, piece.lo);
    end = piece.hi;
  }
  return pieces;
}

KeyBlockPieces VisitEmitter::emitPieces(const VisitSet &set) {
  KeyBlockPieces result;
  SmallVector<KeyBlockPiece> visited = emitSorted(set.visited);
  size_t numVisited = visited.size(), numMasked = set.masked.size();
  bool isAllMasked =
      numVisited * (2 * numMasked + 1) > 2 * maxPieces ||
      llvm::any_of(set.masked, [](const BlockInterval &interval) {
        return interval.constraints.empty();
      });
  if (isAllMasked) {
    result.masked = visited;
    return result;
  }
  SmallVector<KeyBlockPiece> masked = emitSorted(set.masked);
  for (const KeyBlockPiece &outer : visited) {
    auto clip = [&](Value lo, Value hi) {
      lo = lo ? max(outer.lo, lo) : outer.lo;
      hi = hi ? min(outer.hi, hi) : outer.hi;
      return KeyBlockPiece{lo, max(hi, lo)};
    };
    Value end;
    for (const KeyBlockPiece &inner : masked) {
      result.full.push_back(clip(end, inner.lo));
      result.masked.push_back(clip(inner.lo, inner.hi));
      end = inner.hi;
    }
    result.full.push_back(clip(end, Value()));
  }
  return result;
}

KeyBlockRange attn::tile::emitRange(OpBuilder &builder,
                                    const MaskProblem &problem,
                                    const VisitSet &set, scf::ForOp loop) {
  return emitRange(builder, problem, set, loop, loop.getLowerBound(),
                   loop.getUpperBound());
}

KeyBlockRange attn::tile::emitRange(OpBuilder &builder,
                                    const MaskProblem &problem,
                                    const VisitSet &set, scf::ForOp loop,
                                    Value lo, Value hi) {
  assert((set.visited.empty() || isOneInterval(set)) && "one interval");
  return VisitEmitter(builder, problem, loop, lo, hi).emitRange(set);
}

KeyBlockPieces attn::tile::emitPieces(OpBuilder &builder,
                                      const MaskProblem &problem,
                                      const VisitSet &set, scf::ForOp loop) {
  return VisitEmitter(builder, problem, loop, loop.getLowerBound(),
                      loop.getUpperBound())
      .emitPieces(set);
}
