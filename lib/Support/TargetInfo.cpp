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

// What differs for compute capability 9.0, from the same sources; throughputs
// and clocks of the H200: 4.8 TB/s at 1.98 GHz.
static TargetInfo sm90a() {
  TargetInfo target = sm80();
  target.name = "sm_90a";
  target.sm = 90;
  target.hasWarpgroups = true;
  target.sharedBytesPerBlock = 227 * 1024;
  target.sharedBytesPerSM = 228 * 1024;
  target.tensorFlops16 = 4096;
  target.tensorFlops32 = 2048;
  target.fp32Lanes = 128;
  target.numSMs = 132;
  target.memoryBytesPerClock = 4800.0 / 1.98;
  return target;
}

const TargetInfo *attn::findTarget(std::string_view name) {
  static const TargetInfo targets[] = {cpu(), sm80(), sm90a()};
  for (const TargetInfo &target : targets)
    if (target.name == name)
      return &target;
  return nullptr;
}
