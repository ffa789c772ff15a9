//===- Gathers.cpp - elements of global memory to fragments -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gathers.h"

#include "BitRows.h"
#include "Clamps.h"
#include "Fragments.h"
#include "Integers.h"
#include "MaskWords.h"
#include "Offsets.h"
#include "Quotients.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// Elements of one row of memory: one address plus constants.
struct Run {
  SmallVector<Value> indices; // of the first element; i64
  int64_t size = 1;           // from the first to the last element
  SmallVector<Limit> limits;  // of the last index
};

/// The loads of one gather.
class Gatherer {
public:
  Gatherer(OpBuilder &builder, GatherOp op,
           ArrayRef<SmallVector<Value>> indices, const View &view,
           const Positions &positions)
      : b(builder), op(op), loc(op.getLoc()), type(op.getResult().getType()),
        view(view), positions(positions), addresses(builder, op.getLoc()),
        zero(arith::ConstantOp::create(
            builder, loc, builder.getZeroAttr(type.getElementType()))),
        indices(indices), areInside(op.getInside()),
        areAligned(op.getAligned()), terms(view.sizes.size()) {
    for (int64_t reg = 0, e = layoutOf(type).numRegisters(); reg < e; ++reg) {
      SmallVector<Value> &at = elements.emplace_back();
      for (unsigned dim = 0; dim < indices.size(); ++dim)
        at.push_back(indices[dim][slice(dim, reg)]);
    }
  }

  SmallVector<Value> run();

private:
  /// What one index contributes: an offset, and whether it is inside.
  struct Term {
    Value bytes, inside;
  };

  SmallVector<Value> choose(Value condition, ArrayRef<Type> types,
                            function_ref<SmallVector<Value>()> then,
                            function_ref<SmallVector<Value>()> otherwise);
  /// Of all elements, or of one.
  SmallVector<Type> elementTypes(size_t count) const {
    return SmallVector<Type>(count, type.getElementType());
  }
  void require(Value &all, Value condition) {
    all = all ? arith::AndIOp::create(b, loc, all, condition).getResult()
              : condition;
  }
  bool findRuns(bool clamped);
  Value isInside(const Run &run, ArrayRef<int64_t> places);
  SmallVector<Value> loadRuns();
  bool startsPair(size_t number) const;
  bool arePairs() const;
  Value isAligned(Value pointer, int64_t bytes);
  SmallVector<SmallVector<size_t>> listRuns() const;
  bool areBitRows() const;
  SmallVector<Value> loadBitRows(ArrayRef<Value> pointers, Value all,
                                 function_ref<SmallVector<Value>()> loadThere);
  bool findBlocks();
  SmallVector<Value> loadBlocks();
  SmallVector<Value> loadEach();
  SmallVector<Value> loadUnlessEmpty();
  std::optional<SmallVector<Value>> loadGrid();
  Value loadAt(ArrayRef<Value> at, bool isSure);
  Term getTerm(unsigned dim, Value index);
  /// Which value of an index is that of a register of the result.
  int64_t slice(unsigned dim, int64_t reg) {
    return sliceRegister(layoutOf(type), op.getIndices()[dim].getType(), reg);
  }
  Value load(Value pointer) {
    return LLVM::LoadOp::create(b, loc, type.getElementType(), pointer,
                                view.elementBytes);
  }

  SmallVector<Value> loadPair(Value pointer) {
    auto pair = VectorType::get(2, type.getElementType());
    Value both =
        LLVM::LoadOp::create(b, loc, pair, pointer, 2 * view.elementBytes);
    SmallVector<Value> result;
    for (int64_t place : {0, 1})
      result.push_back(vector::ExtractOp::create(b, loc, both, place));
    return result;
  }

  OpBuilder &b;
  GatherOp op;
  Location loc;
  FragType type;
  const View &view;
  const Positions &positions;
  Addresses addresses;
  Value zero;
  ArrayRef<SmallVector<Value>> indices;     // what each of them takes
  bool areInside;                           // all indices
  bool areAligned;                          // pairs
  SmallVector<SmallVector<Value>> elements; // their indices; i32
  /// Many elements share an index.
  SmallVector<llvm::DenseMap<Value, Term>> terms;
  SmallVector<Run> runs;
  /// The index that is a number of blocks, and those blocks.
  std::pair<unsigned, QuotientRow> blocks;
  /// Of each element its run, and its place in it.
  SmallVector<std::pair<size_t, int64_t>> places;
};

} // namespace

