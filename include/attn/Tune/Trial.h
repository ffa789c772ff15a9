//===- Trial.h - compile a function, call it, check and time it -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TUNE_TRIAL_H
#define ATTN_TUNE_TRIAL_H

#include "attn/Check/ErrorRule.h"
#include "attn/Execute/Operands.h"
#include "attn/Execute/Timing.h"
#include "attn/Runtime/Module.h"
#include "attn/Support/LLVM.h"
#include "attn/Tune/Work.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

struct TrialRequest {
  std::string target = "sm_80"; // or another GPU, or cpu
  std::string function;         // empty: the only one
  /// What `function` has the gradients of, if the module has it: its variants
  /// say which pairs count.
  std::string forward;
  /// A plan or a rule over plans; empty: the operation's own, or the best
  /// known.
  std::string plan;
  std::string results; // a file of measured plans
  /// The GPU whose measured plans are taken; empty: the one at hand, where the
  /// compiler's file knows it and neither plan nor results are given; "none".
  std::string gpu;
  /// The variant that runs; none: the one that the rule picks.
  std::optional<int64_t> variant;
  PassRequest passes; // what changes in the plan
  std::string ptxas;  // the assembler, or the root of a CUDA Toolkit
  OperandRequest operands;
  /// .npy files to write, by the name of an output.
  std::map<std::string, std::string> outputs;
  bool check = false;
  /// Calls beside the first, whose bits must be those of the first.
  int64_t moreLaunches = 0;
  bool debugCaptures = false; // CaptureCheck.h
  bool bench = false;
  int repeats = 20;
  /// Where programs for the CPU run, a check's definitions too: Processor.h.
  std::string processor = "native";
  /// Refuse a check whose float64 scores need more bytes than this.
  int64_t maxCheckBytes = int64_t(4) << 30;
};

/// What attn-run exits with.
enum class TrialStatus {
  Ok = 0,
  BadInput = 1,    // program, plan, shapes, files
  CheckFailed = 2, // the result breaks the error rule, or two calls differ
  NoDevice = 3,    // the target's device is not there, or refused
};

struct TrialReport {
  TrialStatus status = TrialStatus::Ok;
  /// Why it is BadInput or NoDevice; programs are diagnosed where they stand.
  std::string message;

  Artifact manifest;
  /// Which variant ran, and why that one of several.
  runtime::VariantChoice variant;
  std::string device;
  double compileSeconds = 0;
  std::vector<std::string> shapes; // "q 1x8x512x64 bf16"
  /// Which tensors a launch copies, and why: a line each.
  std::string relayouts;
  std::optional<ErrorReport> check;
  int64_t launches = 1;
  std::string difference; // between two calls; empty if there is none
  std::optional<Timing> timing;
  Work work;
};

/// "q 1x8x512x64 bf16".
std::string describeTensor(const ArgumentInfo &info, const HostTensor &tensor);

TrialReport runTrial(ModuleOp module, const TrialRequest &request);

} // namespace attn

#endif // ATTN_TUNE_TRIAL_H
