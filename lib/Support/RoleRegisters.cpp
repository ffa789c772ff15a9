//===- RoleRegisters.cpp - registers of a producer and consumers ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/RoleRegisters.h"

#include <algorithm>
#include <cassert>

using namespace attn;

static constexpr int64_t registersPerSM = 64 * 1024, warpSize = 32;
/// Shares are multiples of this: at the start, and what setmaxnreg takes.
static constexpr int64_t registerStep = 8;
/// The least that a role may have, and what a producer has use for: with loops
/// over tiles and blocks the least is not enough.
static constexpr int64_t leastRegisters = 24, producerRegisters = 40;
/// Threads never use more than 255; consumers of two groups leave the producer
/// what it has use for.
static constexpr int64_t mostRegisters = 232;

static int64_t toStep(int64_t registers) {
  return registers / registerStep * registerStep;
}

int64_t attn::registersAtStart(int64_t warps) {
  assert(warps >= 1 && "a kernel has warps");
  return toStep(registersPerSM / (warps * warpSize));
}

RoleRegisters attn::shareRegisters(int64_t consumerWarps) {
  assert(consumerWarps >= 1 && "a consumer has warps");
  int64_t warps = producerWarps + consumerWarps;
  int64_t all = registersAtStart(warps) * warps;
  RoleRegisters registers;
  registers.consumer =
      std::min(toStep((all - producerWarps * leastRegisters) / consumerWarps),
               mostRegisters);
  registers.producer = std::min(
      toStep((all - consumerWarps * registers.consumer) / producerWarps),
      producerRegisters);
  return registers;
}
