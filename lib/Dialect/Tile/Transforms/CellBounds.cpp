//===- CellBounds.cpp - what a mask shows of many pairs -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CellBounds.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace attn::tile;

/// Cells of fewer queries or keys are not worth it.
static constexpr int64_t leastCell = 8;

namespace {
/// What a value may be in a cell: least <= value <= greatest; of booleans,
/// false is less than true.
struct CellRange {
  Value least, greatest;
  bool isNonNegative = false;
  /// Set where the value is floor(position / divisor), of queries (2) or keys
  /// (3), the arguments of the region.
  unsigned axis = 0;
  int64_t divisor = 1;

  bool isOne() const { return least == greatest; }
};

class BoundsBuilder {
public:
  BoundsBuilder(OpBuilder &b, Block &region, MaskCell cell)
      : b(b), region(region), cell(cell) {}

  /// Bounds for the cell that begins with these positions.
  std::optional<CellRange> read(ValueRange arguments, Value root);

private:
  std::optional<CellRange> find(Value value) const;
  std::optional<CellRange> compute(Operation *op);
  std::optional<CellRange> bound(Operation *op, ArrayRef<CellRange> of);
  std::optional<CellRange> divide(Operation *op, CellRange lhs,
                                  int64_t divisor);
  std::optional<CellRange> remainder(Operation *op, CellRange lhs,
                                     int64_t divisor);
  std::optional<CellRange> multiply(Operation *op, CellRange lhs,
                                    CellRange rhs);
  std::optional<CellRange> compare(arith::CmpIOp op, CellRange lhs,
                                   CellRange rhs);
  std::optional<CellRange> select(Operation *op, CellRange condition,
                                  CellRange lhs, CellRange rhs);
  std::optional<CellRange> extremes(ArrayRef<Value> values);

  template <typename Op> Value make(Value lhs, Value rhs) {
    return b.createOrFold<Op>(region.getParentOp()->getLoc(), lhs, rhs);
  }
  Value choose(Value condition, Value lhs, Value rhs) {
    return b.createOrFold<arith::SelectOp>(region.getParentOp()->getLoc(),
                                           condition, lhs, rhs);
  }
  Value test(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(region.getParentOp()->getLoc(),
                                         predicate, lhs, rhs);
  }
  Value number(Type type, int64_t value) {
    return arith::ConstantOp::create(b, region.getParentOp()->getLoc(),
                                     b.getIntegerAttr(type, value));
  }
  Value negate(Value value) {
    return make<arith::SubIOp>(number(value.getType(), 0), value);
  }
  Value invert(Value value) {
    return make<arith::XOrIOp>(value, number(value.getType(), 1));
  }
  /// `op`, of other operands.
  Value repeat(Operation *op, ValueRange operands);

  OpBuilder &b;
  Block &region;
  MaskCell cell;
  DenseMap<Value, std::optional<CellRange>> known;
};
} // namespace

/// Divisors beyond which a quotient is that of no position.
static constexpr int64_t maxDivisor = int64_t(1) << 30;

/// By what an integer is divided: quotient or remainder; shifts and masks are.
static std::optional<int64_t> getDivisor(Operation *op, bool isQuotient) {
  std::optional<int64_t> value = op->getNumOperands() == 2
                                     ? getIntegerConstant(op->getOperand(1))
                                     : std::nullopt;
  if (!value)
    return std::nullopt;
  if (isQuotient && isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    return *value >= 0 && *value <= 30 ? std::optional(int64_t(1) << *value)
                                       : std::nullopt;
  if (!isQuotient && isa<arith::AndIOp>(op))
    return *value > 0 && llvm::isPowerOf2_64(*value + 1)
               ? std::optional(*value + 1)
               : std::nullopt;
  bool isOne =
      isQuotient ? isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op)
                 : isa<arith::RemSIOp, arith::RemUIOp>(op);
  return isOne && *value >= 1 && *value <= maxDivisor ? value : std::nullopt;
}

Value BoundsBuilder::repeat(Operation *op, ValueRange operands) {
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *copy = b.clone(*op, mapping);
  SmallVector<Value> folded;
  if (failed(b.tryFold(copy, folded)) || folded.size() != 1)
    return copy->getResult(0);
  copy->erase();
  return folded.front();
}

/// From the least to the greatest of several values.
std::optional<CellRange> BoundsBuilder::extremes(ArrayRef<Value> values) {
  CellRange range = {values.front(), values.front()};
  for (Value value : values.drop_front()) {
    range.least = make<arith::MinSIOp>(range.least, value);
    range.greatest = make<arith::MaxSIOp>(range.greatest, value);
  }
  return range;
}

