//===- FindPtxas.h - where the assembler is -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_FINDPTXAS_H
#define ATTN_TOOLS_FINDPTXAS_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <string>

namespace attn {

/// What the command line says, else what the environment says; empty: ptxas on
/// the PATH.
inline std::string choosePtxas(llvm::StringRef commandLine) {
  if (!commandLine.empty())
    return commandLine.str();
  for (const char *variable : {"CUDAToolkit_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable)) {
      llvm::SmallString<128> path(root);
      llvm::sys::path::append(path, "bin", "ptxas");
      if (llvm::sys::fs::can_execute(path))
        return std::string(path);
    }
  return "";
}

} // namespace attn

#endif // ATTN_TOOLS_FINDPTXAS_H
