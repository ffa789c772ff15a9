//===- RoleRegisters.h - registers of a producer and consumers --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks with roles take all registers of a multiprocessor, the same number on
// every target that has roles: one block, or as many as a plan says. Its warps
// start with equal shares; then each role takes or gives back (setmaxnreg).
// Plain numbers, no IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_ROLEREGISTERS_H
#define ATTN_SUPPORT_ROLEREGISTERS_H

#include <cstdint>
#include <string>

namespace attn {

/// Warps of a producer.
inline constexpr int64_t producerWarps = 4;

/// Registers that each thread has when a block of so many warps starts, where a
/// multiprocessor has so many blocks.
int64_t registersAtStart(int64_t warps, int64_t blocksPerSM = 1);

/// How a consumer role of that many warps and a producer share them, for each
/// of their threads; `consumer` says how many the former has, 0: as many as
/// leave the latter what it has use for.
struct RoleRegisters {
  int64_t producer = 0, consumer = 0;
};
RoleRegisters shareRegisters(int64_t consumerWarps, int64_t consumer = 0,
                             int64_t blocksPerSM = 1);

/// Why a consumer role of that many warps cannot have as many registers; empty
/// if it can.
std::string findShareFault(int64_t consumerWarps, int64_t consumer,
                           int64_t blocksPerSM = 1);

} // namespace attn

#endif // ATTN_SUPPORT_ROLEREGISTERS_H
