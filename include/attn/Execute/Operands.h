//===- Operands.h - the tensors and scalars of one call -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_OPERANDS_H
#define ATTN_EXECUTE_OPERANDS_H

#include "attn/Execute/HostProgram.h"
#include "attn/Execute/HostTensor.h"
#include <map>
#include <optional>

namespace attn {

/// What the user says about the arguments of a function.
struct OperandRequest {
  /// `b=2,h=8,hkv=2,sq=128,sk=256` for the dimensions of q, k and v, and
  /// `c0=2x8x?x64`-like whole shapes by name; only what the types leave open is
  /// needed.
  std::string shape;
  /// q, k, v and o in memory: which of batch, heads, length and dim (0 to 3)
  /// stands where, from the outermost in; empty: as they are.
  std::vector<int64_t> order;
  uint64_t seed = 0;
  /// .npy files and values of scalars, by argument name; others are random.
  std::map<std::string, std::string> files;
  std::map<std::string, double> scalars;
  /// Elements of poison around the tensors and between their rows.
  int64_t padding = 0;
};

/// The inputs of a call; outputs are poisoned. One entry per argument of the
/// manifest: a tensor, or nothing for a scalar, whose value is in `values`.
struct Operands {
  std::vector<std::optional<HostTensor>> tensors;
  runtime::Arguments values;

  /// The arguments of a call; they refer to the tensors.
  runtime::Arguments arguments();
};

/// One gradient that a run gave, row-major.
struct Gradient {
  std::string name; // of the output
  ArgumentRole role = ArgumentRole::QueryGradient;
  ElementKind element = ElementKind::F32;
  std::vector<double> values;
};

/// What one run gave, row-major: o[rows][columns], lse[rows] (may be empty), or
/// gradients in the order of the outputs.
struct RunResult {
  std::vector<double> o, lse;
  std::vector<Gradient> gradients = {};
};

runtime::Result<Operands> makeOperands(const Artifact &manifest,
                                       const OperandRequest &request);

/// Runs `program` on the inputs of `operands` with fresh contiguous outputs.
runtime::Result<RunResult> runOnHost(const HostProgram &program,
                                     Operands &operands);

/// o and lse, or gradients, as they stand in the outputs of `operands`.
RunResult readResult(const Artifact &manifest, const Operands &operands);

} // namespace attn

#endif // ATTN_EXECUTE_OPERANDS_H
