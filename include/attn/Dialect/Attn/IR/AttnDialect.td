//===- AttnDialect.td - the attn dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
#define ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD

include "attn/Support/OwnAttributes.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "What an attention kernel computes";
  let description = [{
    The `attn` dialect says *what* is computed: `softmax(scale * Q K^T +
    anything) V` on tensors, with the score function and the mask as regions
    of scalar code, and the numerics contract as an attribute. It says nothing
    about tiles, memory or targets; the only trace of them is the optional
    `#attn.plan` that the plan pass attaches for the conversions below.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Name of the discardable attribute that carries the numerics of a
    /// function once `attn.attention` itself is gone, if it has any.
    static constexpr ::llvm::StringLiteral kNumericsAttrName = "attn.numerics";

  private:
    void registerAttributes();

  public:
  }];
}

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, !listconcat(traits, [OwnAttributes])>;

#endif // ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
