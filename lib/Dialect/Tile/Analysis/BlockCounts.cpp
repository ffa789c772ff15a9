//===- BlockCounts.cpp - how many blocks a mask leaves --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/BlockCounts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

std::optional<QueryNumbering> attn::tile::findQueryNumbering(KernelOp kernel) {
  for (auto coords : kernel.getBody()->getOps<CoordsOp>()) {
    auto cast = coords.getBase().getDefiningOp<arith::IndexCastOp>();
    auto first = cast ? cast.getIn().getDefiningOp<arith::MulIOp>() : nullptr;
    if (coords.getAxis() != 0 || !first)
      continue;
    auto number = dyn_cast<BlockArgument>(first.getLhs());
    if (number && number.getOwner() == kernel.getBody())
      return QueryNumbering{number.getArgNumber(), number};
  }
  return std::nullopt;
}

namespace {
/// Blocks lo to hi - 1.
using Span = std::pair<int64_t, int64_t>;
} // namespace

/// Of symbols that are all functions of the number of the query block.
static int64_t evaluate(const MaskProblem &problem, const LinearForm &form,
                        int64_t number) {
  int64_t sum = form.constant;
  for (auto [variable, coefficient] : form.terms) {
    if (variable == VisitProblem::block)
      continue;
    const SymbolSource &source = problem.symbols.find(variable)->second;
    int64_t value = number;
    if (source.kind == SymbolSource::Kind::Quotient)
      value = llvm::divideFloorSigned(evaluate(problem, source.limit, number),
                                      source.divisor);
    sum += coefficient * value;
  }
  return sum;
}

static Span evaluate(const MaskProblem &problem, const BlockInterval &interval,
                     int64_t number, Span range) {
  for (const LinearForm &constraint : interval.constraints) {
    int64_t factor = constraint.coefficient(VisitProblem::block);
    int64_t rest = evaluate(problem, constraint, number);
    if (factor > 0)
      range.first =
          std::max(range.first, llvm::divideCeilSigned(-rest, factor));
    else if (factor < 0)
      range.second =
          std::min(range.second, llvm::divideFloorSigned(rest, -factor) + 1);
    else if (rest < 0)
      range.second = range.first;
  }
  range.second = std::max(range.first, range.second);
  return range;
}

static int64_t measureUnion(SmallVector<Span> ranges) {
  llvm::sort(ranges);
  int64_t count = 0, end = 0;
  for (auto [lo, hi] : ranges) {
    count += std::max<int64_t>(hi - std::max(lo, end), 0);
    end = std::max(end, hi);
  }
  return count;
}

std::optional<BlockCounts> attn::tile::countBlocks(const MaskProblem &problem,
                                                   const VisitSet &set,
                                                   scf::ForOp loop) {
  auto kernel = dyn_cast<KernelOp>(loop->getParentOp());
  std::optional<QueryNumbering> numbering =
      kernel ? findQueryNumbering(kernel) : std::nullopt;
  std::optional<int64_t> numKeyBlocks =
      getIntegerConstant(loop.getUpperBound());
  if (!numbering || !numKeyBlocks ||
      getIntegerConstant(loop.getLowerBound()) != 0)
    return std::nullopt;
  std::optional<int64_t> numQueryBlocks =
      getConstantIntValue(kernel.getGrid()[numbering->dimension]);
  if (!numQueryBlocks)
    return std::nullopt;
  for (const auto &[symbol, source] : problem.symbols)
    if (source.value != numbering->number &&
        source.kind != SymbolSource::Kind::Quotient)
      return std::nullopt;

  BlockCounts counts;
  counts.all = *numQueryBlocks * *numKeyBlocks;
  for (int64_t block = 0; block < *numQueryBlocks; ++block) {
    SmallVector<Span> visited, masked;
    for (const BlockInterval &interval : set.visited)
      visited.push_back(evaluate(problem, interval, block, {0, *numKeyBlocks}));
    for (const BlockInterval &interval : set.masked)
      for (Span range : visited)
        masked.push_back(evaluate(problem, interval, block, range));
    counts.visited += measureUnion(visited);
    counts.masked += measureUnion(masked);
  }
  return counts;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Names symbols.
class VisitSetPrinter {
public:
  VisitSetPrinter(llvm::raw_ostream &os, const MaskProblem &problem,
                  scf::ForOp loop);

  void print(const VisitSet &set);

private:
  void printTitle(StringRef title) { os << "//   " << title; }
  void printForm(const LinearForm &form);
  void printConstraint(const LinearForm &constraint);
  void printIntervals(StringRef title, ArrayRef<BlockInterval> intervals);
  void printSource(const SymbolSource &source);
  void printValue(Value value);

  llvm::raw_ostream &os;
  const MaskProblem &problem;
  DenseMap<unsigned, std::string> names;
  SmallVector<unsigned> unnamed;
};
} // namespace