/// A run, and a grid, is worth its test from so many elements on.
static constexpr size_t leastRun = 4, leastGrid = 16;

SmallVector<Value>
Gatherer::choose(Value condition, ArrayRef<Type> types,
                 function_ref<SmallVector<Value>()> then,
                 function_ref<SmallVector<Value>()> otherwise) {
  auto branch =
      scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// Elements whose indices are the same but for a constant in the last one; with
/// `clamped` as long as no limit has changed that.
bool Gatherer::findRuns(bool clamped) {
  if (view.sizes.empty() || !view.isContiguous())
    return false;
  struct Base {
    SmallVector<Value> indices;
    SmallVector<Limit> limits;
    bool operator==(const Base &other) const {
      return indices == other.indices && limits == other.limits;
    }
  };
  struct Reach {
    int64_t first, last;
  };
  SmallVector<Base> bases;
  SmallVector<Reach> reaches;
  places.clear();
  for (ArrayRef<Value> indices : elements) {
    Clamp clamp = clamped ? Clamp::split(indices.back())
                          : Clamp{Offset::split(indices.back()), {}};
    Base base = {SmallVector<Value>(indices.drop_back()), clamp.limits};
    base.indices.push_back(clamp.offset.base);
    int64_t constant = clamp.offset.constant;
    size_t number = llvm::find(bases, base) - bases.begin();
    if (number == bases.size()) {
      if (leastRun * (number + 1) > elements.size())
        return false;
      bases.push_back(base);
      reaches.push_back({constant, constant});
    }
    Reach &reach = reaches[number];
    reach.first = std::min(reach.first, constant);
    reach.last = std::max(reach.last, constant);
    places.push_back({number, constant});
  }
  llvm::DenseMap<Value, Value> wide; // many runs share an index
  auto widen = [&](Value index) {
    Value &result = wide[index];
    if (!result)
      result = addresses.fromInt(index);
    return result;
  };
  for (auto [base, reach] : llvm::zip_equal(bases, reaches)) {
    Run &run = runs.emplace_back();
    run.limits = base.limits;
    for (Value index : ArrayRef(base.indices).drop_back())
      run.indices.push_back(widen(index));
    Value first = addresses.constant(reach.first), last = base.indices.back();
    run.indices.push_back(last ? addresses.add(widen(last), first) : first);
    run.size = reach.last - reach.first + 1;
  }
  for (auto &[number, place] : places)
    place -= reaches[number].first;
  return true;
}

Value Gatherer::isInside(const Run &run, ArrayRef<int64_t> places) {
  Value all;
  auto requireIndex = [&](unsigned dim, Value index) {
    require(all, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index,
                                       view.sizes[dim]));
  };
  for (auto [dim, index] : llvm::enumerate(ArrayRef(run.indices).drop_back()))
    requireIndex(dim, index);
  for (int64_t place : places)
    requireIndex(run.indices.size() - 1,
                 addresses.add(run.indices.back(), addresses.constant(place)));
  return all;
}

