//===- AttentionJvp.td - tangents of attn.attention -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTENTIONJVP_TD
#define ATTN_DIALECT_ATTN_IR_ATTENTIONJVP_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Attn_AttentionJvpOp : Attn_Op<"attention_jvp", [
    Pure, IsolatedFromAbove, AttrSizedOperandSegments, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "attn.attention and its tangents, in one pass over the keys";
  let description = [{
    #### Semantics

    Let x, y, w, keep, output and lse be what `attn.attention` makes of the same
    operands, regions and attributes, and let query, key and value move along
    t_query, t_key and t_value: query + e t_query and so on, for a small number
    e. The results are output and lse, and how they move with e, at e = 0. For
    every batch `b`, query head `h` with its key head `K`, query `i` and key `j`:

    ```
    tx[j] = scale * sum_d (t_query[b, h, i, d] * key[b, K, j, d]
                           + query[b, h, i, d] * t_key[b, K, j, d])
    ty[j] = pushforward(tx[j], x[j], b, h, i, j)   (tx[j] where there is none)
    p[j]  = exp(y[j] - lse[b, h, i])
    t_lse[b, h, i] = sum_j p[j] * ty[j]
    t_output[b, h, i, d] = sum_j w[j] * ((ty[j] - t_lse[b, h, i]) * value[b, K, j, d]
                                         + t_value[b, K, j, d])
    ```

    A product of the Jacobian of attention with a vector: forward mode, Griewank
    and Walther, "Evaluating Derivatives", section 3.1. Nothing of the size of
    the scores is stored: t_lse is the mean of ty under the weights, which is
    carried from key block to key block like the maximum and the sum of the online
    softmax.

    #### Why the pushforward is a region

    For the reasons that `attn.attention_backward` gives for its pullback. As
    score is a function of one number here, captures being constants, its
    pushforward is the same number times tx that its pullback is times dy.

    #### Operands and results

    Those of `attn.attention` with its names, and

    | name | shape | element |
    |---|---|---|
    | t_query | batch, heads, queries, head_dim | T |
    | t_key | batch, key_heads, keys, head_dim | T |
    | t_value | batch, key_heads, keys, value_dim | T |
    | t_output | batch, heads, queries, value_dim | T |
    | t_lse | batch, heads, queries | f32 |

    #### Constraints

    Checked on every operation:

    (C1) What `attn.attention` has too keeps its constraints: (C1) to (C11),
    (C26) to (C28) and (C30) there.

    (C2) Sizes with one name in the tables are equal; where a size is `?`, this
    is a promise of the caller. t_query, t_key, t_value and t_output have the
    element type of query, key and value; t_lse is f32.

    (C3) A pushforward region takes (tx: f32, x: f32, b: i32, h: i32, i: i32,
    j: i32) and the captures, and yields f32. It is a body as (C11) of
    `attn.attention` wants it.

    (C4) There are no variants: `attn-differentiate` writes them out. There are
    no other attributes, but for those of other dialects.

    True of every evaluation, on every target:

    (C5) output and lse are those of `attn.attention`, within its error rule.

    (C6) Query, key and value move, and nothing else: the sink, captures, the
    mask, positions, scale, dropout_p and dropout_key are constants. A sink joins
    the denominator of p.

    (C7) A row without a visible key, or with y[j] = -inf for all of them, has
    t_output 0 and t_lse 0; never NaN.

    (C8) A position whose weight is 0, because the mask hides it, its score is
    -inf or far below the others, adds nothing, also where what the pushforward
    gives there is infinite or NaN. (Frameworks that differentiate step by step
    get 0 * inf = NaN.) Infinities and NaN of a key, a value, or a tangent of
    either, that is inside but masked may reach the results, as (C18) of
    `attn.attention` says of values.

    (C9) The pushforward holds tangents in f32.

    (C10) Weights, and their products with ty less a number that is the same for
    the keys of a row, may be rounded to T before they meet value and t_value.
    Sums are of f32 or wider, in any order.

    (C11) For t_output and t_lse, with r, e and u as in (C20) of
    `attn.attention`, and g0 the unfused evaluation that rounds every step to T:
    e(g) <= max(3 e(g0), u) + 1e-4. `convert-attn-to-linalg` builds r and g0.

    (C12) Dropout drops the weights that (C29) of `attn.attention` drops for the
    same key; t_lse leaves it out.

    (C13) One plan on one target gives the same bits every time.

    (C14) +inf or NaN among visible scores propagates as in IEEE 754. Scores of
    any size, and tensors of more than 2^31 elements, as in (C23), (C24) and
    (C31) of `attn.attention`.

    #### Example

    ```mlir
    %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
        %y = math.tanh %x : f32
        attn.yield %y : f32
      }
      pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
        %one = arith.constant 1.0 : f32
        %y = math.tanh %x : f32
        %y2 = arith.mulf %y, %y : f32
        %slope = arith.subf %one, %y2 : f32
        %ty = arith.mulf %tx, %slope : f32
        attn.yield %ty : f32
      }
      : (tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>,
         tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>)
        -> (tensor<2x4x?x64xf16>, tensor<2x4x?xf32>, tensor<2x4x?x64xf16>, tensor<2x4x?xf32>)
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
    AnyRankedTensor:$t_query, AnyRankedTensor:$t_key, AnyRankedTensor:$t_value,
    Optional<AnyRankedTensor>:$sink, Variadic<I32>:$dropout_key,
    Variadic<AnyType>:$captures,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$dropout_p,
    OptionalAttr<DenseI64ArrayAttr>:$sorted_captures,
    OptionalAttr<Attn_NumericsAttr>:$numerics,
    OptionalAttr<Attn_PlanAttr>:$plan);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask,
                        MaxSizedRegion<1>:$pushforward);
  let results = (outs
    AnyRankedTensor:$output, AnyRankedTensor:$lse,
    AnyRankedTensor:$t_output, AnyRankedTensor:$t_lse);
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// There are none (C4).
    ::mlir::ArrayAttr getVariantsAttr() { return {}; }
    /// True when something else than tx goes on.
    bool hasPushforward() { return !getPushforward().empty(); }
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTENTIONJVP_TD
