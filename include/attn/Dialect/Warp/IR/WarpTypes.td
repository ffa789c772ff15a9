//===- WarpTypes.td - types and attributes of the warp dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARPTYPES_TD
#define ATTN_DIALECT_WARP_IR_WARPTYPES_TD

include "attn/Dialect/Warp/IR/WarpDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/EnumAttr.td"

def Warp_FragKind : I32EnumAttr<"FragKind", "how a fragment is spread over lanes", [
    I32EnumAttrCase<"Acc", 0, "acc">,
    I32EnumAttrCase<"A", 1, "a">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}

def Warp_ReduceKind : I32EnumAttr<"ReduceKind", "how a row is reduced", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_ReduceKindAttr : EnumAttr<Warp_Dialect, Warp_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Warp_ExtremeKind : I32EnumAttr<"ExtremeKind", "which of all elements", [
    I32EnumAttrCase<"Least", 0, "least">,
    I32EnumAttrCase<"Greatest", 1, "greatest">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_ExtremeKindAttr : EnumAttr<Warp_Dialect, Warp_ExtremeKind, "extreme_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Warp_CastKind : I32EnumAttr<"CastKind", "a cast of the arith dialect", [
    I32EnumAttrCase<"TruncF", 0, "truncf">, I32EnumAttrCase<"ExtF", 1, "extf">,
    I32EnumAttrCase<"SIToFP", 2, "sitofp">, I32EnumAttrCase<"UIToFP", 3, "uitofp">,
    I32EnumAttrCase<"FPToSI", 4, "fptosi">, I32EnumAttrCase<"FPToUI", 5, "fptoui">,
    I32EnumAttrCase<"TruncI", 6, "trunci">, I32EnumAttrCase<"ExtSI", 7, "extsi">,
    I32EnumAttrCase<"ExtUI", 8, "extui">, I32EnumAttrCase<"Bitcast", 9, "bitcast">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_CastKindAttr : EnumAttr<Warp_Dialect, Warp_CastKind, "cast_kind"> {
  let assemblyFormat = "$value";
}

def Warp_Scheduler : I32EnumAttr<"Scheduler", "who gives blocks their tiles", [
    I32EnumAttrCase<"Grid", 0, "grid">, I32EnumAttrCase<"Static", 1, "static">,
    I32EnumAttrCase<"Dynamic", 2, "dynamic">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_SchedulerAttr : EnumAttr<Warp_Dialect, Warp_Scheduler, "scheduler"> {
  let assemblyFormat = "$value";
}

def Warp_Start : I32EnumAttr<"Start", "when a kernel that follows another starts", [
    I32EnumAttrCase<"Early", 0, "early">, I32EnumAttrCase<"Beside", 1, "beside">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_StartAttr : EnumAttr<Warp_Dialect, Warp_Start, "start"> {
  let assemblyFormat = "$value";
}

def Warp_RoleKind : I32EnumAttr<"RoleKind", "what the warps of a role do", [
    I32EnumAttrCase<"Copy", 0, "copy">,
    I32EnumAttrCase<"Compute", 1, "compute">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_RoleKindAttr : EnumAttr<Warp_Dialect, Warp_RoleKind, "role_kind"> {
  let assemblyFormat = "$value";
}
def Warp_ProductAtom : I32EnumAttr<"ProductAtom", "the instruction of a product", [
    I32EnumAttrCase<"MmaSync", 0, "mma_sync">, I32EnumAttrCase<"MmaTF32", 1, "mma_tf32">,
    I32EnumAttrCase<"FmaF32", 2, "fma_f32">, I32EnumAttrCase<"Wgmma", 3, "wgmma">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_ProductAtomAttr : EnumAttr<Warp_Dialect, Warp_ProductAtom, "product_atom"> {
  let assemblyFormat = "$value";
}
def Warp_CopyAtom : I32EnumAttr<"CopyAtom", "the instruction of a copy", [
    I32EnumAttrCase<"Plain", 0, "plain">, I32EnumAttrCase<"CpAsync", 1, "cp_async">,
    I32EnumAttrCase<"TMA", 2, "tma">]> {
  let cppNamespace = "::attn::warp";
  let genSpecializedAttr = 0;
}
def Warp_CopyAtomAttr : EnumAttr<Warp_Dialect, Warp_CopyAtom, "copy_atom"> {
  let assemblyFormat = "$value";
}
def Warp_RoleNamesAttr : TypedArrayAttrBase<FlatSymbolRefAttr, "names of roles">;

def Warp_TensorMapAttr : AttrDef<Warp_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "the boxes in which copies of a kernel take an argument";
  let description = [{
    The runtime makes a tensor map of the host's argument number `argument` at
    launch; numbers after those of the arguments are workspaces, in the order of
    their `memref.alloc`. A box is `panels` panels of `rows` x `columns` elements,
    one after the other, each swizzled over `swizzle` bytes (of 16 nothing is
    moved); 0 for one row.
    ```mlir
    #warp.tensor_map<argument = 0, rows = 64, columns = 64, swizzle = 128, panels = 2>
    ```
  }];
  let parameters = (ins "int64_t":$argument, "int64_t":$rows,
      "int64_t":$columns, "int64_t":$swizzle, "int64_t":$panels);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Warp_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Warp_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Warp_FragType : Warp_Type<"Frag", "frag", [
    DeclareTypeInterfaceMethods<ShapedTypeInterface>, ValueSemantics]> {
  let summary = "a tile spread over the lanes of the warps of a block";
  let description = [{
    `!warp.frag<128x64xf32, acc, 4>`: a 128x64 tile over 4 warps. Warps are
    stacked along the rows: with W warps, 16-row group g belongs to warp g mod W.
    `acc`: the accumulator of mma.m16n8 (PTX ISA, "Matrix Fragments for
    mma.m16n8k16"): in a group, lane l holds rows l/4 and l/4 + 8, columns
    8 t + 2 (l mod 4) + {0, 1}. A dimension of size 1 is a slice: each lane
    holds the values of the rows (Mx1) or columns (1xN) it has elements in. Mx4
    is one value for each lane of the quad that shares a row.
    An `acc` tile of fewer than 16 W rows: as many warps as it has 16-row groups
    are stacked along the rows, the others hold further columns.
    `!warp.frag<64x64xf32, acc, 2x2>`: warps in a grid, two along the rows and
    two groups along the columns. Slices of it are in the same grid.
    `a`: the A operand of the same instruction. Layout formulae, and the number
    of registers, are those of attn/Layout/Fragments.h.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::attn::warp::FragKind":$kind, "int64_t":$warps,
                        "int64_t":$gridColumns);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                     "::attn::warp::FragKind":$kind, "int64_t":$warps), [{
      return $_get($_ctxt, shape, elementType, kind, warps, /*gridColumns=*/1);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same tile over the same warps, so many groups along the columns.
    FragType inGrid(int64_t gridColumns) const;
    /// Whether the warps of both stand in the same grid.
    bool sharesGrid(FragType other) const {
      return getWarps() == other.getWarps() &&
             getGridColumns() == other.getGridColumns();
    }
    /// Which lane and register holds which element.
    ::attn::layout::Fragment getLayout() const;
  }];
}

def Warp_SlotType : Warp_Type<"Slot", "slot"> {
  let summary = "a tile in shared memory: `!warp.slot<64x128xbf16>`";
  let description = [{
    Row-major with the swizzle of attn/Layout/Swizzle.h: free of bank conflicts
    for ldmatrix and for 16-byte copies, for every width.

    `!warp.slot<64x128xbf16, panels<128>>` lies in column panels of 128 bytes (or
    64, 32, 16) per row, each swizzled as TMA writes it and wgmma reads it; the last
    panel is filled up with columns that are not part of the tile. `panelBytes`
    is 0 without panels.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "int64_t":$panelBytes);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
      return $_get($_ctxt, shape, elementType, /*panelBytes=*/0);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Where the elements lie; its bytes.
    ::attn::layout::SharedTile getLayout() const;
    /// Whether TMA can write it and wgmma can read it.
    bool hasPanels() const { return getPanelBytes() != 0; }
  }];
}

def Warp_RingType : Warp_Type<"Ring", "ring"> {
  let summary = "`depth` slots used in turn: `!warp.ring<2, 64x128xbf16>`";
  let parameters = (ins "int64_t":$depth, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "int64_t":$panelBytes);
  let builders = [
    TypeBuilder<(ins "int64_t":$depth, "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
      return $_get($_ctxt, depth, shape, elementType, /*panelBytes=*/0);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The type of one of its slots.
    SlotType getSlotType() const;
  }];
}

def Warp_MailboxType : Warp_Type<"Mailbox", "mailbox"> {
  let summary = "a ring of `depth` items of `count` numbers each: `!warp.mailbox<2, 4>`";
  let parameters = (ins "int64_t":$depth, "int64_t":$count);
  let assemblyFormat = "`<` $depth `,` $count `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t maxCount = 16;
    /// Shared memory of one item: its barriers as in a `warp.ring`, then the
    /// numbers.
    int64_t getItemBytes() const;
  }];
}

def Warp_PendingType : Warp_Type<"Pending", "pending"> {
  let summary = "a fragment that the tensor cores are still writing: `!warp.pending<128x64xf32, acc, 8>`";
  let description = [{
    What `warp.mma_async` gives. It cannot be used by arithmetic; `warp.wait`
    turns it into the fragment.
  }];
  let parameters = (ins "::attn::warp::FragType":$fragment);
  let hasCustomAssemblyFormat = 1;
}

#endif // ATTN_DIALECT_WARP_IR_WARPTYPES_TD
