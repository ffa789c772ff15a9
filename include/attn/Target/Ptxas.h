//===- Ptxas.h - machine code by NVIDIA's assembler -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTXAS_H
#define ATTN_TARGET_PTXAS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Location.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attn {

/// What ptxas said about one kernel. -1: not said.
struct PtxasFigures {
  int64_t registers = -1, stackBytes = -1;
  int64_t spillStoreBytes = -1, spillLoadBytes = -1;
};

/// What ptxas said; the figures are the largest of any kernel.
struct PtxasReport : PtxasFigures {
  int64_t milliseconds = -1;
  std::map<std::string, PtxasFigures> kernels;
  /// Every line that is a warning, or carries an advice number (C7504 …): such
  /// a kernel is right but not what was meant.
  std::vector<std::string> warnings;
};

/// Reads the output of `ptxas -v`.
PtxasReport parsePtxasLog(StringRef log);

/// Whether a warning says that ptxas ignored setmaxnreg or serialised wgmma
/// (C7504 … C7520). C7519 does not: one more wgmma.fence, which waits for
/// nothing.
bool isSerialized(StringRef warning);

struct AssembledCubin {
  std::vector<uint8_t> bytes;
  PtxasReport report;
};

/// The assembler to use: `given` if it is not empty (a file, or the root of a
/// CUDA Toolkit), else the one on the PATH. Empty if there is none.
std::string findPtxas(StringRef given);

/// Runs `ptxas`. The error holds what it printed. `isSparing`: without what
/// makes code faster at the price of registers.
FailureOr<AssembledCubin> assemble(Location loc, StringRef ptxas, StringRef ptx,
                                   StringRef chip, bool isSparing = false);

/// Says in the PTX of a kernel that one block for each multiprocessor is
/// enough. Otherwise ptxas may spill a few registers for one more.
void allowOneBlock(std::string &ptx, StringRef kernel);

/// Takes a kernel out of PTX that LLVM wrote.
void dropKernel(std::string &ptx, StringRef kernel);

/// Emits spills and warnings of a report as warnings at `loc`; or as errors,
/// and fails, if `strict`. `name` is what the kernels are part of.
LogicalResult reportPtxas(Location loc, StringRef name,
                          const PtxasReport &report, bool strict);

} // namespace attn

#endif // ATTN_TARGET_PTXAS_H