/// Loads at constant distances from the first element; where not all of them
/// are there, one by one: few registers, and no speed. So where a limit holds,
/// but with speed: it does so in each tile near it.
SmallVector<Value> Gatherer::loadRuns() {
  SmallVector<Value> pointers;
  for (const Run &run : runs)
    pointers.push_back(
        addresses.toPointer(view.addressOf(b, loc, run.indices)));
  auto loadPlace = [&](size_t number, int64_t place) {
    return load(offsetBy(b, loc, pointers[number], place * view.elementBytes));
  };
  auto loadAll = [&](bool inPairs) {
    SmallVector<Value> result;
    while (result.size() != places.size()) {
      auto [number, place] = places[result.size()];
      if (inPairs && startsPair(result.size()))
        result.append(loadPair(
            offsetBy(b, loc, pointers[number], place * view.elementBytes)));
      else
        result.push_back(loadPlace(number, place));
    }
    return result;
  };
  auto loadSome = [&] {
    SmallVector<Value> result;
    for (auto [number, place] : places)
      result.append(choose(
          isInside(runs[number], place), elementTypes(1),
          [&, at = std::pair(number, place)] {
            return SmallVector<Value>{loadPlace(at.first, at.second)};
          },
          [&] { return SmallVector<Value>{zero}; }));
    return result;
  };
  Value all;
  bool areClamped = false;
  for (const Run &run : runs) {
    // An index is below 2^31: none of those between wraps around.
    if (!areInside)
      require(all, isInside(run, {0, run.size - 1}));
    if (run.limits.empty())
      continue;
    areClamped = true;
    Value first = run.indices.back();
    require(all,
            areWithin(b, loc, run.limits, first,
                      addresses.add(first, addresses.constant(run.size - 1))));
  }
  SmallVector<Type> types = elementTypes(elements.size());
  auto loadSingly = [&] { return loadAll(/*inPairs=*/areAligned); };
  if (areClamped)
    return choose(all, types, loadSingly, [&] { return loadUnlessEmpty(); });
  auto loadThere = [&] {
    return all ? choose(all, types, loadSingly, loadSome) : loadSingly();
  };
  if (areBitRows())
    return loadBitRows(pointers, all, loadThere);
  if (areAligned || !arePairs())
    return loadThere();
  Value inPairs = all;
  for (Value pointer : pointers)
    require(inPairs, isAligned(pointer, 2 * view.elementBytes));
  return choose(
      inPairs, types, [&] { return loadAll(/*inPairs=*/true); }, loadThere);
}

/// Whether the element and the next one lie behind one another.
bool Gatherer::startsPair(size_t number) const {
  auto [run, place] = places[number];
  return number + 1 < places.size() &&
         places[number + 1] == std::pair(run, place + 1);
}

/// Elements in pairs, all of which are aligned where the first of the run is. Of
/// one run, which all rows share, there are few: they are read one by one.
bool Gatherer::arePairs() const {
  if (runs.size() == 1 || type.getElementType().isInteger(1) ||
      places.size() % 2 != 0)
    return false;
  for (size_t number = 0; number < places.size(); number += 2)
    if (!startsPair(number) || places[number].second % 2 != 0)
      return false;
  return true;
}

Value Gatherer::isAligned(Value pointer, int64_t bytes) {
  Integers ints(b, loc);
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                               ints.bitAnd(address, bytes - 1),
                               ints.constant(0));
}

/// The numbers of the elements of each run.
SmallVector<SmallVector<size_t>> Gatherer::listRuns() const {
  SmallVector<SmallVector<size_t>> numbers(runs.size());
  for (auto [number, place] : llvm::enumerate(places))
    numbers[place.first].push_back(number);
  return numbers;
}

/// Truth values of which each run is what a lane has of a row.
bool Gatherer::areBitRows() const {
  if (!type.getElementType().isInteger(1))
    return false;
  layout::Fragment layout = layoutOf(type);
  return llvm::all_of(listRuns(), [&](ArrayRef<size_t> numbers) {
    SmallVector<int64_t> own;
    for (size_t number : numbers) {
      own.push_back(places[number].second);
      if (layout.coordOf({0, 0, int64_t(number), 0}).column != own.back())
        return false;
    }
    return own.size() * runs.size() == elements.size() && areLaneColumns(own) &&
           BitRow::fits(4 * own.size());
  });
}

/// The lanes that share a row read it together where all of it is there, and
/// aligned, for all lanes of the warp. Either way the elements are bits of a
/// word for each row, which other masks can be joined with.
SmallVector<Value>
Gatherer::loadBitRows(ArrayRef<Value> pointers, Value all,
                      function_ref<SmallVector<Value>()> loadThere) {
  Integers ints(b, loc);
  SmallVector<SmallVector<size_t>> numbers = listRuns();
  BitRow row = {int64_t(4 * numbers.front().size())};
  SmallVector<Value> firsts;
  for (Value pointer : pointers) {
    firsts.push_back(LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer));
    require(all, row.isAligned(b, loc, firsts.back()));
  }
  Value ofWarp = NVVM::VoteSyncOp::create(
      b, loc, b.getI1Type(), ints.constant(-1), all, NVVM::VoteSyncKind::all);
  auto loadTogether = [&] {
    return llvm::map_to_vector(
        firsts, [&](Value first) { return row.load(b, loc, first); });
  };
  auto loadAlone = [&] {
    SmallVector<Value> values = loadThere(), words;
    for (ArrayRef<size_t> run : numbers) {
      Value word = ints.constant(0);
      for (auto [bit, number] : llvm::enumerate(run)) {
        Value one = arith::SelectOp::create(
            b, loc, values[number], ints.constant(int32_t(uint32_t(1) << bit)),
            ints.constant(0));
        word = arith::OrIOp::create(b, loc, word, one);
      }
      words.push_back(word);
    }
    return words;
  };
  SmallVector<Value> words =
      choose(ofWarp, SmallVector<Type>(runs.size(), b.getI32Type()),
             loadTogether, loadAlone);
  SmallVector<Value> result(elements.size());
  for (auto [word, run] : llvm::zip_equal(words, numbers))
    for (auto [number, test] :
         llvm::zip_equal(run, testBits(b, loc, word, run.size())))
      result[number] = test;
  return result;
}

