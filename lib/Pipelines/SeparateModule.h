//===- SeparateModule.h - a module that a thread can have -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_SEPARATEMODULE_H
#define ATTN_LIB_PIPELINES_SEPARATEMODULE_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace attn {

/// The copy of a module in a context of its own, for a thread that works on it
/// while others work in the context that it is from. What is said of it is kept
/// until `say`.
class SeparateModule {
public:
  explicit SeparateModule(ModuleOp original);
  SeparateModule(const SeparateModule &) = delete;

  ModuleOp get() { return *copy; }
  /// Says what was kept, in the context of the original.
  void say();

private:
  /// A diagnostic without the context that it was made in.
  struct Message {
    explicit Message(Diagnostic &diagnostic);
    Location findLocation(MLIRContext *context) const;

    DiagnosticSeverity severity;
    std::string location, text;
    std::vector<Message> notes;
  };

  MLIRContext *origin;
  MLIRContext context;
  std::vector<Message> messages;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> copy;
};

} // namespace attn

#endif // ATTN_LIB_PIPELINES_SEPARATEMODULE_H
