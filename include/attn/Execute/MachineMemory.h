//===- MachineMemory.h - how much a process may have ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_MACHINEMEMORY_H
#define ATTN_EXECUTE_MACHINEMEMORY_H

#include <cstdint>

namespace attn {

/// Bytes that this process can have at most: what the machine has, or a limit
/// (`ulimit -v`) on the address space.
int64_t memoryLimit();

} // namespace attn

#endif // ATTN_EXECUTE_MACHINEMEMORY_H
