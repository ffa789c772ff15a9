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
/// The least that a role may have, and more than a producer has use for: bounds
/// of ten intervals of key blocks and more.
static constexpr int64_t leastRegisters = 24, mostOfProducer = 120;
/// What a producer does with where several blocks share a multiprocessor.
static constexpr int64_t usualOfProducer = 40;
/// Threads never use more than 255; consumers of two groups leave the producer
/// 40, since with loops over tiles and blocks the least is not enough.
static constexpr int64_t mostRegisters = 232, mostOfThread = 248;

static int64_t toStep(int64_t registers) {
  return registers / registerStep * registerStep;
}

int64_t attn::registersAtStart(int64_t warps, int64_t blocksPerSM) {
  assert(warps >= 1 && blocksPerSM >= 1 && "a kernel has warps and blocks");
  return toStep(registersPerSM / (blocksPerSM * warps * warpSize));
}

/// What is there for a thread of the consumer if the producer has `ofProducer`.
static int64_t leaveConsumer(int64_t consumerWarps, int64_t ofProducer,
                             int64_t blocksPerSM) {
  int64_t warps = producerWarps + consumerWarps;
  return toStep((registersAtStart(warps, blocksPerSM) * warps -
                 producerWarps * ofProducer) /
                consumerWarps);
}

RoleRegisters attn::shareRegisters(int64_t consumerWarps, int64_t consumer,
                                   int64_t blocksPerSM) {
  assert(consumerWarps >= 1 && "a consumer has warps");
  int64_t warps = producerWarps + consumerWarps;
  int64_t all = registersAtStart(warps, blocksPerSM) * warps;
  int64_t ofProducer = blocksPerSM == 1 ? leastRegisters : usualOfProducer;
  RoleRegisters registers;
  registers.consumer =
      consumer != 0
          ? consumer
          : std::min(leaveConsumer(consumerWarps, ofProducer, blocksPerSM),
                     mostRegisters);
  registers.producer = std::min(
      toStep((all - consumerWarps * registers.consumer) / producerWarps),
      mostOfProducer);
  return registers;
}

std::string attn::findShareFault(int64_t consumerWarps, int64_t consumer,
                                 int64_t blocksPerSM) {
  int64_t most = std::min(
      leaveConsumer(consumerWarps, leastRegisters, blocksPerSM), mostOfThread);
  if (consumer >= leastRegisters && consumer <= most &&
      consumer % registerStep == 0)
    return "";
  return "got " + std::to_string(consumer) +
         " registers per thread, expected a multiple of " +
         std::to_string(registerStep) + " in [" +
         std::to_string(leastRegisters) + ", " + std::to_string(most) +
         "] with " + std::to_string(consumerWarps) + " warps";
}
