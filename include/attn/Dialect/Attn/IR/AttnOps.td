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

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"

def Attn_AttentionOp : Attn_Op<"attention", [
    Pure, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "softmax(score(scale * Q K^T) masked) V, with the log-sum-exp of each row";
  let description = [{
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
    Either region may be absent: score is then the identity, mask is true.
  }];
  let arguments = (ins
    AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
    Variadic<AnyType>:$captures,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<ArrayAttr>:$variants,
    OptionalAttr<Attn_NumericsAttr>:$numerics,
    OptionalAttr<Attn_PlanAttr>:$plan);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let results = (outs AnyRankedTensor:$output, AnyRankedTensor:$lse);
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // Dimension numbers of q, k, v, o: [batch, heads, length, head_dim].
    static constexpr int64_t kBatch = 0, kHead = 1, kLength = 2, kDim = 3;
    // Arguments of the score block before the captures: x, b, h, i, j; the
    // mask block has the same without x.
    static constexpr unsigned kScoreArguments = 5, kMaskArguments = 4;
    /// True for the types that captures and region bodies may compute with:
    /// i1, i8, i16, i32, i64, f16, bf16, f32.
    static bool isScalar(::mlir::Type type);
    /// True when the score region computes something.
    bool hasScore() { return !getScore().empty(); }
    /// True when the mask region computes something.
    bool hasMask() { return !getMask().empty(); }
    /// The static head dimension of query and key, and of value.
    int64_t getHeadDim();
    int64_t getValueHeadDim();
    /// scale, or its default 1/sqrt(head_dim) (N2).
    double getScaleValue();
    /// The element type of query, key, value and output.
    ::mlir::FloatType getElementType();
    /// The numerics contract, or its default.
    NumericsAttr getNumericsOrDefault();
  }];
}

def Attn_CaptureLoadOp : Attn_Op<"capture_load", [
    Pure,
    HasParent<"AttentionOp">,
    TypesMatchWith<"result is an element of the buffer", "buffer", "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "reads a captured tensor at i32 indices; out of range reads 0";
  let arguments = (ins AnyRankedTensor:$buffer, Variadic<I32>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$buffer `[` $indices `]` attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, HasParent<"AttentionOp">]> {
  let summary = "the value of a score (f32) or mask (i1) region";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
