//===- ConstraintSystem.h - systems of linear inequalities -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inequalities over rows, keys, block numbers and symbols: whether they have a
// solution, and what is left of them without rows and keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_ANALYSIS_CONSTRAINTSYSTEM_H
#define ATTN_LIB_DIALECT_TILE_ANALYSIS_CONSTRAINTSYSTEM_H

#include "attn/Dialect/Tile/Analysis/VisitSet.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

namespace attn::tile {

using Constraints = SmallVector<LinearForm, 4>;

/// Constraints over the variables that occur in them.
class ConstraintSystem {
public:
  explicit ConstraintSystem(const VisitProblem &problem) : problem(problem) {}

  void add(LinearForm constraint);
  void add(ArrayRef<LinearForm> forms) {
    for (const LinearForm &form : forms)
      add(form);
  }
  /// What is always known of the variables that occur.
  void addFacts();

  size_t size() const { return constraints.size(); }
  bool isInfeasible() const;
  /// What remains for the block number and the symbols.
  Constraints project() const;
  ConstraintSystem eliminate(unsigned variable) const;
  ConstraintSystem forget(unsigned variable) const;

private:
  mlir::presburger::IntegerPolyhedron build(ArrayRef<unsigned> columns) const;

  std::reference_wrapper<const VisitProblem> problem;
  llvm::SetVector<unsigned> variables;
  std::vector<LinearForm> constraints;
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_ANALYSIS_CONSTRAINTSYSTEM_H
