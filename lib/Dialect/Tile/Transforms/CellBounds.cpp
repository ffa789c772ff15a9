//===- CellBounds.cpp - what a mask shows of many pairs -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CellBounds.h"

#include "Divisors.h"

#include "attn/Dialect/Attn/IR/MaskRunner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace attn::tile;

/// Cells of fewer queries or keys are not worth it.
static constexpr int64_t leastCell = 8;

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
    std::optional<int64_t> divisor = getQuotientDivisor(&op);
    bool isQuotient = divisor.has_value();
    if (!divisor)
      divisor = getRemainderDivisor(&op);
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

CellBounds::CellBounds(RewriterBase &rewriter, ScoresOp scores, MaskCell block,
                       bool withData)
    : cell(block), rewriter(rewriter), region(scores.getMask().front()),
      before(region.getTerminator()->getPrevNode()) {
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *end = region.getTerminator();
  rewriter.setInsertionPoint(end);
  if (!withData)
    cell = chooseCell(region, block);
  CellRangeReader reader(rewriter, region, cell);
  if (withData)
    reader.ofData = [&](Value value, bool isOfQueries) {
      auto argument = [&] {
        return region.addArgument(value.getType(), value.getLoc());
      };
      Value least = argument(), greatest = argument();
      data.push_back({value, isOfQueries, least, greatest});
      return CellRange{least, greatest};
    };
  std::optional<CellRange> range =
      reader.read(region.getArguments().take_front(4), end->getOperand(0));
  // Where all that is known is that it is true or false, nothing is.
  if (!range || (matchPattern(range->least, m_Zero()) &&
                 matchPattern(range->greatest, m_One())))
    return;
  each = range->least;
  some = range->greatest;
}

CellBounds::~CellBounds() {
  Operation *end = region.getTerminator();
  while (end->getPrevNode() != before)
    rewriter.eraseOp(end->getPrevNode());
  region.eraseArguments(region.getNumArguments() - 2 * data.size(),
                        2 * data.size());
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
        cell(chooseCell(region, block)), set(set), isOverQueries(isOverQueries),
        runner(region, length, isOverQueries, assumedLength),
        isRun(runner.start(/*head=*/0)) {}

  /// Nothing where more than positions tell.
  std::optional<Visits> look(int64_t tile);
  bool canLook() { return isRun || evaluate(0, 0, block).has_value(); }
  /// How many blocks of a tile are shown in part, or seem so: to who evaluates
  /// each pair, and to who knows ranges only.
  std::optional<std::pair<int64_t, int64_t>> countPartial(int64_t tile);

  SmallVector<int64_t> chooseTiles() const;

private:
  enum class State { Empty, Partial, Full };
  bool isAcross() const {
    return cell.queries < block.queries || cell.keys < block.keys;
  }
  std::optional<State> evaluate(int64_t query, int64_t key);
  std::optional<State> evaluate(int64_t query, int64_t key, MaskCell size);
  std::optional<State> evaluateBlock(int64_t tile, int64_t number);
  Value assume(Value value);
  SmallVector<State> run(int64_t tile);
  std::optional<SmallVector<State>> findStates(int64_t tile);

  /// Of the sequence that is looked at, and what its length in data may be.
  static constexpr int64_t length = 8192, assumedLength = length * 5 / 8;

  RewriterBase &rewriter;
  Block &region;
  MaskCell block, cell;
  const VisitSet &set;
  bool isOverQueries;
  attn::MaskRunner runner;
  bool isRun;
};
} // namespace

/// Not all of them where a period of the mask begins: every fourth tile of 128
/// rows has a query that sees everything where each 512th does.
SmallVector<int64_t> Sampler::chooseTiles() const {
  constexpr int64_t numSamples = 4;
  int64_t numTiles = length / (isOverQueries ? block.keys : block.queries);
  SmallVector<int64_t> tiles;
  for (int64_t sample = 0; sample < numSamples; ++sample)
    tiles.push_back(numTiles * (2 * sample + 1) / (2 * numSamples) + sample);
  return tiles;
}