bool Gatherer::findBlocks() {
  for (unsigned dim = indices.size(); dim-- > 0;) {
    if (!positions.has(op, op.getIndicesMutable()[dim].getOperandNumber()))
      continue;
    std::optional<QuotientRow> row = QuotientRow::match(b, loc, indices[dim]);
    if (!row)
      continue;
    blocks = {dim, *row};
    return true;
  }
  return false;
}

/// One load for each block that elements may lie in, of which an element has
/// its own or that of the next.
SmallVector<Value> Gatherer::loadBlocks() {
  unsigned dim = blocks.first;
  const QuotientRow &row = blocks.second;
  Integers ints(b, loc);
  // By the other indices, and the number of the block.
  SmallVector<SmallVector<Value>> places, loaded;
  auto get = [&](size_t place, int64_t number) {
    Value &value = loaded[place][number];
    if (!value) {
      SmallVector<Value> at = places[place];
      at[dim] = ints.add(row.first, number);
      // A block in which no element lies may be outside.
      value = loadAt(at, /*isSure=*/false);
    }
    return value;
  };
  SmallVector<Value> result;
  for (auto [reg, element] : llvm::enumerate(elements)) {
    SmallVector<Value> at = element;
    at[dim] = row.first;
    size_t place = llvm::find(places, at) - places.begin();
    if (place == places.size()) {
      places.push_back(at);
      loaded.emplace_back(row.count);
    }
    auto [number, isBehind] = row.places[slice(dim, reg)];
    Value value = get(place, number);
    if (isBehind)
      value = arith::SelectOp::create(b, loc, isBehind, get(place, number + 1),
                                      value);
    result.push_back(value);
  }
  return result;
}

Gatherer::Term Gatherer::getTerm(unsigned dim, Value index) {
  Term &term = terms[dim][index];
  if (!term.bytes) {
    Value wide = addresses.fromInt(index);
    term.bytes = addresses.mul(addresses.mul(wide, view.strides[dim]),
                               view.elementBytes);
    term.inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, wide,
                                        view.sizes[dim]);
  }
  return term;
}

/// The address of an element outside is replaced by that of element 0, its
/// value by zero.
Value Gatherer::loadAt(ArrayRef<Value> at, bool isSure) {
  Value offset, inside;
  for (auto [dim, index] : llvm::enumerate(at)) {
    Term term = getTerm(dim, index);
    offset = offset ? addresses.add(offset, term.bytes) : term.bytes;
    inside =
        inside ? arith::AndIOp::create(b, loc, inside, term.inside).getResult()
               : term.inside;
  }
  if (!offset) // rank 0
    offset = addresses.constant(0);
  if (isSure || !inside)
    return load(addresses.toPointer(addresses.add(view.address, offset)));
  Value safe =
      arith::SelectOp::create(b, loc, inside, offset, addresses.constant(0));
  Value loaded = load(addresses.toPointer(addresses.add(view.address, safe)));
  return arith::SelectOp::create(b, loc, inside, loaded, zero);
}

SmallVector<Value> Gatherer::loadEach() {
  return llvm::map_to_vector(
      elements, [&](ArrayRef<Value> at) { return loadAt(at, areInside); });
}

