//===- ProcessorPasses.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_PROCESSORPASSES_TD
#define ATTN_CONVERSION_PROCESSORPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertNarrowFloats : Pass<"convert-narrow-floats"> {
  let summary = "f16 and bf16 in f32 and integers, for any processor";
  let description = [{
    Needs: `arith` and `math` on scalars or vectors.

    Gives: numbers of 16 bits are only moved, selected and taken as bits; what
    computes with them computes in f32 and is rounded once. Conversions are
    integer arithmetic, exact for NaN, infinities, ties and numbers below the
    normal ones, from f64 and from integers too. A processor without
    instructions for them would call functions that neither the C library nor
    that of mathematics has (`__truncsfbf2`).

    Example: `test/Conversion/NarrowFloats/narrow-floats.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LLVMNarrowFloatsToBits
    : Pass<"llvm-narrow-floats-to-bits", "::mlir::ModuleOp"> {
  let summary = "f16 and bf16 as i16 in the llvm dialect";
  let description = [{
    Needs: a module in the llvm dialect that only moves numbers of 16 bits
    (`convert-narrow-floats`).

    Gives: the same with i16 in their place, arguments and constants included.
    Where a processor lacks instructions for them LLVM would choose between two
    of them, or take one as an argument, by converting them to f32 and back.

    Example: `test/Conversion/NarrowFloats/narrow-bits.mlir`.
  }];
}

#endif // ATTN_CONVERSION_PROCESSORPASSES_TD
