//===- ParseGuard.h - survives a parse that gives up ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_PARSEGUARD_H
#define ATTN_LIB_PIPELINES_PARSEGUARD_H

#include "attn/Support/LLVM.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Diagnostics.h"

namespace attn {

/// A name that is used before its definition may turn out to be defined inside
/// a region beside the use. Such a text is wrong, but MLIR's parser sees that
/// only at its end. If it gives up before, it frees the region and leaves the
/// use behind. While a guard lives, the first error of its context drops all
/// uses of what has been parsed, which nobody needs any more. Errors go on to
/// other handlers.
class ParseGuard {
public:
  explicit ParseGuard(MLIRContext *context);

  /// What the parser writes down: for parseAsmSourceFile.
  AsmParserState state;

  /// Where a block begins that has a value which is used outside of its region;
  /// null if there was no error, or no such use.
  const char *findEscape() const { return escape; }

private:
  void dropUses();

  bool hasFailed = false;
  const char *escape = nullptr;
  ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_LIB_PIPELINES_PARSEGUARD_H
