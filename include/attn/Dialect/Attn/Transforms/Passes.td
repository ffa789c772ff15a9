//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnExpandVariantsPass : Pass<"attn-expand-variants"> {
  let summary = "variants of attn.attention become score and mask regions";
  let description = [{
    Needs: nothing.

    Gives: no `attn.attention` has a `variants` attribute; its score region is
    the listed `#attn.softcap` and `#attn.alibi` in their order, then the score
    region there was; its mask region is the conjunction of the listed
    `#attn.causal` and `#attn.window` and of the mask region there was. A length
    that a region needs and that the types do not tell comes in as an i32
    capture, computed by `tensor.dim` before the operation.

    A mask compares the key index with a value that depends on the query index
    only, so that later a row of scores is compared with one limit.

    Example: (* example filepath=test/Dialect/Attn/expand-variants.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

def AttnExpandMathPass : Pass<"attn-expand-math"> {
  let summary = "operations of regions that few targets know, in terms of others";
  let description = [{
    Needs: nothing.

    Gives: score, mask and pullback regions without `math.isnan`, `isinf`, `isfinite` and
    `isnormal` (comparisons), `math.cttz` (a population count), `math.ipowi`
    (products), `math.sincos` (sine and cosine), `math.clampf`
    (a minimum, then a maximum), functions of 16-bit floats
    that round (those of f32, rounded), and without the operations of `arith`
    that have two results: sums with a carry are a comparison, products of
    double width are computed in an integer of that width. Shifts are by less
    than the width; where the amount may be more, what C11 of `attn.attention`
    says of it is a choice beside them.

    Example: (* example filepath=test/Dialect/Attn/expand-math.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def AttnSimplifyPass : Pass<"attn-simplify"> {
  let summary = "simplifies score, mask and pullback regions, and drops what they do not use";
  let description = [{
    Needs: nothing.

    Gives: region bodies are canonical and without common subexpressions; a
    score region that returns its score, a mask region that returns true and a
    pullback region that returns dy are gone; captures that no region reads are
    gone, with the code that fed only them; equal captures are one; a captured
    constant is a constant of the regions. A capture whose gradient is a result
    stays. Nothing else of the function changes.

    Example: (* example filepath=test/Dialect/Attn/simplify.mlir *)
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AttnDifferentiatePass : Pass<"attn-differentiate", "::mlir::ModuleOp"> {
  let summary = "functions that compute gradients or tangents of attention";
  let description = [{
    Needs: every function with an `attn.attention` has one, in its only block;
    each of its query, key, value, sink and captures of floats is an argument of
    the function, and of no other part (captures of floats may also be made of
    no argument: they have no gradient); what the function returns are results
    of the attention. Other functions stay as they are.

    Gives: beside each such function `@f`, which stays as it is,

    - `@f_backward`, over the arguments of `@f`, then output, lse and d_output
      (and d_lse with `lse-gradient`), which returns the results of an
      `attn.attention_backward`: the gradients of query, key, value, sink and
      the captures of floats, in this order (not those of captures that are
      arguments with `attn.constant`, nor of any with `capture-gradients=false`,
      which may then be anything);
    - `@f_forward`, where `@f` does not return both output and lse: it does.

    With `mode=jvp` there is instead, beside each such function `@f`,

    - `@f_jvp`, over the arguments of `@f`, then t_query, t_key and t_value (one
      for an argument that is several of query, key and value), which returns the
      results of an `attn.attention_jvp`: output, lse, t_output and t_lse. What
      else the attention reads does not move, so it is no matter what it is made
      of, but that query, key and value have no part in it.

    Variants are written out in both, plans are left out. The pullback
    region goes through the score region from its end to its start (reverse
    mode), with adjoints of f32. Known are the derivatives of `arith.addf`,
    `subf`, `mulf`, `divf`, `negf`, `maximumf`, `minimumf`, `maxnumf`,
    `minnumf`, `select`, `extf`, `truncf`, of all functions of `math` on
    floats, of reads of captures, and of what has no float operand. Any other
    operation on a way from x or a capture to the score is an error. The
    pushforward region is the pullback of constant captures.

    Where there is no derivative, as in PyTorch:

    | operation | at | derivative |
    |---|---|---|
    | `math.absf` | 0 | 0 |
    | `arith.maximumf`, `minimumf` | equal operands | half of it to each |
    | `arith.maxnumf`, `minnumf` | equal operands | all of it to the first |
    | `math.clampf` | a bound | that of the value |
    | `math.ceil`, `floor`, `round`, `roundeven`, `trunc` | everywhere | 0 |
    | `math.copysign` | a magnitude of 0 | 0 |
    | `math.powf`, `fpowi`, by the base | an exponent of 0 | 0 |
    | `math.powf`, by the exponent | a base of 0, an exponent of 0 or more | 0 |
    | `math.sqrt`, `rsqrt`, `cbrt`, `log`, … | where it is infinite | inf, and NaN times 0 |
    | `arith.select` | everywhere | to the operand that is chosen |
    | `arith.truncf` | everywhere | that of no rounding |
    | comparisons; integers and what is made of them | everywhere | 0 |

    Example: (* example filepath=test/Dialect/Attn/differentiate.mlir *)
  }];
  let options = [
    Option<"mode", "mode", "::attn::DerivativeMode",
           "::attn::DerivativeMode::VJP", "what the new functions compute",
           [{::llvm::cl::values(
               clEnumValN(::attn::DerivativeMode::VJP, "vjp",
                          "gradients of the operands from those of the results"),
               clEnumValN(::attn::DerivativeMode::JVP, "jvp",
                          "tangents of the results from those of query, key and value"))}]>,
    Option<"lseGradient", "lse-gradient", "bool", /*default=*/"false",
           "the backward takes the gradient of lse too; else it is 0">,
    Option<"captureGradients", "capture-gradients", "bool", /*default=*/"true",
           "the backward gives the gradients of captures of floats">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

def AttnRecomputePass : Pass<"attn-recompute"> {
  let summary = "what gradients compute again, and what they keep in memory";
  let description = [{
    Needs: every `attn.attention_backward` has a plan (`attn-plan`), which says
    what its lanes can hold.

    Gives: each has a `recompute` without `auto`, which `convert-attn-to-tile`
    follows. A part of it that was there stays, or is refused with the reason
    why no program can do it; what the plan says of `scores` is kept or refused,
    too. The forward saves output and lse of each row and nothing else; between
    that and computing all again stand

    | number | decision |
    |---|---|
    | scores, weights, what goes back to them | never saved; computed `once` where sums may come in any order, products are not ieee, and it was faster (for many queries: a number that is not known counts as many, and there the plan may say for which ones it is): then parts of d_query are added up in memory; else `twice`; `thrice` where d_key and d_value together have more than 256 columns, or 512 where two warps share rows |
    | lse | read; where the score function does not bound it, rows with a large one get two numbers from their scores (`far_rows`) |
    | delta = rowsum(dO * O) | once for each row, kept in memory: by step it would take as many operations for each block of keys, and O again |
    | values of the score function (tanh, a read, a division) | in each program once for each element, for score and pullback together |
    | which weights dropout keeps | drawn again, in each program once for each element |

    A remark for each says what was decided, with the bytes and the operations of
    either side: of one call, where its sizes are known, else by row, by row and
    block of keys, and by score, hidden ones included.

    Example: (* example filepath=test/Dialect/Attn/recompute.mlir *)
  }];
}

def AttnPushTangentsPass : Pass<"attn-push-tangents", "::mlir::ModuleOp"> {
  let summary = "functions that compute tangents, operation by operation";
  let description = [{
    Needs: functions with operations of linalg have one block, of `linalg.fill`
    and `linalg.generic`, `scf.for` and `scf.if`, `tensor.cast`,
    `collapse_shape`, `empty`, `expand_shape`, `extract`, `insert` and
    `reshape`, scalar operations whose derivatives attn-differentiate knows, and
    whatever computes no floats or from constants: what
    `convert-attn-to-linalg` gives. Functions without linalg stay as they are.

    Gives: beside each such function `@f`, which stays as it is, `@f_jvp`, over
    the arguments of `@f`, then a tangent for each argument of floats, of its
    type; it returns what `@f` does, then a tangent for each result of floats.

    Second derivatives come from it: `attn-differentiate`, then
    `convert-attn-to-linalg`, then this pass give `@f_backward_jvp`, in which
    tangents of query, key and value become those of their gradients, the
    product of the Hessian with a vector. What lse is where a row has no key,
    -inf, has no tangent: NaN.

    Where there is no derivative, the table of attn-differentiate holds.

    Example: (* example filepath=test/Dialect/Attn/push-tangents.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def AttnOutlinePass : Pass<"attn-outline", "::mlir::ModuleOp"> {
  let summary = "each attn.attention becomes a function of its own";
  let description = [{
    Needs: every `attn.attention` is in a `func.func` of the module.

    Gives: a function that does more than one `attn.attention` of its arguments
    (projections, rotations and norms around it, several of them) calls a private
    function `@NAME_attention_N` for each. Such a function is what a kernel is
    compiled from: it takes query, key, value, sink, seed and offset, and
    captures, in this order, and returns output and lse.

    What stays in the caller is all that computes elements: casts, slices of one
    tensor with query, key and value, concatenations, constant tensors. The
    function takes transposes next to query, key, value and output, and reshapes
    between them and the attention, as kernels read and write any strides; and
    scalar code over constants and sizes of its arguments, so that a bound like
    keys - queries is known as such. Other captured scalars are arguments.

    Attentions that are the same but for names and locations call one function.
    A function that is one attention of its arguments already stays as it is, so
    a second run changes nothing; so does `attn.attention_backward`.

    Example: (* example filepath=test/Dialect/Attn/outline.mlir *)
  }];
  let dependentDialects = [
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
