//===- TileEvaluator.h - visits of a tile kernel -------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the integer code of a tile kernel: which key blocks it visits for which
// query block, and what its mask says of them, element by element.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_TILEEVALUATOR_H
#define ATTN_TEST_UNIT_INPUTS_TILEEVALUATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <string>
#include <vector>

namespace attn::test {

/// An argument: a scalar (no shape), or a tensor whose data may be left out.
struct Argument {
  std::vector<int64_t> shape;
  std::vector<int64_t> data;
};

/// One iteration of a loop over key blocks.
struct Visit {
  int64_t keyBlock;
  /// The step has a mask.
  bool isMasked;
  /// What the mask says, of the rows that exist, and of all rows of the block.
  bool shows = false, isFull = true;
  bool showsInAnyRow = false, isFullInAllRows = true;
};

/// The visits of every query block ("batch head block"), in order.
std::map<std::string, std::vector<Visit>>
runKernel(mlir::ModuleOp module, const std::vector<Argument> &arguments);

} // namespace attn::test

#endif // ATTN_TEST_UNIT_INPUTS_TILEEVALUATOR_H
