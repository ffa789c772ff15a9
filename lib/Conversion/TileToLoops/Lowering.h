//===- Lowering.h - one function per kind of operation -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOLOOPS_LOWERING_H
#define ATTN_CONVERSION_TILETOLOOPS_LOWERING_H

#include "TileBuffers.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace attn {

/// Each emits loops before the operation, into a buffer bound to its result.
void lowerLoad(OpBuilder &builder, TileBuffers &buffers, tile::LoadOp op);
void lowerStore(OpBuilder &builder, TileBuffers &buffers, tile::StoreOp op);
void lowerGather(OpBuilder &builder, TileBuffers &buffers, tile::GatherOp op);
void lowerSearch(OpBuilder &builder, TileBuffers &buffers, tile::SearchOp op);
void lowerBins(OpBuilder &builder, TileBuffers &buffers, tile::BinsOp op);
void lowerScatterAdd(OpBuilder &builder, TileBuffers &buffers,
                     tile::ScatterAddOp op);
void lowerStoreBins(OpBuilder &builder, TileBuffers &buffers,
                    tile::StoreBinsOp op);

/// The element of a scalar, or of a vector whose dimensions of size 1 stretch,
/// that stands at `at`.
Value stretchedElement(OpBuilder &builder, Location loc, TileBuffers &buffers,
                       Value value, ValueRange at);

/// The product is accumulated in the accumulator's type, terms in the order of
/// the reduction dimension. Fails on anything but a matrix product.
LogicalResult lowerContract(OpBuilder &builder, TileBuffers &buffers,
                            vector::ContractionOp op);

/// Elements are combined in row-major order, after the accumulator's.
LogicalResult lowerReduction(OpBuilder &builder, TileBuffers &buffers,
                             vector::MultiDimReductionOp op);

} // namespace attn

#endif // ATTN_CONVERSION_TILETOLOOPS_LOWERING_H
