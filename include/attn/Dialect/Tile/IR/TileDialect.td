//===- TileDialect.td - the tile dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_IR_TILEDIALECT_TD
#define ATTN_DIALECT_TILE_IR_TILEDIALECT_TD

include "attn/Support/OwnAttributes.td"
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attn::tile";
  let summary = "Which steps, in which order, for one thread block, sequentially";
  let description = [{
    A tile program is a `func.func` on strided memrefs that holds one
    `tile.kernel` after the other, each over a grid of (batch, head, query
    block), and inside it `scf.for` loops over key blocks. Values are plain `vector`s: a logical tile, no
    lanes. Row statistics are `vector<Mx1>`, column values `vector<1xN>`, and
    `vector.broadcast` stretches them. The dialect adds only what upstream
    lacks: bounds-checked boxes of memory, coordinates, gathers, scores masked by
    scalar code and one step of the online softmax. The program means what it says when run sequentially on
    a CPU; every tile pass keeps that meaning.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a product of f32 (`vector.contract`): every multiplication and addition
    /// rounds to nearest, whatever the function's `attn.numerics` say. Tensor
    /// cores cut off instead, all towards zero, which adds up in a sum of
    /// differences that cancel.
    static constexpr ::llvm::StringLiteral kIeeeAttrName = "tile.ieee";
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, !listconcat(traits, [OwnAttributes])>;

#endif // ATTN_DIALECT_TILE_IR_TILEDIALECT_TD
