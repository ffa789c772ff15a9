//===- WarpInterfaces.td - what several operations say alike -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARPINTERFACES_TD
#define ATTN_DIALECT_WARP_IR_WARPINTERFACES_TD

include "mlir/IR/OpBase.td"

def Warp_ProductOpInterface : OpInterface<"ProductOp"> {
  let cppNamespace = "::attn::warp";
  let description = [{
    result = acc + a b, by the instruction that the atom names. What an atom
    accepts, and how it is executed, stands in attn/Dialect/Warp/IR/Atoms.h; the
    verifier holds the operands against it, and each atom has its emitter in
    lib/Conversion/WarpToGPU/Atoms.
  }];
  let methods = [
    InterfaceMethod<"The instruction.", "::attn::warp::ProductAtom", "getAtom">,
    InterfaceMethod<"MxK: a fragment or a slot.", "::mlir::Value", "getA">,
    InterfaceMethod<"KxN.", "::mlir::TypedValue<::attn::warp::SlotType>", "getB">,
    InterfaceMethod<"MxN.", "::mlir::TypedValue<::attn::warp::FragType>", "getAcc">,
    InterfaceMethod<"Whether the slot of a is KxM.", "bool", "getTransposeA">,
    InterfaceMethod<"Whether the slot of b is NxK.", "bool", "getTransposeB">
  ];
  let extraSharedClassDeclaration = [{
    /// Whether all warps read the slot that an operand is, and not only those
    /// that own its rows.
    bool isReadByAll(::mlir::OpOperand *use) {
      return $_op.getTransposeA() || use->get() == $_op.getB();
    }
  }];
  let verify = "return ::attn::warp::verifyProduct(::llvm::cast<ProductOp>($_op));";
}

#endif // ATTN_DIALECT_WARP_IR_WARPINTERFACES_TD