VisitSetPrinter::VisitSetPrinter(llvm::raw_ostream &os,
                                 const MaskProblem &problem, scf::ForOp loop)
    : os(os), problem(problem) {
  auto kernel = dyn_cast<KernelOp>(loop->getParentOp());
  std::optional<QueryNumbering> numbering =
      kernel ? findQueryNumbering(kernel) : std::nullopt;
  auto keys = loop.getUpperBound().getDefiningOp<arith::CeilDivSIOp>();
  for (const auto &[symbol, source] : problem.symbols) {
    std::string &name = names[symbol];
    if (source.kind == SymbolSource::Kind::Scalar && numbering &&
        source.value == numbering->number)
      name = "block";
    else if (source.value == loop.getUpperBound())
      name = "blocks";
    else if (source.kind == SymbolSource::Kind::Scalar && keys &&
             source.value == keys.getLhs())
      name = "keys";
    else {
      name = "s" + std::to_string(unnamed.size());
      unnamed.push_back(symbol);
    }
  }
}

void VisitSetPrinter::printForm(const LinearForm &form) {
  bool isFirst = true;
  for (auto [variable, coefficient] : form.terms) {
    int64_t size = std::abs(coefficient);
    os << (isFirst ? (coefficient < 0 ? "-" : "")
                   : (coefficient < 0 ? " - " : " + "));
    if (size != 1)
      os << size << " ";
    os << names.lookup(variable);
    isFirst = false;
  }
  int64_t number = form.constant;
  if (isFirst)
    os << number;
  else if (number != 0)
    os << (number < 0 ? " - " : " + ") << std::abs(number);
}

void VisitSetPrinter::printConstraint(const LinearForm &constraint) {
  int64_t factor = constraint.coefficient(VisitProblem::block);
  LinearForm rest =
      constraint - LinearForm::variable(VisitProblem::block, factor);
  if (factor == 0) {
    printForm(rest);
    os << " >= 0";
    return;
  }
  // n >= ceil(-rest / factor), or n <= floor(rest / -factor).
  if (factor > 0)
    rest *= -1;
  os << (factor > 0 ? "n >= " : "n <= ");
  if (std::abs(factor) == 1)
    return printForm(rest);
  os << (factor > 0 ? "ceil((" : "floor((");
  printForm(rest);
  os << ") / " << std::abs(factor) << ")";
}

void VisitSetPrinter::printIntervals(StringRef title,
                                     ArrayRef<BlockInterval> intervals) {
  printTitle(title);
  os << (intervals.empty() ? " none" : "");
  for (auto [number, interval] : llvm::enumerate(intervals)) {
    os << (number == 0 ? " " : "\n//     or ");
    if (interval.constraints.empty())
      os << "all";
    llvm::interleave(
        interval.constraints,
        [&](const LinearForm &constraint) { printConstraint(constraint); },
        [&] { os << ", "; });
  }
  os << "\n";
}

void VisitSetPrinter::printValue(Value value) {
  value.print(os, OpPrintingFlags().useLocalScope().skipRegions());
}

void VisitSetPrinter::printSource(const SymbolSource &source) {
  switch (source.kind) {
  case SymbolSource::Kind::Scalar:
    return printValue(source.value);
  case SymbolSource::Kind::Quotient:
    os << "floor((";
    printForm(source.limit);
    os << ") / " << source.divisor << ")";
    return;
  case SymbolSource::Kind::LeastOfRows:
    os << "the least of the rows of ";
    return printValue(source.value);
  case SymbolSource::Kind::GreatestOfRows:
    os << "the greatest of the rows of ";
    return printValue(source.value);
  case SymbolSource::Kind::KeysAtMost:
  case SymbolSource::Kind::KeysBelow:
    os << "the number of keys not above ";
    if (source.divisor != 1)
      os << "floor((";
    printForm(source.limit);
    if (source.divisor != 1)
      os << ") / " << source.divisor << ")";
    os << " in ";
    return printValue(source.value);
  }
}

void VisitSetPrinter::print(const VisitSet &set) {
  for (unsigned symbol : unnamed) {
    printTitle(names[symbol]);
    os << ": ";
    printSource(problem.symbols.find(symbol)->second);
    os << "\n";
  }
  printIntervals("visited:", set.visited);
  printIntervals("masked: ", set.masked);
  printTitle("every row sees a key in its first block: ");
  os << (set.isFirstBlockSeen ? "yes\n" : "not always\n");
  if (problem.hasOpaque)
    os << "//   part of the mask is opaque\n";
}

void attn::tile::printVisitSet(llvm::raw_ostream &os,
                               const MaskProblem &problem, const VisitSet &set,
                               scf::ForOp loop) {
  os << "// visit set, " << problem.problem.numRows << " queries by "
     << problem.problem.numColumns << " keys, block n of [0, blocks)\n";
  VisitSetPrinter(os, problem, loop).print(set);
  if (std::optional<BlockCounts> counts = countBlocks(problem, set, loop))
    os << "//   of " << counts->all << " pairs of blocks " << counts->visited
       << " are visited, " << counts->masked << " of them masked\n";
}
