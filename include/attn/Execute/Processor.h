//===- Processor.h - which processor code is compiled for -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A processor is told in LLVM's words: `native` is the one this process runs
// on, with what it has; or a name, as in `x86-64-v3`. After commas come
// features to add or to do without: `native,-avx512bf16`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_PROCESSOR_H
#define ATTN_EXECUTE_PROCESSOR_H

#include "attn/Runtime/Result.h"
#include "attn/Support/LLVM.h"
#include "llvm/Support/Error.h"

namespace llvm::orc {
class JITTargetMachineBuilder;
} // namespace llvm::orc

namespace attn {

/// Registers LLVM's back ends for GPUs and for this processor, once. LLVM keeps
/// them in a list without a lock: all that compiles in several threads calls
/// this first, so that none looks for one while another one registers its own.
void initializeBackends();

/// What makes code for `processor` that this process can run. An error, in
/// words, where LLVM does not know it, where it has less than every processor
/// of its kind, or more than the one at hand.
llvm::Expected<llvm::orc::JITTargetMachineBuilder>
selectProcessor(StringRef processor);

/// The error of selectProcessor, if any.
runtime::Status checkProcessor(StringRef processor);

} // namespace attn

#endif // ATTN_EXECUTE_PROCESSOR_H
