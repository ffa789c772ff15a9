//===- CornerTerms.h - regions at a corner of the positions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_CORNERTERMS_H
#define ATTN_LIB_PIPELINES_CORNERTERMS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"

#include "LaunchTerms.h"

namespace attn {

/// An integer: `value` where `isKnown`, and then of at most that magnitude.
struct IntegerTerm {
  LaunchExpr value, isKnown;
  int64_t magnitude = 0;
};

/// A flag: known to be true, known to be false, or neither where data decide.
struct ConditionTerm {
  LaunchExpr isTrue, isFalse;
};

/// Sizes and captures of an attention, as a launch knows them.
class CornerFacts {
public:
  /// `query` and `key` are the numbers of arguments of `artifact`.
  CornerFacts(ScoredOp op, int64_t query, int64_t key,
              const Artifact &artifact);

  /// The last of b, h, i or j.
  LaunchExpr last(unsigned position) const {
    return terms::sub(sizes[position], terms::constant(1));
  }
  /// There are positions, and not so many that sums of a few of them wrap.
  LaunchExpr hasPositions() const;
  /// A dimension of a captured tensor.
  std::optional<LaunchExpr> captureSize(unsigned capture, unsigned dim) const;
  /// A captured scalar.
  IntegerTerm captureValue(unsigned capture) const;
  std::string captureName(unsigned capture) const;

private:
  std::optional<LaunchExpr> dimOf(Value tensor, int64_t dim) const;
  IntegerTerm hostInteger(Value value) const;

  mutable ScoredOp op;
  int64_t query, key;
  const Artifact &artifact;
  std::array<LaunchExpr, 4> sizes;
};

/// The values of a region at one corner: bit 0 says whether b is the last batch
/// entry (else it is 0), bits 1, 2 and 3 the same of h, i and j.
class CornerTerms {
public:
  CornerTerms(const CornerFacts &facts, unsigned corner, Block &block);

  IntegerTerm integer(Value value) const;
  ConditionTerm condition(Value value) const;
  /// Whether what the region yields is known to depend on a value.
  LaunchExpr matters(Value value) const;

private:
  void evaluate(Operation &op);
  IntegerTerm evaluateInteger(Operation &op) const;
  ConditionTerm evaluateCondition(Operation &op) const;
  void spreadUse(Operation &op);
  void addUse(Value value, const LaunchExpr &isUsed);
  LaunchExpr isFactor(Value value, unsigned depth = 0) const;

  llvm::DenseMap<Value, IntegerTerm> integers;
  llvm::DenseMap<Value, ConditionTerm> conditions;
  llvm::DenseMap<Value, LaunchExpr> uses;
};

} // namespace attn

#endif // ATTN_LIB_PIPELINES_CORNERTERMS_H