/// A block that lies across groups of what positions are divided by has ranges
/// that say nothing: its parts tell, most of which lie in one group.
std::optional<Sampler::State> Sampler::evaluate(int64_t query, int64_t key) {
  std::optional<State> state = evaluate(query, key, block);
  if (state != State::Partial || !isAcross())
    return state;
  constexpr int64_t parts = 8;
  MaskCell part = {std::max(cell.queries, block.queries / parts),
                   std::max(cell.keys, block.keys / parts)};
  std::optional<State> all;
  for (int64_t row = 0; row < block.queries; row += part.queries)
    for (int64_t column = 0; column < block.keys; column += part.keys) {
      std::optional<State> own = evaluate(query + row, key + column, part);
      if (own == State::Partial || (all && own != all))
        return State::Partial;
      all = own;
    }
  return all;
}

/// What an integer of data may be that is the same for all queries and keys:
/// most are lengths. Conditions say which of several masks is meant.
Value Sampler::assume(Value value) {
  if (!value.getType().isIntOrIndex() || value.getType().isInteger(1) ||
      matchPattern(value, m_Constant()))
    return value;
  return arith::ConstantOp::create(
      rewriter, value.getLoc(),
      rewriter.getIntegerAttr(value.getType(), assumedLength));
}

/// Of so many pairs from the given one on.
std::optional<Sampler::State> Sampler::evaluate(int64_t query, int64_t key,
                                                MaskCell size) {
  OpBuilder::InsertionGuard guard(rewriter);
  Operation *end = region.getTerminator(), *before = end->getPrevNode();
  rewriter.setInsertionPoint(end);
  SmallVector<Value> arguments;
  const int64_t numbers[] = {/*batch=*/0, /*head=*/0, query, key};
  for (auto [argument, number] : llvm::zip(region.getArguments(), numbers))
    arguments.push_back(arith::ConstantOp::create(
        rewriter, end->getLoc(),
        rewriter.getIntegerAttr(argument.getType(), number)));
  CellRangeReader reader(rewriter, region, size);
  reader.ofScalar = [&](Value value) { return assume(value); };
  std::optional<CellRange> range = reader.read(arguments, end->getOperand(0));
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

/// What a mask costs, in blocks without one: these take about ten instructions
/// for each score. What is of keys alone serves two queries of a thread.
static double estimatePrice(Block &mask) {
  constexpr double least = 0.5, ofPair = 0.1, ofKey = ofPair / 2;
  DenseSet<Value> ofQueries = {mask.getArgument(2)},
                  ofKeys = {mask.getArgument(3)};
  double price = 0;
  for (Operation &op : mask.without_terminator()) {
    auto isOf = [&](const DenseSet<Value> &values) {
      return llvm::any_of(op.getOperands(), [&](Value operand) {
        return values.contains(operand);
      });
    };
    bool isOfQuery = isOf(ofQueries), isOfKey = isOf(ofKeys);
    for (Value result : op.getResults()) {
      if (isOfQuery)
        ofQueries.insert(result);
      if (isOfKey)
        ofKeys.insert(result);
    }
    if (isOfKey)
      price += isOfQuery ? ofPair : ofKey;
  }
  return std::max(least, price);
}

/// Of the blocks of a tile, by some of its rows, among them the first and the
/// last.
SmallVector<Sampler::State> Sampler::run(int64_t tile) {
  constexpr int64_t numRows = 48;
  int64_t rows = isOverQueries ? block.keys : block.queries;
  int64_t size = isOverQueries ? block.queries : block.keys;
  int64_t looked = std::min(rows, numRows);
  SmallVector<int64_t> counts(length / size, 0);
  for (int64_t number = 0; number < looked; ++number) {
    int64_t row = number * (rows - 1) / std::max<int64_t>(looked - 1, 1);
    ArrayRef<int32_t> shown = runner.run(tile * rows + row);
    for (auto [place, count] : llvm::enumerate(counts))
      count += shown.size() == 1
                   ? shown[0] * size
                   : llvm::sum_of(shown.slice(place * size, size), int64_t(0));
  }
  return llvm::map_to_vector(counts, [&](int64_t count) {
    return count == 0               ? State::Empty
           : count == looked * size ? State::Full
                                    : State::Partial;
  });
}

/// By ranges.
std::optional<Sampler::State> Sampler::evaluateBlock(int64_t tile,
                                                     int64_t number) {
  return isOverQueries ? evaluate(number * block.queries, tile * block.keys)
                       : evaluate(tile * block.queries, number * block.keys);
}

std::optional<SmallVector<Sampler::State>> Sampler::findStates(int64_t tile) {
  if (isRun)
    return run(tile);
  int64_t numBlocks = length / (isOverQueries ? block.queries : block.keys);
  SmallVector<State> states;
  // Blocks that are looked at in parts are some of them, in no usual period.
  int64_t step = isAcross() ? 3 : 1;
  for (int64_t number = 0; number < numBlocks; number += step) {
    std::optional<State> state = evaluateBlock(tile, number);
    if (!state)
      return std::nullopt;
    states.push_back(*state);
  }
  return states;
}

std::optional<std::pair<int64_t, int64_t>> Sampler::countPartial(int64_t tile) {
  if (!isRun)
    return std::nullopt;
  int64_t exact = 0, byRanges = 0;
  for (auto [number, state] : llvm::enumerate(run(tile))) {
    bool isPartial = state == State::Partial;
    exact += isPartial;
    // What is partial is not told to be otherwise.
    byRanges += isPartial || evaluateBlock(tile, number) == State::Partial;
  }
  return std::make_pair(exact, byRanges);
}

std::optional<Visits> Sampler::look(int64_t tile) {
  std::optional<SmallVector<State>> found = findStates(tile);
  if (!found)
    return std::nullopt;
  const SmallVector<State> &states = *found;
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
  // Masks that are evaluated in vain.
  if (llvm::any_of(set.masked, [](const BlockInterval &interval) {
        return interval.constraints.empty();
      }))
    visits.wasted += estimatePrice(region) * llvm::count(states, State::Full);
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
        return isa<arith::SelectOp>(op) || getQuotientDivisor(&op) ||
               getRemainderDivisor(&op);
      }))
    return false;
  Sampler sampler(rewriter, scores, block, set, isOverQueries);
  // So many bounds are more than there are registers for, wherever they lie.
  constexpr size_t mostConstraints = 36;
  size_t numConstraints = 0;
  for (const BlockInterval &interval : set.visited)
    numConstraints += interval.constraints.size();
  if (numConstraints > mostConstraints)
    return sampler.canLook();
  Visits all;
  for (int64_t tile : sampler.chooseTiles()) {
    std::optional<Visits> visits = sampler.look(tile);
    if (!visits)
      return false;
    all.needed += visits->needed;
    all.wasted += visits->wasted;
  }
  // Two more grids have to pay.
  return all.wasted > 0.25 * all.needed;
}

bool attn::tile::hasLooseRanges(RewriterBase &rewriter, ScoresOp scores,
                                MaskCell block, bool isOverQueries) {
  if (!scores.hasMask())
    return false;
  VisitSet none;
  Sampler sampler(rewriter, scores, block, none, isOverQueries);
  int64_t exact = 0, byRanges = 0;
  for (int64_t tile : sampler.chooseTiles()) {
    std::optional<std::pair<int64_t, int64_t>> partial =
        sampler.countPartial(tile);
    if (!partial)
      return false;
    exact += partial->first;
    byRanges += partial->second;
  }
  return byRanges > 1.5 * exact;
}
