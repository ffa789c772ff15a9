//===- AttnOps.td - operations of the attn dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_TD

include "attn/Dialect/Attn/IR/AttentionBackward.td"
include "attn/Dialect/Attn/IR/AttentionJvp.td"
include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"

def Attn_AttentionOp : Attn_Op<"attention", [
    Pure, IsolatedFromAbove, AttrSizedOperandSegments, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "softmax(score(scale * Q K^T) masked) V, with the log-sum-exp of each row";
  let description = [{
    #### Semantics

    For every batch `b`, query head `h` and query `i`, with `K` the key head of
    `h` (C5), over all keys `j`:

    ```
    x[j]   = scale * sum_d query[b, h, i, d] * key[b, K, j, d]
    x'[j]  = score(x[j], b, h, i, j)          (x[j] where there is no score)
    y[j]   = x'[j] where mask(b, h, i, j), else -inf
    lse    = log(exp(sink[h]) + sum_j exp(y[j]))      (no such term without sink)
    w[j]   = keep(b, h, i, j) * exp(y[j] - lse)       (keep = 1 without dropout)
    output[b, h, i, d] = sum_j w[j] * value[b, K, j, d]
    ```

    `score` and `mask` are regions of scalar code; either may be absent. They
    see positions as i32, counted from 0, and read what the operation captures:
    scalars as they are, tensors through `attn.capture_load`. `variants` names
    common score and mask functions; `attn-expand-variants` writes them out as
    regions, and the operation means the same before and after (C22).
    `numerics` and `plan` say how to compute, and change nothing of the above
    beyond the error rule (C20).

    The computation is that of Vaswani et al., "Attention Is All You Need",
    section 3.2.1; groups of query heads that share a key head are those of
    Ainslie et al., "GQA", section 2.2; kernels use the online softmax of
    Milakov and Gimelshein, "Online normalizer calculation for softmax",
    section 3, by blocks as in Dao, "FlashAttention-2", section 3.1.

    #### Operands and results

    | name | shape | element |
    |---|---|---|
    | query | batch, heads, queries, head_dim | T: f16, bf16 or f32 |
    | key | batch, key_heads, keys, head_dim | T |
    | value | batch, key_heads, keys, value_dim | T |
    | sink | heads | f16, bf16 or f32 |
    | dropout_key | two scalars: seed and offset | i32 |
    | captures | any | i1, i8, i16, i32, i64, f16, bf16, f32 |
    | output | batch, heads, queries, value_dim | T |
    | lse | batch, heads, queries | f32, natural logarithm |

    #### Constraints

    Checked on every operation:

    (C1) Query, key, value and output have rank 4, lse has rank 3, in the order
    of the table; none has an encoding.

    (C2) Query, key, value and output have one element type: f16, bf16 or f32.
    lse is f32.

    (C3) head_dim and value_dim are known, multiples of 8, and at most 256. They
    may differ.

    (C4) Sizes with one name in the table are equal. Where a size is `?`, this
    is a promise of the caller; a launch checks it.

    (C5) heads is a multiple of key_heads, which is at least 1; query head `h`
    reads key head `h / (heads / key_heads)`. Where unknown: as in (C4).

    (C6) batch, heads, key_heads, queries and keys are at most 2^30, so that
    positions and their sums and differences are i32. Any size but head_dim,
    value_dim and key_heads may be 0. Where unknown: as in (C4).

    (C7) scale is finite in f32. Without it, scale is 1 / sqrt(head_dim).

    (C8) A capture is a scalar, or a ranked tensor without encoding, of the
    types in the table.

    (C9) A score region takes (x: f32, b: i32, h: i32, i: i32, j: i32) and one
    argument per capture, of its type, and yields f32.

    (C10) A mask region takes (b: i32, h: i32, i: i32, j: i32) and the captures,
    and yields i1.

    (C11) Regions are one block of `arith` and `math` operations without side
    effects on scalars of the types in the table, `attn.capture_load`,
    `attn.capture_search`, and `attn.yield`. Integers are divided by constants
    only, and not by 0 or -1: a kernel may evaluate a region at positions
    outside of the lengths, and drops what it returns there. A shift by the
    width or more, or by less than 0, leaves 0; `arith.shrsi` then leaves
    copies of the sign (upstream's operations leave this open). `math.clampf` of
    x to [lo, hi] is max(min(x, hi), lo): NaN where an operand is, lo where lo
    is above hi (upstream's has the bounds the other way round). `arith.remf`,
    products of i64 in double width and powers of i1 are refused: no GPU has
    exact code for them.

    (C12) Every variant is `#attn.causal`, `#attn.window`, `#attn.softcap` or
    `#attn.alibi`.

    (C13) There are no other attributes, but for those of other dialects.

    (C26) sink, if there, is a tensor of rank 1 and f16, bf16 or f32, without
    encoding, of one element per query head. It is an attention sink: a logit
    that joins the denominator and has no value (Xiao et al., "Efficient
    Streaming Language Models with Attention Sinks", section 3.2; a learned one
    per head is what recent open models train). A sink of -inf is none.

    (C27) dropout_key and dropout_p come together; dropout_p is in [0, 1).

    (C28) sorted_captures lists captures, each once, that are tensors of integers
    of rank 1 or more: a promise of the caller that they never decrease along
    their last dimension. Kernels then visit fewer key blocks; what they compute
    without the promise kept is not defined, but for memory they do not own,
    which they neither read nor write.

    (C30) A captured tensor has the elements that the regions read. Where sizes,
    constants and captured scalars tell that an index is past the end at the
    first or last batch entry, head, query and key, that the mask shows the
    position and that the element matters there (no select, conjunction or zero
    factor drops it), the compiler or the launch refuses the tensor. All else
    reads 0, as `attn.capture_load` and, of its leading indices,
    `attn.capture_search` say: indices below 0, and those that only data tell.

    True of every evaluation, on every target:

    (C14) `score` sees the natural scaled score: the products are summed in f32
    and multiplied by scale once, not by log2(e) too.

    (C15) `mask` applies to what `score` returned, never before it.

    (C16) lse is the natural logarithm of the sum over visible keys of
    exp(x'[j]), and of exp(sink[h]) where there is a sink.

    (C17) A row without a visible key, or with x'[j] = -inf for all of them, has
    output 0 and lse -inf (the sink's value, where there is one); never NaN.

    (C18) Memory outside of the tensors contributes nothing, whatever it holds,
    NaN included. (A key that is inside, but masked, has weight 0: an infinity
    or NaN of its value does reach the output.)

    (C19) Weights are rounded to T before they meet value; their sum uses the
    unrounded f32. A kernel may subtract another reference than the row's
    maximum, and may compute exp as exp2, where `#attn.numerics` allows it.

    (C20) Let r be the same expression in f64 (but for (C32)), e(t) =
    max |t - r|, t0 the unfused evaluation that rounds every step to T (but
    keeps a score in f32 that T cannot hold), s the evaluation in f64 whose
    `score` alone is in f32, and u one unit in the last place of T at max |r|.
    Then

    ```
    e(output) <= max(2 e(t0), u) + 1e-5
    rmse(output) <= 1.001 max(rmse(t0), rmse(r rounded to T))
    rmse(output) <= 1.001 max(2 rmse(t0), rmse(r rounded to T))
                                                      where c is large
    rmse(output) <= 2 rmse(t0) + 2^-22 max |value|    where T is f32 and its
                                                      products are split
    ```
    where rmse is the root mean square error, judged from 4096 elements on, and
    c is what tensor cores cut off of large scores: half a unit in the last
    place of f32, of |scale| |query[i]| |key[j]|, for each 16 products (of f32:
    three times for each 8). Where it exceeds one unit in the last place of T at
    1/2, weights lose more to c than to their rounding, and t0 is one draw of
    what a few rows lose. lse is off by no more than 1e-4, plus one unit in the
    last place of f32 at |lse|, plus c, plus 2 e(s) of lse: a score function that
    rounds a number of 1e9 twice has no better lse in f32.
    `convert-attn-to-linalg` builds r, s and t0.

    (C21) `bottom_right`, the default alignment of variants, joins the last
    query with the last key: key i + keys - queries is on the diagonal of
    query i. `top_left` joins the first with the first.

    (C22) Variants that change scores apply in the order listed, before `score`;
    a key is visible where `mask` and every listed variant show it.

    (C23) +inf or NaN among visible scores propagates as in IEEE 754, to NaN in
    the row. Finite scores of any size give the finite result of the definition:
    a row whose keys all have the lowest number of f32 as a bias has the mean of
    the values, never NaN.

    (C24) Scores live in f32: those of f16 operands may exceed 65504.

    (C25) Two plans agree within (C20); one plan on one target gives the same
    bits every time.

    (C31) Tensors may have more than 2^31 elements: addresses are exact.

    (C32) Where a region makes an integer, a truth value or a whole number of a
    float (`arith.fptosi`, `arith.cmpf`, `math.floor`), the last bit matters:
    all that leads there is computed as it is written, in the types written, on
    every target and also in r of (C20), as far as it does not depend on the x
    of `score`. Not so where all that is asked is whether it is infinite. Sums, products, quotients and square roots are rounded once
    each, and no constants are put together. Other functions are as exact as the
    target's.

    (C29) Dropout: with word the first of the four words that Philox4x32-10
    (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", section 4)
    gives for the key (seed, offset) and the counter (b, h, i, j),

    ```
    keep = 1 / (1 - dropout_p) where word >= round(dropout_p * 2^32), else 0
    ```
    compared without sign. lse and the sum it is made of leave dropout out;
    the same key, on any target and with any plan, drops the same weights.

    Other systems differ: FlashInfer returns lse in base 2; FlashAttention-2
    returns +inf for an empty row; IREE's `iree_linalg_ext.attention` masks
    before the score and leaves empty rows open. Convert at the edges.

    #### Example

    ```mlir
    %o, %lse = attn.attention %q, %k, %v captures(%slopes) {scale = 0.125 : f64, variants = [#attn.causal]}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<16xf32>) {
        %slope = attn.capture_load %s[%h] : tensor<16xf32>
        %d = arith.subi %j, %i : i32
        %f = arith.sitofp %d : i32 to f32
        %t = arith.mulf %slope, %f : f32
        %y = arith.addf %x, %t : f32
        attn.yield %y : f32
      }
      mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<16xf32>) {
        %m = arith.cmpi sge, %i, %j : i32
        attn.yield %m : i1
      }
      : (tensor<2x16x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<16xf32>)
        -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>)
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
    Optional<AnyRankedTensor>:$sink, Variadic<I32>:$dropout_key,
    Variadic<AnyType>:$captures,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$dropout_p,
    OptionalAttr<DenseI64ArrayAttr>:$sorted_captures,
    OptionalAttr<ArrayAttr>:$variants,
    OptionalAttr<Attn_NumericsAttr>:$numerics,
    OptionalAttr<Attn_PlanAttr>:$plan);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let results = (outs AnyRankedTensor:$output, AnyRankedTensor:$lse);
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    // Result types follow from the operands; a builder of a region gets its
    // block arguments and returns what to yield.
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
      "::mlir::Value":$value, CArg<"::mlir::ValueRange", "{}">:$captures,
      CArg<"::attn::BodyBuilder", "nullptr">:$score,
      CArg<"::attn::BodyBuilder", "nullptr">:$mask)>];
  let extraClassDeclaration = [{
    /// True for the types that captures and region bodies may compute with:
    /// i1, i8, i16, i32, i64, f16, bf16, f32.
    static bool isScalar(::mlir::Type type);
  }];
}

def Attn_CaptureLoadOp : Attn_Op<"capture_load", [
    Pure,
    ParentOneOf<["AttentionOp", "AttentionBackwardOp", "AttentionJvpOp"]>,
    TypesMatchWith<"result is an element of the buffer", "buffer", "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "reads a captured tensor at i32 indices; out of range reads 0";
  let description = [{
    `buffer[indices]`, or 0 (false) where any index is negative or not below the
    size of its dimension.

    (C1) There are as many indices as the tensor has dimensions; none for a
    tensor of rank 0.

    (C2) An index out of range reads 0, so that a region may be evaluated outside
    of the lengths. (Inside of them a tensor that is too small for its indices
    is refused where sizes tell: (C30) of `attn.attention`.)

    Example:
    ```mlir
    %s = attn.capture_load %bias[%i, %j] : tensor<?x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$buffer, Variadic<I32>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$buffer `[` $indices `]` attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Attn_CaptureSearchOp : Attn_Op<"capture_search", [
    Pure, ParentOneOf<["AttentionOp", "AttentionBackwardOp", "AttentionJvpOp"]>]> {
  let summary = "how many elements of a sorted captured tensor are <= a value";
  let description = [{
    With the leading indices as in `attn.capture_load`, the number of elements
    of the last dimension that are not above `value`, compared with sign: an
    upper bound search. 0 where a leading index is out of range. (A tensor that
    is too small for its leading indices is refused where sizes tell: (C30) of
    `attn.attention`.)

    For `cu_seqlens`, the offsets 0 = o[0] <= o[1] <= ... of packed sequences,
    the sequence of position i is the search for i, minus 1.

    (C1) The tensor has rank 1 or more and elements of i32; there are as many
    leading indices as it has dimensions, less one.

    (C2) The last dimension never decreases: a promise of the caller. Otherwise
    the result is some number between 0 and its size.

    (C3) The result never decreases as `value` grows.

    Example:
    ```mlir
    %n = attn.capture_search %offsets[], %i : tensor<?xi32>
    %m = attn.capture_search %starts[%b], %j : tensor<4x?xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$buffer, Variadic<I32>:$indices, I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$buffer `[` $indices `]` `,` $value attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Attn_YieldOp : Attn_Op<"yield", [
    Pure, Terminator, ParentOneOf<["AttentionOp", "AttentionBackwardOp", "AttentionJvpOp"]>]> {
  let summary = "the value of a score, pullback or pushforward (f32) or mask (i1) region";
  let description = [{
    Ends a region of `attn.attention`, `attn.attention_backward` or
    `attn.attention_jvp`.

    Example:
    ```mlir
    attn.yield %y : f32
    ```
  }];
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
