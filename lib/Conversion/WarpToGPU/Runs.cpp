//===- Runs.cpp - elements of a gather that lie in rows of memory ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements whose indices are one value plus constants are read at one address
// plus constants, as long as all of them are there.
//
//===----------------------------------------------------------------------===//

#include "BitRows.h"
#include "Gatherer.h"
#include "MaskWords.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

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
    return choose(all, types, loadSingly,
                  [&] { return loadUnlessEmpty(findBlocks()); });
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

/// Elements in pairs, all of which are aligned where the first of the run is.
/// Of one run, which all rows share, there are few: they are read one by one.
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
