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

    Gives: score and mask regions without `math.isnan`, `isinf`, `isfinite` and
    `isnormal` (comparisons), `math.cttz` (a population count), `math.ipowi`
    (products), `math.sincos` (sine and cosine), functions of 16-bit floats
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
  let summary = "simplifies score and mask regions, and drops what they do not use";
  let description = [{
    Needs: nothing.

    Gives: region bodies are canonical and without common subexpressions; a
    score region that returns its score and a mask region that returns true are
    gone; captures that no region reads are gone, with the code that fed only
    them; equal captures are one; a captured constant is a constant of the
    regions. Nothing else of the function changes.

    Example: (* example filepath=test/Dialect/Attn/simplify.mlir *)
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