std::optional<CellRange> BoundsBuilder::divide(Operation *op, CellRange lhs,
                                               int64_t divisor) {
  // What is unsigned here only grows with what is not negative.
  if (isa<arith::DivUIOp, arith::ShRUIOp>(op) && !lhs.isNonNegative)
    return std::nullopt;
  Value rhs = op->getOperand(1);
  Value by = number(rhs.getType(), *getIntegerConstant(rhs));
  CellRange range = {repeat(op, {lhs.least, by}), {}, lhs.isNonNegative};
  if (lhs.axis && lhs.divisor <= maxDivisor / divisor) {
    range.axis = lhs.axis;
    range.divisor = lhs.divisor * divisor;
    // Cells are aligned.
    if (range.divisor % (lhs.axis == 2 ? cell.queries : cell.keys) == 0) {
      range.greatest = range.least;
      return range;
    }
  }
  range.greatest = repeat(op, {lhs.greatest, by});
  return range;
}

/// x - floor(x / c) c grows with x as long as the quotient is the same.
std::optional<CellRange> BoundsBuilder::remainder(Operation *op, CellRange lhs,
                                                  int64_t divisor) {
  if (isa<arith::RemUIOp>(op) && !lhs.isNonNegative)
    return std::nullopt;
  Type type = lhs.least.getType();
  Value by = number(type, divisor), last = number(type, divisor - 1);
  bool isMask = isa<arith::AndIOp>(op);
  auto quotient = [&](Value value) {
    return isMask ? b.createOrFold<arith::FloorDivSIOp>(op->getLoc(), value, by)
                  : b.createOrFold<arith::DivSIOp>(op->getLoc(), value, by);
  };
  Value first = quotient(lhs.least);
  Value isSame = test(arith::CmpIPredicate::eq, first, quotient(lhs.greatest));
  Value base = make<arith::MulIOp>(first, by);
  // Those of negative numbers are negative, unless bits are masked.
  bool isAbove = isMask || lhs.isNonNegative;
  Value below = isAbove ? number(type, 0) : negate(last);
  return CellRange{
      choose(isSame, make<arith::SubIOp>(lhs.least, base), below),
      choose(isSame, make<arith::SubIOp>(lhs.greatest, base), last), isAbove};
}

std::optional<CellRange> BoundsBuilder::multiply(Operation *, CellRange lhs,
                                                 CellRange rhs) {
  SmallVector<Value> products;
  for (Value one : {lhs.least, lhs.greatest})
    for (Value other : {rhs.least, rhs.greatest})
      products.push_back(make<arith::MulIOp>(one, other));
  std::optional<CellRange> range = extremes(products);
  range->isNonNegative = lhs.isNonNegative && rhs.isNonNegative;
  return range;
}

std::optional<CellRange> BoundsBuilder::compare(arith::CmpIOp op, CellRange lhs,
                                                CellRange rhs) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  bool areNonNegative = lhs.isNonNegative && rhs.isNonNegative;
  auto isSigned = [&](P one, P other) {
    return predicate == one || (areNonNegative && predicate == other);
  };
  if (isSigned(P::sgt, P::ugt) || isSigned(P::sge, P::uge))
    std::swap(lhs, rhs);
  if (isSigned(P::slt, P::ult) || isSigned(P::sgt, P::ugt))
    return CellRange{test(P::slt, lhs.greatest, rhs.least),
                     test(P::slt, lhs.least, rhs.greatest)};
  if (isSigned(P::sle, P::ule) || isSigned(P::sge, P::uge))
    return CellRange{test(P::sle, lhs.greatest, rhs.least),
                     test(P::sle, lhs.least, rhs.greatest)};
  if (predicate != P::eq && predicate != P::ne)
    return std::nullopt;
  if (lhs.least.getType().isInteger(1))
    return std::nullopt;
  CellRange equal = {
      make<arith::AndIOp>(test(P::sle, lhs.greatest, rhs.least),
                          test(P::sle, rhs.greatest, lhs.least)),
      make<arith::AndIOp>(test(P::sle, lhs.least, rhs.greatest),
                          test(P::sle, rhs.least, lhs.greatest))};
  if (predicate == P::eq)
    return equal;
  return CellRange{invert(equal.greatest), invert(equal.least)};
}

