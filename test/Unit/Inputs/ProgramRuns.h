//===- ProgramRuns.h - what programs are run on -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_PROGRAMRUNS_H
#define ATTN_TEST_UNIT_INPUTS_PROGRAMRUNS_H

#include "Simulator/Simulator.h"
#include "llvm/ADT/APFloat.h"

namespace attn {

/// A contiguous tensor of f32, i32, f16 or bf16 and what it holds.
struct Tensor {
  std::vector<int64_t> sizes;
  const llvm::fltSemantics *element = nullptr; // null: i32
  std::vector<double> values;
  std::vector<uint8_t> bytes;

  int64_t count() const {
    int64_t number = 1;
    for (int64_t size : sizes)
      number *= size;
    return number;
  }
  int64_t elementBytes() const {
    return element ? llvm::APFloat::getSizeInBits(*element) / 8 : 4;
  }
  /// Puts numbers into memory, and takes back what became of them.
  void write();
  void read();
  simulator::HostArgument argument();
};

/// The tensors of a program, in the order of its arguments, and what its
/// outputs must be.
struct ProgramRun {
  std::vector<Tensor> tensors;
  std::vector<std::vector<double>> expected; // empty: no output

  /// The largest error, in units of what is allowed.
  double judge();
};

/// Random ones for a program of test/Programs.
ProgramRun splitKeys(int64_t queries, int64_t keys, bool isF16);
ProgramRun pagedKeys(bool isF16);
ProgramRun backward(bool isF16);
/// Of a program by its name, in bf16.
ProgramRun makeRun(llvm::StringRef program);

} // namespace attn

#endif // ATTN_TEST_UNIT_INPUTS_PROGRAMRUNS_H
