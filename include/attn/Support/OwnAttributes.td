//===- OwnAttributes.td - misspelt attributes are refused -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_OWNATTRIBUTES_TD
#define ATTN_SUPPORT_OWNATTRIBUTES_TD

include "mlir/IR/OpBase.td"

def OwnAttributes : NativeOpTrait<"OwnAttributes"> {
  let cppNamespace = "::attn";
}

#endif // ATTN_SUPPORT_OWNATTRIBUTES_TD