/// An empty memref is not read at all.
SmallVector<Value> Gatherer::loadUnlessEmpty() {
  bool inBlocks = findBlocks();
  auto loadAll = [&] { return inBlocks ? loadBlocks() : loadEach(); };
  if (areInside)
    return loadAll();
  Value nonEmpty;
  for (Value size : view.sizes)
    if (getConstantIntValue(size).value_or(0) <= 0)
      require(nonEmpty, arith::CmpIOp::create(
                            b, loc, arith::CmpIPredicate::sgt, size,
                            arith::ConstantIntOp::create(b, loc, 0, 64)));
  if (!nonEmpty)
    return loadAll();
  return choose(nonEmpty, elementTypes(elements.size()), loadAll,
                [&] { return SmallVector<Value>(elements.size(), zero); });
}

/// Elements each index of which is the same but for a constant: steps from one
/// address, where all of them are there. None if they are not of that kind.
std::optional<SmallVector<Value>> Gatherer::loadGrid() {
  struct Axis {
    Value base;
    int64_t first = std::numeric_limits<int64_t>::max(), last = -first;
  };
  SmallVector<Axis> axes(view.sizes.size());
  SmallVector<SmallVector<int64_t>> steps;
  for (ArrayRef<Value> at : elements) {
    SmallVector<int64_t> &own = steps.emplace_back();
    for (auto [axis, index] : llvm::zip_equal(axes, at)) {
      Offset offset = Offset::split(index);
      if (steps.size() == 1)
        axis.base = offset.base;
      if (offset.base != axis.base)
        return std::nullopt;
      axis.first = std::min(axis.first, offset.constant);
      axis.last = std::max(axis.last, offset.constant);
      own.push_back(offset.constant);
    }
  }
  if (axes.empty() || elements.size() < leastGrid)
    return std::nullopt;

  SmallVector<Value> firsts;
  Value all;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    Value first = addresses.constant(axis.first);
    if (axis.base)
      first = addresses.add(addresses.fromInt(axis.base), first);
    firsts.push_back(first);
    // An index is below 2^31: none of those between wraps around.
    for (int64_t end : {int64_t(0), axis.last - axis.first})
      require(all, arith::CmpIOp::create(
                       b, loc, arith::CmpIPredicate::ult,
                       addresses.add(first, addresses.constant(end)),
                       view.sizes[dim]));
  }
  auto loadAll = [&] {
    Value origin = view.addressOf(b, loc, firsts);
    llvm::DenseMap<std::pair<unsigned, int64_t>, Value> moves;
    auto moveBy = [&](unsigned dim, int64_t step) {
      Value &move = moves[{dim, step}];
      if (!move)
        move = addresses.mul(view.strides[dim], step * view.elementBytes);
      return move;
    };
    return llvm::map_to_vector(steps, [&](ArrayRef<int64_t> own) {
      Value address = origin;
      int64_t bytes = 0;
      for (auto [dim, constant] : llvm::enumerate(own)) {
        int64_t step = constant - axes[dim].first;
        if (dim + 1 == own.size() && view.isContiguous())
          bytes = step * view.elementBytes;
        else if (step != 0)
          address = addresses.add(address, moveBy(dim, step));
      }
      return load(offsetBy(b, loc, addresses.toPointer(address), bytes));
    });
  };
  if (areInside)
    return loadAll();
  return choose(all, elementTypes(elements.size()), loadAll,
                [&] { return loadUnlessEmpty(); });
}

SmallVector<Value> Gatherer::run() {
  if (findRuns(/*clamped=*/false) || findRuns(/*clamped=*/true))
    return loadRuns();
  if (std::optional<SmallVector<Value>> values = loadGrid())
    return *values;
  return loadUnlessEmpty();
}

namespace {

/// One load per element; where elements lie behind one another, and are all
/// there, at one address plus constants.
struct LowerGather final : OpConversionPattern<GatherOp> {
  LowerGather(const TypeConverter &converter, MLIRContext *context,
              const Positions &positions)
      : OpConversionPattern(converter, context), positions(positions) {}

  LogicalResult
  matchAndRewrite(GatherOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    SmallVector<SmallVector<Value>> indices;
    for (ValueRange values : adaptor.getIndices())
      indices.push_back(llvm::to_vector(values));
    SmallVector<Value> result =
        Gatherer(rewriter, op, indices, *view, positions).run();
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithMultiple(
        op, {pack(rewriter, loc, op.getResult().getType(), result)});
    return success();
  }

private:
  const Positions &positions;
};

} // namespace

void attn::warp::populateGatherPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Positions &positions) {
  patterns.add<LowerGather>(converter, patterns.getContext(), positions);
}
