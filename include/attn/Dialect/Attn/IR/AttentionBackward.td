//===- AttentionBackward.td - gradients of attn.attention -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTENTIONBACKWARD_TD
#define ATTN_DIALECT_ATTN_IR_ATTENTIONBACKWARD_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Attn_AttentionBackwardOp : Attn_Op<"attention_backward", [
    Pure, IsolatedFromAbove, AttrSizedOperandSegments, AttrSizedResultSegments,
    Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "gradients of attn.attention, by recomputation";
  let description = [{
    #### Semantics

    Let x, y, w and keep be what `attn.attention` makes of the same operands,
    regions and attributes, and let L be a number that depends on its results,
    with d_output = dL/d output and d_lse = dL/d lse (0 where it is not given).
    For every batch `b`, query head `h` with its key head `K`, query `i` and
    key `j`:

    ```
    p[j]  = exp(y[j] - lse[b, h, i])
    dw[j] = sum_d d_output[b, h, i, d] * value[b, K, j, d]
    delta = sum_d d_output[b, h, i, d] * output[b, h, i, d]
    dy[j] = p[j] * (keep(b, h, i, j) * dw[j] - delta + d_lse[b, h, i])
    dx[j] = pullback(dy[j], x[j], b, h, i, j)   (dy[j] where there is no pullback)
    dx[j] = 0                                   where y[j] = -inf: see (C11)

    d_query[b, h, i, d] = scale * sum_j dx[j] * key[b, K, j, d]
    d_key[b, K, j, d]   = scale * sum_{h of K, i} dx[j] * query[b, h, i, d]
    d_value[b, K, j, d] = sum_{h of K, i} w[j] * d_output[b, h, i, d]
    d_sink[h]           = sum_{b, i} exp(sink[h] - lse[b, h, i]) * (d_lse - delta)
    d_captures          = the sums of what `attn.capture_add` adds
    ```

    These are the formulae of Dao et al., "FlashAttention", section B.2, with a
    score function, a sink, dropout and a gradient of lse: nothing of the size
    of the scores is stored, x and y are computed again.

    #### Why the pullback is a region

    `score` and `mask` are those of the forward, word for word: what reads
    masks and scores there (visit sets, costs, checks of captures) reads them
    here. How a change of y goes back to x and to the captures is a region of
    its own, written by `attn-differentiate`, and not derived when the operation
    is lowered. So derivatives are known in one place and to no lowering; they
    are simplified, priced and printed like any other region; a gradient that
    is not the derivative (a straight-through estimator, a clipped gradient)
    can be written; and an operation without derivative is found before any
    choice of tiles. What score and pullback compute both, a lowering computes
    once: in one block they have common subexpressions.

    #### Operands and results

    Those of `attn.attention` with its names, and

    | name | shape | element |
    |---|---|---|
    | output, d_output | batch, heads, queries, value_dim | T |
    | lse, d_lse | batch, heads, queries | f32 |
    | d_query | batch, heads, queries, head_dim | T |
    | d_key | batch, key_heads, keys, head_dim | T |
    | d_value | batch, key_heads, keys, value_dim | T |
    | d_sink | heads | that of sink |
    | d_captures | that of the capture; rank 0 for a scalar | that of the capture |

    #### Constraints

    Checked on every operation:

    (C1) What `attn.attention` has too keeps its constraints: (C1) to (C11),
    (C26) to (C28) and (C30) there.

    (C2) Sizes with one name in the tables are equal; where a size is `?`, this
    is a promise of the caller. d_query, d_key and d_value have the element
    type of query, key and value; lse and d_lse are f32.

    (C3) d_sink is there where sink is, of its type.

    (C4) grad_captures lists the captures whose gradients are results, in rising
    order. They are f16, bf16 or f32, or tensors of these: an integer has no
    gradient. There is one d_captures for each, of the type in the table.

    (C5) A pullback region takes (dy: f32, x: f32, b: i32, h: i32, i: i32,
    j: i32) and the captures, and yields f32. It is a body as (C11) of
    `attn.attention` wants it, in which `attn.capture_add` may stand too.

    (C6) `attn.capture_add` stands in a pullback, and adds to a capture that
    grad_captures lists.

    (C7) There are no variants: `attn-differentiate` writes them out. There are
    no other attributes, but for those of other dialects.

    (C20) recompute says what an evaluation computes again; results stay within
    (C16). `scores = once` adds up in any order, and in f32 what is rounded to a
    type of 16 bits: it wants numerics that are not deterministic, and whose
    products of f32 are not ieee.

    True of every evaluation, on every target:

    (C8) output and lse are what `attn.attention` gives for the same operands,
    regions and attributes: a promise of the caller. An evaluation may read them
    or compute them again.

    (C9) Differentiated are query, key, value, sink and the captures that
    grad_captures lists. The mask has no gradient, nor have positions,
    scale, dropout_p and dropout_key.

    (C10) A row without a visible key, or with y[j] = -inf for all of them, adds
    0 to every gradient; d_query of it is 0. Never NaN, whatever d_lse is there.

    (C11) Nothing goes back through a position whose y is -inf, because the mask
    hides it or the score is: its dx is 0 and it adds nothing to a capture, also
    where the pullback there is infinite or NaN. (Frameworks that
    differentiate step by step get 0 * inf = NaN.)

    (C12) Dropout is not stored but drawn again, as (C29) of `attn.attention`
    says: the same key drops the same weights.

    (C13) Gradients of a key head are the sums over all query heads that share
    it; sums are of f32 or wider, and rounded once, to the type of the result.

    (C14) The pullback holds adjoints in f32, also of f16 and bf16 values.

    (C15) w and dx may be rounded to T before they meet d_output, query and key.
    Sums may be taken in any order; exp as (C19) of `attn.attention` says.

    (C16) For each result, with r, e and u as in (C20) of `attn.attention`, and
    g0 the unfused backward that rounds every step to T, and takes delta from
    output, as it was rounded: e(g) <= max(3 e(g0), u) + 1e-4. Where d_sink or
    d_captures have a coarser type than T, u is one unit of that. Of these two, e(g)
    may also be max |g - r'| with r' as r, but with delta from output, as it was
    rounded: where thousands of terms nearly cancel that rounding is most of g - r,
    and e(g0) may be small by chance. `convert-attn-to-linalg` builds r, r' and g0.

    (C17) Where `#attn.numerics` says deterministic, which is the default, one
    plan on one target gives the same bits every time: sums are in a fixed
    order. Otherwise sums over blocks of queries, keys, heads and batch entries
    may be taken in the order in which blocks end, within (C16).

    (C18) Memory outside of the tensors contributes nothing, whatever it holds.
    (An infinity or NaN of a key, a query or a d_output inside of them does
    reach the gradients that it is a factor of, also with a weight of 0.)

    (C19) +inf or NaN among visible scores propagates as in IEEE 754. Scores of
    any size, and tensors of more than 2^31 elements, as in (C23), (C24) and
    (C31) of `attn.attention`.

    #### Example

    ```mlir
    %dq, %dk, %dv, %dbias = attn.attention_backward %q, %k, %v, %o, %lse, %do
        captures(%bias) {grad_captures = array<i64: 0>}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %s = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
        %z = arith.addf %x, %s : f32
        %y = math.tanh %z : f32
        attn.yield %y : f32
      }
      pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %one = arith.constant 1.0 : f32
        %s = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
        %z = arith.addf %x, %s : f32
        %y = math.tanh %z : f32
        %y2 = arith.mulf %y, %y : f32
        %slope = arith.subf %one, %y2 : f32
        %dz = arith.mulf %dy, %slope : f32
        attn.capture_add %dz, %t[%i, %j] : tensor<?x?xf32>
        attn.yield %dz : f32
      }
      : (tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>,
         tensor<2x4x?x64xf16>, tensor<2x4x?xf32>, tensor<2x4x?x64xf16>, tensor<?x?xf32>)
        -> (tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<?x?xf32>)
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
    AnyRankedTensor:$output, AnyRankedTensor:$lse, AnyRankedTensor:$d_output,
    Optional<AnyRankedTensor>:$d_lse,
    Optional<AnyRankedTensor>:$sink, Variadic<I32>:$dropout_key,
    Variadic<AnyType>:$captures,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$dropout_p,
    OptionalAttr<DenseI64ArrayAttr>:$sorted_captures,
    OptionalAttr<DenseI64ArrayAttr>:$grad_captures,
    OptionalAttr<Attn_NumericsAttr>:$numerics,
    OptionalAttr<Attn_PlanAttr>:$plan,
    OptionalAttr<Attn_RecomputeAttr>:$recompute);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask,
                        MaxSizedRegion<1>:$pullback);
  let results = (outs
    AnyRankedTensor:$d_query, AnyRankedTensor:$d_key, AnyRankedTensor:$d_value,
    Optional<AnyRankedTensor>:$d_sink, Variadic<AnyRankedTensor>:$d_captures);
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // Arguments of the pullback block before the captures: dy, x, b, h, i, j.
    static constexpr unsigned kPullbackArguments = 6;

    /// There are none (C7).
    ::mlir::ArrayAttr getVariantsAttr() { return {}; }
    /// True when something else than dy goes back.
    bool hasPullback() { return !getPullback().empty(); }
    /// Whether the gradient of the scores is another one than that of what the
    /// score function makes of them, and not handed on as it is, as by a bias.
    bool changesGradient() {
      return hasPullback() && getPullback().front().getTerminator()->getOperand(0) !=
                                  getPullback().getArgument(0);
    }
    /// The number among d_captures of the gradient of a capture, if it has one.
    std::optional<unsigned> getGradientNumber(unsigned capture);
    /// The type of the gradient of a capture: its own, of rank 0 for a scalar.
    static ::mlir::RankedTensorType getGradientType(::mlir::Type capture);
  }];
}

def Attn_CaptureAddOp : Attn_Op<"capture_add", [
    MemoryEffects<[MemWrite]>, HasParent<"AttentionBackwardOp">]> {
  let summary = "adds to the gradient of a capture, at i32 indices";
  let description = [{
    Adds `value` to the gradient of `capture`: to its element at the indices, or
    to the gradient of the scalar. Out of range, as `attn.capture_load` reads 0
    there, nothing is added. The order of the sums of one gradient is nobody's
    promise, but for (C17) of `attn.attention_backward`.

    (C1) There are as many indices as the capture has dimensions; none for a
    scalar.

    Example:
    ```mlir
    attn.capture_add %d, %bias[%i, %j] : tensor<?x?xf32>
    attn.capture_add %e, %factor[] : f32
    ```
  }];
  let arguments = (ins F32:$value, AnyType:$capture, Variadic<I32>:$indices);
  let assemblyFormat = "$value `,` $capture `[` $indices `]` attr-dict `:` type($capture)";
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTENTIONBACKWARD_TD
