//===- OutputFile.h - files that are there whole or not at all --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_OUTPUTFILE_H
#define ATTN_PIPELINES_OUTPUTFILE_H

#include "attn/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Writes what `print` prints to the file `path`: it appears whole, or stays as
/// it was. What is behind a link is written, and not the link; to a device or a
/// pipe goes what it takes. The error names the path.
llvm::Error writeOutputFile(StringRef path,
                            llvm::function_ref<void(raw_ostream &)> print);

} // namespace attn

#endif // ATTN_PIPELINES_OUTPUTFILE_H
