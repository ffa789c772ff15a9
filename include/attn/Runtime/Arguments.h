//===- Arguments.h - what a kernel is called with ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the arguments of a launch against the artifact and turns them into
// the parameter list of the kernel. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_ARGUMENTS_H
#define ATTN_RUNTIME_ARGUMENTS_H

#include "attn/Runtime/Result.h"
#include "attn/Support/Artifact.h"

namespace attn::runtime {

/// One argument, in the order of `Artifact::arguments`: a view of a tensor
/// (sizes and strides are read during the call only, strides in elements), or
/// the value of a scalar.
struct Argument {
  enum class Kind { Tensor, Integer, Real };
  Kind kind = Kind::Integer;
  void *data = nullptr;
  int64_t rank = 0;
  const int64_t *sizes = nullptr;
  const int64_t *strides = nullptr;
  int64_t integer = 0;
  double real = 0;

  static Argument tensor(void *data, int64_t rank, const int64_t *sizes,
                         const int64_t *strides);
  static Argument scalar(int64_t value);
  static Argument scalar(double value);
};

using Arguments = std::vector<Argument>;

/// The value of `expr` for `arguments`, which must be valid for the artifact
/// that the expression belongs to. Division by zero and overflow are errors;
/// x mod 0 is x.
Result<int64_t> evaluate(const LaunchExpr &expr, const Arguments &arguments);

/// The 64 bits that hold `value` as a parameter of type `element`; an error if
/// it does not fit.
Result<uint64_t> scalarBits(const Argument &value, ElementKind element);

/// What the driver makes a tensor map of (cuTensorMapEncodeTiled): four
/// dimensions, the innermost first; strides in bytes.
struct TensorMapCall {
  void *data = nullptr;
  ElementKind element = ElementKind::BF16;
  std::array<uint64_t, 4> sizes = {1, 1, 1, 1};
  std::array<uint64_t, 3> strides = {16, 16, 16};
  std::array<uint32_t, 4> box = {1, 1, 1, 1};
  int64_t swizzleBytes = 0;
};

/// What the driver is told: the grid and the parameters, one slot each (the
/// driver reads as many bytes of a slot as the parameter has).
struct LaunchCall {
  std::array<uint32_t, 3> grid = {0, 0, 0};
  std::vector<uint64_t> parameters;
  /// Parameters of 128 bytes behind those.
  std::vector<TensorMapCall> tensorMaps;
  /// Nothing to do: the grid has no block, and no output has an element.
  bool isEmpty = false;
};

/// Checks everything that can be wrong with `arguments` and prepares the call.
Result<LaunchCall> prepareLaunch(const Artifact &artifact,
                                 const Arguments &arguments);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_ARGUMENTS_H
