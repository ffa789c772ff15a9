//===- InputText.h - text that MLIR can parse -------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser takes the process down with some texts: it recurses as deep as
// brackets nest and sums are long, keeps an entry for every result number below
// the one it reads, believes that iterator types are strings and arrays of
// integers or floats, and frees blocks whose values are used elsewhere. A
// library in somebody's process has to refuse these before, or survive them.
// Bytecode is not looked at.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_INPUTTEXT_H
#define ATTN_PIPELINES_INPUTTEXT_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace attn {

/// What the parser would not survive, and where it stands.
struct TextFault {
  size_t offset = 0;
  std::string message;
};

/// The first fault of a text, or nothing. Bytecode is none that is read.
std::optional<TextFault> findTextFault(StringRef text);

/// Where a value is used outside of its region in a text that does not parse:
/// the parser may free the value and leave the use. parseModule and parseInput
/// survive that; this is for callers of the parser itself, for each part of
/// what they split. Emits nothing.
std::optional<TextFault> findEscapedValue(StringRef text, MLIRContext *context);

/// The module in the main file of `sources`, which has no fault; null after a
/// diagnostic.
OwningOpRef<ModuleOp> parseModule(const llvm::SourceMgr &sources,
                                  MLIRContext *context);

/// The module in a text; null after a diagnostic, whose file is `name`.
OwningOpRef<ModuleOp> parseInput(StringRef text, StringRef name,
                                 MLIRContext *context);

} // namespace attn

#endif // ATTN_PIPELINES_INPUTTEXT_H