std::optional<CellRange> BoundsBuilder::select(Operation *op,
                                               CellRange condition,
                                               CellRange lhs, CellRange rhs) {
  bool isBoolean = op->getResult(0).getType().isInteger(1);
  auto both = [&](bool isLeast) {
    Value one = isLeast ? lhs.least : lhs.greatest;
    Value other = isLeast ? rhs.least : rhs.greatest;
    Value mixed = isBoolean ? (isLeast ? make<arith::AndIOp>(one, other)
                                       : make<arith::OrIOp>(one, other))
                            : (isLeast ? make<arith::MinSIOp>(one, other)
                                       : make<arith::MaxSIOp>(one, other));
    return choose(condition.least, one,
                  choose(condition.greatest, mixed, other));
  };
  CellRange range = {both(true), both(false)};
  range.isNonNegative = lhs.isNonNegative && rhs.isNonNegative;
  return range;
}

/// Two's complement is assumed not to wrap around, as everywhere in masks.
std::optional<CellRange> BoundsBuilder::bound(Operation *op,
                                              ArrayRef<CellRange> of) {
  if (!op->getResult(0).getType().isSignlessInteger())
    return std::nullopt;
  bool isBoolean = op->getResult(0).getType().isInteger(1);
  if (std::optional<int64_t> divisor = getDivisor(op, /*isQuotient=*/true))
    return divide(op, of[0], *divisor);
  if (std::optional<int64_t> divisor = getDivisor(op, /*isQuotient=*/false);
      divisor && !isBoolean)
    return remainder(op, of[0], *divisor);
  auto pairwise = [&](auto make, bool isNonNegative) {
    return CellRange{make(of[0].least, of[1].least),
                     make(of[0].greatest, of[1].greatest), isNonNegative};
  };
  return llvm::TypeSwitch<Operation *, std::optional<CellRange>>(op)
      .Case([&](arith::AddIOp) -> std::optional<CellRange> {
        if (isBoolean)
          return std::nullopt;
        return pairwise(
            [&](Value l, Value r) { return make<arith::AddIOp>(l, r); },
            of[0].isNonNegative && of[1].isNonNegative);
      })
      .Case([&](arith::SubIOp) -> std::optional<CellRange> {
        if (isBoolean)
          return std::nullopt;
        return CellRange{make<arith::SubIOp>(of[0].least, of[1].greatest),
                         make<arith::SubIOp>(of[0].greatest, of[1].least)};
      })
      .Case([&](arith::MulIOp) -> std::optional<CellRange> {
        return isBoolean ? std::nullopt : multiply(op, of[0], of[1]);
      })
      .Case([&](arith::MinSIOp) -> std::optional<CellRange> {
        if (isBoolean)
          return std::nullopt;
        return pairwise(
            [&](Value l, Value r) { return make<arith::MinSIOp>(l, r); },
            of[0].isNonNegative && of[1].isNonNegative);
      })
      .Case([&](arith::MaxSIOp) -> std::optional<CellRange> {
        if (isBoolean)
          return std::nullopt;
        return pairwise(
            [&](Value l, Value r) { return make<arith::MaxSIOp>(l, r); },
            of[0].isNonNegative || of[1].isNonNegative);
      })
      .Case([&](math::AbsIOp) -> std::optional<CellRange> {
        Value zero = number(of[0].least.getType(), 0);
        Value below = negate(of[0].greatest), above = negate(of[0].least);
        Value least = make<arith::MaxSIOp>(of[0].least, below);
        return CellRange{make<arith::MaxSIOp>(least, zero),
                         make<arith::MaxSIOp>(of[0].greatest, above), true};
      })
      .Case([&](arith::AndIOp) -> std::optional<CellRange> {
        if (!isBoolean)
          return std::nullopt;
        return pairwise(
            [&](Value l, Value r) { return make<arith::AndIOp>(l, r); }, true);
      })
      .Case([&](arith::OrIOp) -> std::optional<CellRange> {
        if (!isBoolean)
          return std::nullopt;
        return pairwise(
            [&](Value l, Value r) { return make<arith::OrIOp>(l, r); }, true);
      })
      .Case([&](arith::XOrIOp) -> std::optional<CellRange> {
        if (!isBoolean)
          return std::nullopt;
        // One of them, and surely not the other.
        auto differ = [&](CellRange l, CellRange r) {
          return make<arith::AndIOp>(l.least, invert(r.greatest));
        };
        auto isEqual = make<arith::OrIOp>(
            make<arith::AndIOp>(of[0].least, of[1].least),
            invert(make<arith::OrIOp>(of[0].greatest, of[1].greatest)));
        return CellRange{
            make<arith::OrIOp>(differ(of[0], of[1]), differ(of[1], of[0])),
            invert(isEqual), true};
      })
      .Case([&](arith::CmpIOp compared) {
        return compare(compared, of[0], of[1]);
      })
      .Case([&](arith::SelectOp) { return select(op, of[0], of[1], of[2]); })
      .Default([](Operation *) { return std::nullopt; });
}

