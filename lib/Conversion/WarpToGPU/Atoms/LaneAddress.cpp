//===- LaneAddress.cpp - where a lane reads a slot of f32 -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAddress.h"

#include "../Fragments.h"
#include "../Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

LaneAddress::LaneAddress(OpBuilder &builder, Location loc, SlotType slot,
                         Value base, Value row, Value rowInBox, Value column)
    : builder(builder), loc(loc), tile(layoutOf(slot)) {
  Integers ints(builder, loc);
  Value swizzle =
      ints.rem(ints.div(rowInBox, tile.rowsPerXor()), tile.period());
  Value chunk = ints.bitXor(ints.div(column, tile.elementsPerChunk()), swizzle);
  Value inChunk =
      ints.mul(ints.rem(column, tile.elementsPerChunk()), tile.elementBytes);
  Value offset =
      ints.add(ints.add(ints.mul(row, tile.chunksPerRow() * layout::chunkBytes),
                        ints.mul(chunk, layout::chunkBytes)),
               inChunk);
  address = hideOrigin(builder, loc, ints.add(base, offset));
  pointers.resize(tile.period());
}

LaneAddress LaneAddress::moved(OpBuilder &inner, Value row,
                               Value column) const {
  LaneAddress result(inner, loc, tile);
  Integers ints(inner, loc);
  result.address = address;
  if (row)
    result.address =
        ints.add(result.address,
                 ints.mul(row, tile.chunksPerRow() * layout::chunkBytes));
  if (column) {
    // Whole periods are added, the rest goes through the swizzle.
    Value bytes = ints.mul(column, tile.elementBytes);
    int64_t periodBytes = tile.period() * layout::chunkBytes;
    result.address =
        ints.add(ints.bitXor(result.address, ints.rem(bytes, periodBytes)),
                 ints.bitAnd(bytes, -periodBytes));
  }
  return result;
}

Value LaneAddress::at(int64_t row, int64_t column) {
  auto shared = LLVM::LLVMPointerType::get(
      builder.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  int64_t chunk = column / tile.elementsPerChunk();
  int64_t inPeriod = chunk % tile.period();
  Value &pointer = pointers[inPeriod];
  if (!pointer) {
    Integers ints(builder, loc);
    pointer = LLVM::IntToPtrOp::create(
        builder, loc, shared,
        ints.bitXor(address, inPeriod * layout::chunkBytes));
  }
  int64_t constant =
      (row * tile.chunksPerRow() + chunk - inPeriod) * layout::chunkBytes;
  return LLVM::GEPOp::create(
      builder, loc, shared, builder.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(constant)});
}
