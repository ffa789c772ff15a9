//===- FragmentOps.td - operations on fragments ------------- -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_FRAGMENTOPS_TD
#define ATTN_DIALECT_WARP_IR_FRAGMENTOPS_TD

include "attn/Dialect/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Warp_SplatOp : Warp_Op<"splat", [Pure,
    TypesMatchWith<"the scalar is an element", "result", "scalar",
                   "::llvm::cast<FragType>($_self).getElementType()">]> {
  let summary = "a fragment of one value";
  let arguments = (ins AnyType:$scalar);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$scalar attr-dict `:` type($result)";
}

def Warp_MaskWordOp : Warp_Op<"mask_word", [Pure]> {
  let summary = "a word whose bits are those of a mask, of unknown origin";
  let description = [{
    The value of its operand. Its bits are tested one by one, and it is joined
    with others in place of its bits. `convert-warp-to-gpu` makes words of masks
    and turns them, at its end, into moves that LLVM cannot see through: it would
    test what the word was made from, element by element.
    ```mlir
    %word = warp.mask_word %ones
    ```
  }];
  let arguments = (ins I32:$ones);
  let results = (outs I32:$word);
  let assemblyFormat = "$ones attr-dict";
}

def Warp_SelectOp : Warp_Op<"select", [Pure, AllTypesMatch<["trueValue", "falseValue", "result"]>]> {
  let summary = "arith.select by an i1 fragment, which upstream allows on vectors and tensors only";
  let arguments = (ins Warp_FragType:$condition, Warp_FragType:$trueValue, Warp_FragType:$falseValue);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$condition `,` $trueValue `,` $falseValue attr-dict `:` type($condition) `,` type($result)";
  let hasVerifier = 1;
}

def Warp_CastOp : Warp_Op<"cast", [Pure]> {
  let summary = "an arith cast, element by element";
  let arguments = (ins Warp_CastKindAttr:$kind, Warp_FragType:$value);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def Warp_ConvertOp : Warp_Op<"convert", [Pure]> {
  let summary = "the same tile in another layout, without moving data between lanes";
  let description = [{
    Only acc -> a: the accumulator of m16n8 holds exactly the elements that the A
    operand wants (of m16n8k16 for 16-bit elements; of m16n8k8 for f32, with the
    order of k that attn/Layout/Fragments.h gives).
  }];
  let arguments = (ins Warp_FragType:$value);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_BroadcastOp : Warp_Op<"broadcast", [Pure]> {
  let summary = "stretches dimensions of size 1";
  let arguments = (ins Warp_FragType:$value);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_ReduceOp : Warp_Op<"reduce", [Pure]> {
  let summary = "reduces each row: MxN -> Mx1, known to every lane of the row";
  let description = [{
    `max` is that of `arith.maxnumf`: it passes over NaN.

    MxN -> Mx4 keeps one value for each lane of a row's quad: column q of the
    result reduces the columns j with (j mod 8) / 2 = q, which one lane holds, so
    no data moves between lanes. Mx4 -> Mx1 finishes it.
    ```mlir
    %part = warp.reduce <add> %p : !warp.frag<128x64xf32, acc, 4> -> !warp.frag<128x4xf32, acc, 4>
    %sum = warp.reduce <add> %part : !warp.frag<128x4xf32, acc, 4> -> !warp.frag<128x1xf32, acc, 4>
    ```
  }];
  let arguments = (ins Warp_ReduceKindAttr:$kind, Warp_FragType:$value);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_AnyOp : Warp_Op<"any", [Pure]> {
  let summary = "whether any element that this warp holds is true";
  let description = [{
    Each warp answers for itself: what runs under the answer runs in some warps
    and not in others, so nothing that warps do together may stand there.
    ```mlir
    %redo = warp.any %overflow : !warp.frag<128x1xi1, acc, 4>
    scf.if %redo { … }
    ```
  }];
  let arguments = (ins Warp_FragType:$value);
  let results = (outs I1:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Warp_ExtremeOp : Warp_Op<"extreme", [Pure]> {
  let summary = "the least, or the greatest, of all elements";
  let description = [{
    Of signed integers that one warp holds; all its lanes know the answer.
    ```mlir
    %first = warp.extreme <least> %documents : !warp.frag<16x1xi32, acc, 1>
    ```
  }];
  let arguments = (ins Warp_ExtremeKindAttr:$kind, Warp_FragType:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Warp_CoordsOp : Warp_Op<"coords", [Pure]> {
  let summary = "base, base + 1, … along one axis";
  let description = [{
    Axis 0 gives the rows of an Mx1 fragment, axis 1 the columns of a 1xN one.
    ```mlir
    %rows = warp.coords %row0, 0 : !warp.frag<128x1xi32, acc, 4>
    ```
  }];
  let arguments = (ins I32:$base, I64Attr:$axis);
  let results = (outs Warp_FragType:$result);
  let assemblyFormat = "$base `,` $axis attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_WARP_IR_FRAGMENTOPS_TD
