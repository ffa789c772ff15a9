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
#include <vector>

namespace llvm {
class Function;
} // namespace llvm

namespace attn {

/// Of a role: the registers that it takes when it begins (setmaxnreg), and
/// those that it fills.
struct RoleLiveness {
  int64_t registers = 0, live = 0;
};

/// The most 32-bit registers that the values of a kernel fill from one block to
/// another: what lives inside a block hangs on the order of its instructions,
/// which is the assembler's. Arguments, predicates and constants are in none.
struct RegisterLiveness {
  int64_t live = 0; // anywhere
  std::vector<RoleLiveness> roles;
  int64_t instructions = 0;
};
RegisterLiveness countLiveRegisters(const llvm::Function &kernel);

} // namespace attn

#endif // ATTN_TARGET_LIVEREGISTERS_H
