//===- x - Session.h - the compiler for programs, errors as values ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_SESSION_H
#define ATTN_EXECUTE_SESSION_H

#include "attn/Execute/HostProgram.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Runtime/Cache.h"
#include "attn/Runtime/Result.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

#include <mutex>

namespace attn {

/// A text in which graphs that compute attention are attn.attention.
struct RaisedText {
  std::string text;
  /// A line for each graph that looks like attention, in the order of the
  /// functions: "12:8: raised: …", or "12:8: not raised: …" with the edge that
  /// failed.
  std::string log;
  int numRaised = 0;
};

/// A context that knows the compiler's dialects, and in which nothing is
/// printed: what is wrong comes back as the status of a call, one diagnostic
/// per line, as in "3:14: error: …".
class Session {
public:
  Session();

  MLIRContext *getContext() { return &context; }

  /// The module of `text`.
  runtime::Result<OwningOpRef<ModuleOp>> parse(StringRef text);
  /// `attn-raise` of the functions of `text`.
  runtime::Result<RaisedText> raise(StringRef text);
  /// HostProgram::compile of the only function of `text`.
  runtime::Result<HostProgram> compileForHost(StringRef text,
                                              const HostOptions &options = {});

  /// attn::compile of the function in `text`, for a GPU; kept in `cache` and
  /// taken from there, if one is given. A cache that cannot be written is a
  /// warning in the log. With `onRoom` or `last` set nothing is cached.
  runtime::Result<Artifact> compile(StringRef text,
                                    const CompileOptions &options = {},
                                    const runtime::Cache *cache = nullptr);
  /// The last artifact came from the cache.
  bool isFromCache() const { return fromCache; }

  /// Everything said since the last call that failed: warnings and remarks.
  const std::string &log() const { return messages; }

private:
  LogicalResult record(Diagnostic &diagnostic);
  runtime::Status takeError();

  MLIRContext context;
  ScopedDiagnosticHandler handler;
  std::mutex mutex;
  std::string messages;
  bool fromCache = false;
};

} // namespace attn

#endif // ATTN_EXECUTE_SESSION_H
