//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_PASSES_TD
#define ATTN_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnPlan : Pass<"attn-plan", "::mlir::ModuleOp"> {
  let summary = "attach a plan to every attention";
  let description = [{
    Needs: `attn.attention` on tensors. Gives: the same with `plan` set: the
    plan of the option, else the one the operation has, else the fastest one
    that a file of results has for such a kernel, else the pick for the target. A
    plan that does not fit the target is an error that says how many bytes it
    needs and how many there are.

    `gpu` names a GPU: only what was measured on it counts, and what was measured
    with a known number of queries only where the operation has as many. Without
    `results` the file is the one that comes with the compiler,
    share/attn/plans.json; if that is missing or broken, a warning says so. Where
    several plans serve a number of queries that is known at launch, it is the one
    for all lengths that no condition names: `attn-compile` makes a variant for
    each. A
    remark (`--remarks-filter=attn-plan`) says where a plan came from.

    Which optional passes run is part of the plan; `without` and `with` change
    it, wherever the plan is from. A pipeline of attn-opt is built before its plan
    is known and runs what its options say: with `fixed`, an operation's own plan
    that says otherwise is an error, and one that is picked runs these passes.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"sm_80\"",
           "What to compile for: cpu, sm_80 or sm_90a">,
    Option<"planText", "plan", "std::string", /*default=*/"\"\"",
           "The plan to use for every attention, as #attn.plan<…>">,
    Option<"results", "results", "std::string", /*default=*/"\"\"",
           "A file of measured plans, as attn-bench writes it">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "The GPU whose measured plans are taken, by its name">,
    ListOption<"without", "without", "std::string",
               "Optional passes that the plan shall leave out">,
    ListOption<"with", "with", "std::string",
               "Optional passes that the plan shall have although the target "
               "does not run them by default">,
    Option<"fixed", "fixed", "bool", /*default=*/"false",
           "A plan that is given or measured with other optional passes than "
           "these two lists make of the target's is an error">
  ];
}

def AttnPrintPlans : Pass<"attn-print-plans", "::mlir::ModuleOp"> {
  let summary = "print the legal plans of every attention with their cost";
  let description = [{
    Needs: functions with `attn.attention`.

    Gives: the same functions; on standard output one line per legal plan of
    each attention: the plan, shared memory in bytes, registers per thread,
    thread blocks per multiprocessor and the estimated clocks per score.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"sm_80\"",
           "What to compile for: cpu, sm_80 or sm_90a">,
    Option<"results", "results", "std::string", /*default=*/"\"\"",
           "A file of measured plans: their times are printed too">
  ];
}

#endif // ATTN_PLAN_PASSES_TD
