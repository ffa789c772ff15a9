//===- AttnInterfaces.td - what several operations say alike -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def Attn_ScoredOpInterface : OpInterface<"ScoredOp"> {
  let cppNamespace = "::attn";
  let description = [{
    An operation over the scores of queries and keys: their operands, the regions
    that change and hide them, dropout, the numerics contract and the plan. Plans,
    checks of captures, counts of work and the roles of arguments ask an operation
    by this interface, and so serve each that has it. C1 to C32 of
    `attn.attention` say what the parts mean.
  }];
  let methods = [
    InterfaceMethod<"[batch, query heads, queries, head_dim].",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getQuery">,
    InterfaceMethod<"[batch, key heads, keys, head_dim].",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getKey">,
    InterfaceMethod<"[batch, key heads, keys, value head_dim].",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getValue">,
    InterfaceMethod<"[query heads], or null (C26).",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getSink">,
    InterfaceMethod<"Seed and offset of dropout, or none (C29).",
      "::mlir::OperandRange", "getDropoutKey">,
    InterfaceMethod<"What both regions see besides x, b, h, i and j.",
      "::mlir::OperandRange", "getCaptures">,
    InterfaceMethod<"What is made of a scaled score; empty: nothing.",
      "::mlir::Region &", "getScore">,
    InterfaceMethod<"Which keys a query sees; empty: all.",
      "::mlir::Region &", "getMask">,
    InterfaceMethod<"Masks and scores by name, before attn-expand-variants.",
      "::mlir::ArrayAttr", "getVariantsAttr">,
    InterfaceMethod<"The factor of q . k, if it is given.",
      "::std::optional<::llvm::APFloat>", "getScale">,
    InterfaceMethod<"The probability that a weight is dropped.",
      "::std::optional<::llvm::APFloat>", "getDropoutP">,
    InterfaceMethod<"Numbers of the captures promised to be sorted (C28).",
      "::std::optional<::llvm::ArrayRef<int64_t>>", "getSortedCaptures">,
    InterfaceMethod<"The numerics contract, or null.",
      "::attn::NumericsAttr", "getNumericsAttr">,
    InterfaceMethod<"How it is compiled, or null.",
      "::attn::PlanAttr", "getPlanAttr">,
    InterfaceMethod<"Says how it is compiled.", "void", "setPlanAttr",
      (ins "::attn::PlanAttr":$plan)>
  ];
  let extraSharedClassDeclaration = [{
    // Dimension numbers of query, key and value: [batch, heads, length,
    // head_dim].
    static constexpr int64_t kBatch = 0, kHead = 1, kLength = 2, kDim = 3;

    /// (C6) As many batch entries, heads, queries or keys there may be.
    static constexpr int64_t kMaxPositions = int64_t(1) << 30;
    // Arguments of the score block before the captures: x, b, h, i, j; the
    // mask block has the same without x.
    static constexpr unsigned kScoreArguments = 5, kMaskArguments = 4;

    /// True when the score region computes something.
    bool hasScore() { return !$_op.getScore().empty(); }
    /// True when the mask region computes something.
    bool hasMask() { return !$_op.getMask().empty(); }
    /// True when weights are dropped (C29).
    bool hasDropout() { return !$_op.getDropoutKey().empty(); }
    /// True when capture `number` is promised to be sorted (C28).
    bool isSortedCapture(unsigned number) {
      std::optional<::llvm::ArrayRef<int64_t>> sorted =
          $_op.getSortedCaptures();
      return sorted && ::llvm::is_contained(*sorted, int64_t(number));
    }
    /// The static head dimension of query and key, and of value.
    int64_t getHeadDim() { return $_op.getQuery().getType().getDimSize(kDim); }
    int64_t getValueHeadDim() {
      return $_op.getValue().getType().getDimSize(kDim);
    }
    /// scale, or its default 1/sqrt(head_dim) (C7).
    double getScaleValue() {
      if (std::optional<::llvm::APFloat> scale = $_op.getScale())
        return scale->convertToDouble();
      return 1.0 / std::sqrt(static_cast<double>(getHeadDim()));
    }
    /// The element type of query, key and value.
    ::mlir::FloatType getElementType() {
      return ::llvm::cast<::mlir::FloatType>(
          $_op.getQuery().getType().getElementType());
    }
    /// The numerics contract, or its default.
    ::attn::NumericsAttr getNumericsOrDefault() {
      if (::attn::NumericsAttr numerics = $_op.getNumericsAttr())
        return numerics;
      return ::attn::NumericsAttr::get($_op->getContext(), /*fast_math=*/true,
                                       /*deterministic=*/true,
                                       ::attn::F32Products::TF32x3);
    }
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
