//===- Simulator.h - GPU kernels run lane by lane on the CPU --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs what `convert-warp-to-gpu` makes (host function, `gpu.launch_func`,
// kernels of arith, scf, llvm and nvvm operations) without a GPU, for tests.
//
// The lanes of a block advance together, one operation at a time. That is not
// how a GPU schedules warps, so what depends on the schedule is checked instead
// of tried out:
//
// - Every word of shared memory knows who wrote and who read it since the last
//   barrier. A write beside a read or write of another warp, or a read of what
//   another warp wrote, with no barrier in between, is a race.
// - An asynchronous copy reads its source when it is issued and writes shared
//   memory only when a wait forces it: the latest moment the hardware may take.
//   Until then its words are in flight; touching them is an error.
// - Reading shared memory that nobody wrote, global memory outside the
//   arguments, and misaligned accesses are errors.
//
// Each is a diagnostic at the operation, so a passing run says that the waits,
// barriers and bounds of the kernel are right, besides its numbers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_SIMULATOR_H
#define ATTN_TEST_SIMULATOR_SIMULATOR_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::simulator {

/// A tensor (strides in elements) or, without data, the bits of a scalar.
struct HostArgument {
  void *data = nullptr;
  SmallVector<int64_t> sizes, strides;
  uint64_t scalar = 0;
};

/// Runs a host function; emits an error where the program does what a GPU
/// would not forgive, or has an operation that is not known here.
LogicalResult simulate(func::FuncOp host, ArrayRef<HostArgument> arguments);

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_SIMULATOR_H