/// What is not in the region is one value.
std::optional<CellRange> BoundsBuilder::find(Value value) const {
  if (value.getParentBlock() != &region)
    return CellRange{value, value};
  return known.lookup(value);
}

std::optional<CellRange> BoundsBuilder::compute(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  SmallVector<CellRange> of;
  for (Value operand : op->getOperands()) {
    std::optional<CellRange> range = find(operand);
    if (!range)
      return std::nullopt;
    of.push_back(*range);
  }
  if (!llvm::all_of(of, [](const CellRange &range) { return range.isOne(); }))
    return bound(op, of);
  SmallVector<Value> ones = llvm::map_to_vector(
      of, [](const CellRange &range) { return range.least; });
  CellRange range = {repeat(op, ones), {}};
  range.greatest = range.least;
  // Where a quotient of a position is divided again, it is not negative.
  Value result = op->getResult(0);
  std::optional<int64_t> constant = result.getType().isIntOrIndex()
                                        ? getIntegerConstant(result)
                                        : std::nullopt;
  range.isNonNegative =
      constant ? *constant >= 0
               : getDivisor(op, /*isQuotient=*/true) && of[0].isNonNegative;
  return range;
}

std::optional<CellRange> BoundsBuilder::read(ValueRange arguments, Value root) {
  // Before code is added.
  SmallVector<Operation *> ops = llvm::map_to_vector(
      region.without_terminator(), [](Operation &op) { return &op; });
  for (unsigned number = 0; number != 4; ++number) {
    Value first = arguments[number];
    CellRange range = {first, first};
    if (number >= 2) {
      int64_t size = number == 2 ? cell.queries : cell.keys;
      if (size != 1)
        range.greatest =
            make<arith::AddIOp>(first, this->number(first.getType(), size - 1));
      range.isNonNegative = true;
      range.axis = number;
    }
    known[region.getArgument(number)] = range;
  }
  for (Operation *op : ops)
    if (std::optional<CellRange> range = compute(op))
      known[op->getResult(0)] = range;
  return find(root);
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

/// Cells lie within one group of what the mask divides positions by, unless
/// groups are small.
static MaskCell chooseCell(Block &region, MaskCell block) {
  DenseMap<Value, std::pair<unsigned, int64_t>> quotients;
  for (unsigned number : {2, 3})
    quotients[region.getArgument(number)] = {number, 1};
  for (Operation &op : region) {
    std::optional<int64_t> divisor = getDivisor(&op, /*isQuotient=*/true);
    bool isQuotient = divisor.has_value();
    if (!divisor)
      divisor = getDivisor(&op, /*isQuotient=*/false);
    auto found = divisor ? quotients.find(op.getOperand(0)) : quotients.end();
    if (found == quotients.end() ||
        found->second.second > maxDivisor / *divisor)
      continue;
    auto [axis, before] = found->second;
    int64_t &size = axis == 2 ? block.queries : block.keys;
    int64_t common = std::gcd(size, before * *divisor);
    if (common >= leastCell)
      size = common;
    if (isQuotient)
      quotients[op.getResult(0)] = {axis, before * *divisor};
  }
  return block;
}

CellBounds::CellBounds(RewriterBase &rewriter, ScoresOp scores, MaskCell block)
    : rewriter(rewriter), region(scores.getMask().front()),
      before(region.getTerminator()->getPrevNode()) {
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *end = region.getTerminator();
  rewriter.setInsertionPoint(end);
  cell = chooseCell(region, block);
  std::optional<CellRange> range =
      BoundsBuilder(rewriter, region, cell)
          .read(region.getArguments(), end->getOperand(0));
  if (range) {
    each = range->least;
    some = range->greatest;
  }
}

CellBounds::~CellBounds() {
  Operation *end = region.getTerminator();
  while (end->getPrevNode() != before)
    rewriter.eraseOp(end->getPrevNode());
}

//===----------------------------------------------------------------------===//
// A look at some tiles
//===----------------------------------------------------------------------===//

namespace {
/// What a tile has to do with its blocks, in blocks.
struct Visits {
  double needed = 0, wasted = 0;
};

class Sampler {
public:
  Sampler(RewriterBase &rewriter, ScoresOp scores, MaskCell block,
          const VisitSet &set, bool isOverQueries)
      : rewriter(rewriter), region(scores.getMask().front()), block(block),
        set(set), isOverQueries(isOverQueries) {}

  /// Nothing where more than positions tell.
  std::optional<Visits> look(int64_t tile);

  int64_t numTiles() const {
    return length / (isOverQueries ? block.keys : block.queries);
  }

private:
  enum class State { Empty, Partial, Full };
  std::optional<State> evaluate(int64_t query, int64_t key);

  /// Of the sequence that is looked at.
  static constexpr int64_t length = 8192;

  RewriterBase &rewriter;
  Block &region;
  MaskCell block;
  const VisitSet &set;
  bool isOverQueries;
};
} // namespace

std::optional<Sampler::State> Sampler::evaluate(int64_t query, int64_t key) {
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *end = region.getTerminator(), *before = end->getPrevNode();
  rewriter.setInsertionPoint(end);
  SmallVector<Value> arguments;
  const int64_t numbers[] = {/*batch=*/0, /*head=*/0, query, key};
  for (auto [argument, number] : llvm::zip(region.getArguments(), numbers))
    arguments.push_back(arith::ConstantOp::create(
        rewriter, end->getLoc(),
        rewriter.getIntegerAttr(argument.getType(), number)));
  std::optional<CellRange> range = BoundsBuilder(rewriter, region, block)
                                       .read(arguments, end->getOperand(0));
  std::optional<State> state;
  if (range) {
    APInt some, each;
    if (matchPattern(range->greatest, m_ConstantInt(&some)) &&
        matchPattern(range->least, m_ConstantInt(&each)))
      state = some.isZero() ? State::Empty
                            : (each.isZero() ? State::Partial : State::Full);
  }
  while (end->getPrevNode() != before)
    rewriter.eraseOp(end->getPrevNode());
  return state;
}

std::optional<Visits> Sampler::look(int64_t tile) {
  int64_t numBlocks = length / (isOverQueries ? block.queries : block.keys);
  SmallVector<State> states;
  for (int64_t number = 0; number != numBlocks; ++number) {
    std::optional<State> state =
        isOverQueries ? evaluate(number * block.queries, tile * block.keys)
                      : evaluate(tile * block.queries, number * block.keys);
    if (!state)
      return std::nullopt;
    states.push_back(*state);
  }
  auto isSeen = [](State state) { return state != State::Empty; };
  auto first = llvm::find_if(states, isSeen);
  if (first == states.end())
    return Visits();
  auto last =
      std::prev(std::find_if(states.rbegin(), states.rend(), isSeen).base());
  Visits visits;
  visits.needed = llvm::count_if(states, isSeen);
  // Holes, if there are more of them than intervals leave out.
  int64_t runs = 0, holes = 0;
  for (auto state = first; state <= last; ++state) {
    holes += *state == State::Empty;
    runs += isSeen(*state) && (state == first || !isSeen(*std::prev(state)));
  }
  if (runs > int64_t(set.visited.size()))
    visits.wasted += holes;
  // What is in front and behind, if no bound tells.
  bool hasLower = true, hasUpper = true;
  for (const BlockInterval &interval : set.visited) {
    hasLower &= !interval.lowerBounds().empty();
    hasUpper &= !interval.upperBounds().empty();
  }
  if (!hasLower)
    visits.wasted += std::distance(states.begin(), first);
  if (!hasUpper)
    visits.wasted += std::distance(last, states.end()) - 1;
  // Masks that are evaluated in vain, at about half the price of a block.
  if (llvm::any_of(set.masked, [](const BlockInterval &interval) {
        return interval.constraints.empty();
      }))
    visits.wasted += 0.5 * llvm::count(states, State::Full);
  return visits;
}

bool attn::tile::isLooselyBounded(RewriterBase &rewriter, ScoresOp scores,
                                  MaskCell block, const VisitSet &set,
                                  bool isOverQueries) {
  if (!scores.hasMask())
    return false;
  // Sums and differences alone have exact bounds.
  Block &region = scores.getMask().front();
  if (llvm::none_of(region, [](Operation &op) {
        return isa<arith::SelectOp>(op) || getDivisor(&op, true) ||
               getDivisor(&op, false);
      }))
    return false;
  Sampler sampler(rewriter, scores, block, set, isOverQueries);
  Visits all;
  for (int64_t part : {1, 4, 7}) {
    std::optional<Visits> visits = sampler.look(sampler.numTiles() * part / 8);
    if (!visits)
      return false;
    all.needed += visits->needed;
    all.wasted += visits->wasted;
  }
  // Two more grids have to pay.
  return all.wasted > 0.25 * all.needed;
}
