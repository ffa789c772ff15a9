//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CHECK_PASSES_TD
#define ATTN_CHECK_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnValidateRaise : Pass<"attn-validate-raise", "::mlir::ModuleOp"> {
  let summary = "run functions before and after convert-linalg-to-attn and compare";
  let description = [{
    Needs: functions of tensors as `convert-linalg-to-attn` takes them. Gives: the
    same, unchanged.

    A copy of every function is raised; both are run on the CPU, in f64 without
    any rounding, on the same random inputs. Unknown sizes are small, and differ
    where they may. A difference is an error; so is a function that cannot be
    run. Where the graph gives NaN because a row sees no key, attention may give
    0. A remark (`--remarks-filter=attn-validate-raise`) says how many graphs of
    a function were raised.

    Example: `test/Regression/raise-bucket.mlir`.
  }];
  let options = [
    Option<"samples", "samples", "int64_t", "2",
           "How often sizes and inputs are drawn">,
    Option<"seed", "seed", "uint64_t", "0", "Of the random inputs">,
    Option<"processor", "cpu", "std::string", "\"native\"",
           "Which processor, and which of its features, to use, as in attn-run's --cpu">
  ];
}

#endif // ATTN_CHECK_PASSES_TD
