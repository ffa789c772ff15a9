//===- Tile.h - the tile dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_IR_TILE_H
#define ATTN_DIALECT_TILE_IR_TILE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"
#include "attn/Support/OwnAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/Tile/IR/TileDialect.h.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.h.inc"

#endif // ATTN_DIALECT_TILE_IR_TILE_H
