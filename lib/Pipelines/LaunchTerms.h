//===- LaunchTerms.h - building launch expressions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Constants fold, so that what types decide is decided here. A condition is an
// expression that is 0 or 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_LAUNCHTERMS_H
#define ATTN_LIB_PIPELINES_LAUNCHTERMS_H

#include "attn/Support/Artifact.h"

namespace attn::terms {

LaunchExpr constant(int64_t value);
LaunchExpr dim(int64_t argument, int64_t dimension);
LaunchExpr scalar(int64_t argument);

/// The value of a constant.
std::optional<int64_t> valueOf(const LaunchExpr &expr);

LaunchExpr binary(LaunchExpr::Kind kind, LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr add(LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr sub(LaunchExpr lhs, LaunchExpr rhs);

LaunchExpr isLess(LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr isEqual(LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr logicalNot(LaunchExpr condition);
LaunchExpr logicalAnd(LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr logicalOr(LaunchExpr lhs, LaunchExpr rhs);
LaunchExpr select(LaunchExpr condition, LaunchExpr ifTrue, LaunchExpr ifFalse);

/// How many operations an expression has, and how deep they nest.
size_t count(const LaunchExpr &expr);
size_t depth(const LaunchExpr &expr);

} // namespace attn::terms

#endif // ATTN_LIB_PIPELINES_LAUNCHTERMS_H
