//===- LiveRegisters.h - how many registers a kernel needs -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_LIVEREGISTERS_H
#define ATTN_TARGET_LIVEREGISTERS_H

#include <cstdint>

namespace llvm {
class Function;
} // namespace llvm

namespace attn {

/// The most 32-bit registers that the values of a kernel fill from one block to
/// another: what lives inside a block hangs on the order of its instructions,
/// which is the assembler's. Arguments, predicates and constants are in none.
int64_t countLiveRegisters(const llvm::Function &kernel);

} // namespace attn

#endif // ATTN_TARGET_LIVEREGISTERS_H
