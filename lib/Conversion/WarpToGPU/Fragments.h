//===- Fragments.h - fragments as the registers of one lane -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_FRAGMENTS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_FRAGMENTS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {
class Integers;
struct Positions;

/// The layout of a fragment, as the IR-free algebra knows it.
layout::Fragment layoutOf(FragType type);
layout::SharedTile layoutOf(SlotType type);

/// Whether the lane's registers hold two neighbouring columns each: 16-bit
/// floats, as the instructions want them.
bool isPacked(FragType type);

/// A vector<2xT> of two values.
Value makePair(OpBuilder &builder, Location loc, Value low, Value high);
/// A value of a vector.
Value extract(OpBuilder &builder, Location loc, Value vector, int64_t number);

/// The value of the lane whose number differs in one bit, of weight `distance`.
/// All lanes of the warp take part.
Value exchange(OpBuilder &builder, Location loc, Value value, int64_t distance);

/// One value per element, in the order of attn/Layout/Fragments.h, from the
/// values a fragment was converted to; and back.
SmallVector<Value> unpack(OpBuilder &builder, Location loc, FragType type,
                          ValueRange values);
SmallVector<Value> pack(OpBuilder &builder, Location loc, FragType type,
                        ArrayRef<Value> elements);

/// Row and column of the tile that register 0 of a fragment holds in this lane.
Value laneRow(Integers &ints, const layout::Fragment &fragment);
Value laneColumn(Integers &ints, const layout::Fragment &fragment);

/// Which register of an operand that stretches to `layout` belongs to a
/// register of that; 0 for a scalar.
int64_t sliceRegister(const layout::Fragment &layout, Type type, int64_t reg);

/// Fragments become registers, slots and rings become addresses.
void populateFragmentTypeConversions(TypeConverter &converter);

void populateFragmentPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns,
                              const Positions &positions);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_FRAGMENTS_H
