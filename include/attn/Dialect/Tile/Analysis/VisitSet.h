//===- VisitSet.h - which key blocks show anything, or all ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask says of a row r of a query block (0 to M - 1) and a key c whether the
// row sees the key. Here it is a formula of linear inequalities over r, c and
// integers that are known before the loop over the key blocks (symbols). A key
// block n, the keys nN to nN + N - 1, is
//
//   visited  if some row sees some key of it:      exists r, c: mask
//   masked   if some row does not see some key:    exists r, c: not mask
//   full     if it is visited and not masked.
//
// Both sets come from the formula in disjunctive normal form: of each disjunct,
// a polyhedron, everything but n and the symbols is projected out (Fourier and
// Motzkin's elimination, upstream's Presburger library). What is left of it are
// lower and upper bounds of n, and conditions on symbols: an interval.
//
// Example: c <= r + R, blocks of 128 by 64. Visited: 64 n <= c <= r + R and
// r <= 127 give 64 n <= R + 127. Masked: c >= r + R + 1, c <= 64 n + 63 and
// r >= 0 give 64 n >= R - 62.
//
// Elimination is over the rationals. It is exact where the eliminated variables
// have coefficients of 1 and -1, and otherwise finds too much, for both sets:
// a block may be visited in vain, or masked in vain, and never be missed. The
// same holds for what a formula does not know: such a leaf may hold and may
// fail.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_VISITSET_H
#define ATTN_DIALECT_TILE_ANALYSIS_VISITSET_H

#include "attn/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <vector>

namespace attn::tile {

/// A sum of coefficient * variable, and a constant. Variables are numbers.
struct LinearForm {
  int64_t constant = 0;
  /// By variable, no coefficient is 0.
  SmallVector<std::pair<unsigned, int64_t>, 4> terms;

  static LinearForm number(int64_t value);
  static LinearForm variable(unsigned number, int64_t coefficient = 1);

  int64_t coefficient(unsigned variable) const;
  LinearForm &operator+=(const LinearForm &other);
  LinearForm &operator*=(int64_t factor);
  bool operator==(const LinearForm &other) const {
    return constant == other.constant && terms == other.terms;
  }
  bool operator!=(const LinearForm &other) const { return !(*this == other); }
};
LinearForm operator+(LinearForm lhs, const LinearForm &rhs);
LinearForm operator-(LinearForm lhs, const LinearForm &rhs);
LinearForm operator*(LinearForm form, int64_t factor);

/// A boolean function of inequalities. A leaf holds only where `holds` >= 0 and
/// fails only where `fails` >= 0; exactly one of the two, unless it is known in
/// part only.
struct Formula {
  enum class Kind { Leaf, And, Or };
  Kind kind = Kind::Leaf;
  LinearForm holds, fails;
  std::vector<Formula> parts;
  size_t numLeaves = 1;

  static Formula atLeastZero(LinearForm form);
  static Formula constant(bool value);
  static Formula unknown();
  static Formula all(std::vector<Formula> parts);
  static Formula any(std::vector<Formula> parts);

  Formula negated() const;
  bool isConstant(bool value) const;
  /// True if some leaf may hold or fail whatever the variables are.
  bool hasUnknown() const;
};

/// The variables of a mask, and what is known of them.
class VisitProblem {
public:
  static constexpr unsigned block = 0, row = 1, column = 2;

  VisitProblem(int64_t numRows, int64_t numColumns);

  /// An integer that is known before the loop.
  unsigned addSymbol();
  /// An integer that depends on the row and the key, known only by facts.
  unsigned addUnknown();
  /// floor(form / divisor); the same variable for the same arguments.
  unsigned addQuotient(const LinearForm &form, int64_t divisor);
  /// form >= 0, always. It matters where the variable `about` occurs, or one of
  /// its variables.
  void addFact(LinearForm form, std::optional<unsigned> about = std::nullopt) {
    facts.push_back({std::move(form), about});
  }

  /// The problem of `rows` rows only, the first of which is `first`: of
  /// symbols.
  void restrictRows(const LinearForm &first, int64_t rows);

  unsigned getNumVariables() const { return isSymbolic.size(); }
  bool isSymbol(unsigned variable) const { return isSymbolic[variable]; }
  bool isSymbolicForm(const LinearForm &form) const;

  int64_t numRows, numColumns;
  /// The loop's blocks: lowerBound <= n < upperBound. Of symbols.
  LinearForm lowerBound, upperBound;
  struct Fact {
    LinearForm form;
    std::optional<unsigned> about;
  };
  SmallVector<Fact> facts;
  Formula mask;
  /// How many systems of constraints may still be looked at, large ones
  /// counting for several: after that they count as feasible, so that masks of
  /// any size compile in a second or two.
  mutable int64_t effort = 10000;

  struct Quotient {
    LinearForm form;
    int64_t divisor;
    unsigned variable;
  };
  /// What `variable` is the quotient of, if it is one.
  const Quotient *findQuotient(unsigned variable) const;

private:
  std::vector<bool> isSymbolic;
  std::vector<Quotient> quotients;
};

/// Blocks n for which every one of `constraints`, of n and symbols, is >= 0.
struct BlockInterval {
  SmallVector<LinearForm, 4> constraints;

  SmallVector<LinearForm, 2> lowerBounds() const;
  SmallVector<LinearForm, 2> upperBounds() const;
  SmallVector<LinearForm, 2> conditions() const;
};

/// Unions of intervals.
struct VisitSet {
  SmallVector<BlockInterval, 2> visited;
  /// Those visited ones where something may be hidden. Bounds that `visited`
  /// has anyhow are left out if it is one interval.
  SmallVector<BlockInterval, 2> masked;
  /// Every row sees a key in the first visited block, whatever the symbols.
  bool isFirstBlockSeen = false;
};

/// Pieces of key blocks that a loop over visits goes through at most.
constexpr size_t maxPieces = 16;

/// The set of a mask; at most `maxIntervals` intervals are visited, and the
/// masked ones divide them into no more than `maxPieces`, or about.
VisitSet computeVisitSet(const VisitProblem &problem, size_t maxIntervals = 6);

/// The blocks in which some row and key satisfy `formula`, or a few more; as at
/// most `maxIntervals` intervals. The mask of `problem` has no part in it.
SmallVector<BlockInterval, 2> findBlocks(const VisitProblem &problem,
                                         const Formula &formula,
                                         size_t maxIntervals);

/// True if no values of the variables satisfy `constraints` and the facts; may
/// be false although there are none.
bool isInfeasible(const VisitProblem &problem,
                  ArrayRef<LinearForm> constraints);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_VISITSET_H
