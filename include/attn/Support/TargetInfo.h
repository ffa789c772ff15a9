//===- TargetInfo.h - what a target offers -------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain data, no MLIR and no LLVM: one row per target, read by the plan room
// and by the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_TARGETINFO_H
#define ATTN_SUPPORT_TARGETINFO_H

#include <cstdint>
#include <string_view>

namespace attn {

struct TargetInfo {
  std::string_view name; // as in #attn.plan and --target
  int64_t sm = 0;        // compute capability times 10; 0 is no GPU
  // Four warps multiply 16-bit elements together (wgmma), in panels that TMA
  // copies; roles share out the registers.
  bool hasWarpgroups = false;
  // Memory and registers of one streaming multiprocessor.
  int64_t sharedBytesPerBlock = 0; // most that one block may ask for
  int64_t sharedBytesPerSM = 0;
  int64_t sharedBytesReserved = 0; // per block, by the system
  int64_t registersPerSM = 0;
  int64_t registersPerThread = 0;  // most that one thread may use
  int64_t registerGranularity = 0; // per warp
  int64_t threadsPerSM = 0;
  int64_t blocksPerSM = 0;
  int64_t warpsPerBlock = 0;
  // Throughput of one streaming multiprocessor, per clock.
  double tensorFlops16 = 0; // dense f16 and bf16, f32 accumulator
  double tensorFlops32 = 0; // tf32
  double fp32Lanes = 0;
  double exp2Lanes = 0;
  double sharedBytesPerClock = 0;
  // The whole device.
  int64_t numSMs = 0;
  double memoryBytesPerClock = 0; // at the multiprocessors' boost clock
};

/// The target of that name, or null.
const TargetInfo *findTarget(std::string_view name);

} // namespace attn

#endif // ATTN_SUPPORT_TARGETINFO_H
