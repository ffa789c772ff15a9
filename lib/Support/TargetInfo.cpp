//===- TargetInfo.cpp - one row per target --------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/TargetInfo.h"

using namespace attn;

static TargetInfo cpu() {
  TargetInfo target;
  target.name = "cpu";
  return target;
}

// CUDA C++ Programming Guide, "Compute Capabilities": table of technical
// specifications; throughputs and clocks of the A100 (40 GB) from its
// architecture whitepaper: 1555 GB/s at 1.41 GHz.
static TargetInfo sm80() {
  TargetInfo target;
  target.name = "sm_80";
  target.sm = 80;
  target.sharedBytesPerBlock = 163 * 1024;
  target.sharedBytesPerSM = 164 * 1024;
  target.sharedBytesReserved = 1024;
  target.registersPerSM = 64 * 1024;
  target.registersPerThread = 255;
  target.registerGranularity = 256;
  target.threadsPerSM = 2048;
  target.blocksPerSM = 32;
  target.warpsPerBlock = 32;
  target.tensorFlops16 = 2048;
  target.tensorFlops32 = 1024;
  target.fp32Lanes = 64;
  target.exp2Lanes = 16;
  target.sharedBytesPerClock = 128;
  target.numSMs = 108;
  target.memoryBytesPerClock = 1555.0 / 1.41;
  return target;
}

const TargetInfo *attn::findTarget(std::string_view name) {
  static const TargetInfo targets[] = {cpu(), sm80()};
  for (const TargetInfo &target : targets)
    if (target.name == name)
      return &target;
  return nullptr;
}
