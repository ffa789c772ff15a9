//===- HostProgram.h - an attention function in this process ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_HOSTPROGRAM_H
#define ATTN_EXECUTE_HOSTPROGRAM_H

#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/Gradients.h"
#include "attn/Pipelines/PassSelection.h"
#include "attn/Runtime/KnownLaunch.h"
#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include <atomic>
#include <memory>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace attn {

struct HostOptions {
  /// Which definition of the function runs: the tiled kernel, one of the
  /// unfused ones of convert-attn-to-linalg, or a look at what the regions read
  /// (CaptureReads.h).
  enum class Kind {
    Tiled,
    OracleF64,
    OracleScore,
    OracleSaved,
    OracleInput,
    CaptureReads
  };
  Kind kind = Kind::Tiled;
  /// The function or its gradients; both are no program.
  FunctionChoice functions = FunctionChoice::Forward;
  GradientRequest gradients;
  /// For the tiled kernel: CompileOptions'.
  std::string plan, results, gpu;
  PassRequest passes;
  /// 0 to 3, as in `-O2`.
  unsigned optimization = 2;
  /// Which processor, and which of its features: Processor.h.
  std::string processor = "native";
};

/// A function compiled for the host processor, in memory. Calls are blocking;
/// one thread runs them.
class HostProgram {
public:
  /// Compiles function `name` (empty: the only one) of `module`, which is left
  /// as it is; where it has more than an attention, that attention
  /// (AttentionFunctions.h). What is wrong is said through the context's
  /// diagnostics, which must know the dialects (registerDialects).
  static FailureOr<HostProgram> compile(ModuleOp module, StringRef name,
                                        const HostOptions &options = {});

  HostProgram(HostProgram &&);
  HostProgram &operator=(HostProgram &&);
  ~HostProgram();

  /// Arguments (inputs, then outputs), checks, name and plan; no image. The
  /// outputs of the f64 oracle are f64.
  const Artifact &manifest() const { return description; }

  /// Runs the function.
  runtime::Status invoke(runtime::ArgumentSpan arguments) const;

  /// How many tensors calls have copied because of their layout.
  int64_t relayouts() const { return *relayoutCount; }

private:
  HostProgram();
  void relayout(const runtime::LaunchCall &call, bool outputs,
                void *memory) const;
  void run(runtime::PackedLaunch &launch) const;

  uint64_t number = runtime::KnownLaunches::nextModule();
  Artifact description;
  std::unique_ptr<std::atomic<int64_t>> relayoutCount =
      std::make_unique<std::atomic<int64_t>>(0);
  std::unique_ptr<ExecutionEngine> engine;
  void (*entry)(void **) = nullptr;
};

} // namespace attn

#endif // ATTN_EXECUTE_HOSTPROGRAM_H
