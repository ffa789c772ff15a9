//===- BitRows.cpp - rows of truth values as words of a lane ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four lanes share a row of the accumulator: lane q has columns 2 q and 2 q + 1
// of each eight. Byte by byte a warp would ask for eight rows of memory with
// each load, and use eight bytes of each. Instead lane q reads the q-th quarter
// of the row, 16 bytes at a time, packs it into a bit for each column, and the
// four tell each other their quarters. Of one, (x >> 2 q) & 0x03030303 are the
// lane's columns, which a product moves together.
//
//===----------------------------------------------------------------------===//

#include "BitRows.h"

#include "Fragments.h"
#include "Integers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

bool BitRow::fits(int64_t columns) {
  // Quarters are of whole eights, and of no more columns than a word has bits.
  return columns > 0 && columns % 32 == 0 && columns <= 128;
}

int64_t BitRow::alignment() const {
  return std::min<int64_t>(16, bytes() & -bytes());
}

/// How many columns the lane's first one is behind the row's.
static Value ownColumn(Integers &ints) {
  return ints.mul(ints.bitAnd(ints.lane(), 3), 2);
}

Value BitRow::isAligned(OpBuilder &builder, Location loc, Value lane) const {
  Integers ints(builder, loc);
  Value low = arith::TruncIOp::create(builder, loc, builder.getI32Type(), lane);
  Value first = arith::SubIOp::create(builder, loc, low, ownColumn(ints));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                               ints.bitAnd(first, alignment() - 1),
                               ints.constant(0));
}

/// The four bits behind those of `word`, of four bytes each of which is odd for
/// a one: bytes 0 to 3 are moved to bits 28 to 31, and from there.
static Value packBytes(OpBuilder &builder, Location loc, Value word,
                       Value bytes) {
  Integers ints(builder, loc);
  Value top = ints.mul(ints.bitAnd(bytes, 0x01010101), 0x10204080);
  return LLVM::FshlOp::create(builder, loc, word, top, ints.constant(4));
}

Value BitRow::load(OpBuilder &builder, Location loc, Value lane) const {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  Value column = ownColumn(ints);
  // From the lane's first column to its quarter.
  Value shift = ints.mul(ints.bitAnd(ints.lane(), 3), bytes() - 2);
  Value pointer =
      addresses.toPointer(addresses.add(lane, addresses.fromInt(shift)));
  SmallVector<Value> loaded;
  int64_t step = alignment();
  auto type = VectorType::get(step / 4, builder.getI32Type());
  for (int64_t at = 0; at < bytes(); at += step) {
    Value part = LLVM::LoadOp::create(
        builder, loc, type, offsetBy(builder, loc, pointer, at), step);
    for (int64_t i = 0; i < step / 4; ++i)
      loaded.push_back(extract(builder, loc, part, i));
  }
  Value own = ints.constant(0);
  for (Value bytes : llvm::reverse(loaded))
    own = packBytes(builder, loc, own, bytes);

  Value word;
  for (int64_t quarter = 4; quarter-- > 0;) {
    // Of the group of four lanes the one with this number.
    Value bits = NVVM::ShflOp::create(
        builder, loc, builder.getI32Type(), ints.constant(-1), own,
        ints.constant(quarter), ints.constant(0x1c1f), NVVM::ShflKind::idx,
        UnitAttr());
    bits = arith::ShRUIOp::create(builder, loc, bits, column);
    // Two bits of each byte, to bits 24 to 31.
    bits = ints.mul(ints.bitAnd(bits, 0x03030303), 0x01041040);
    bits = arith::ShRUIOp::create(builder, loc, bits, ints.constant(24));
    if (!word) {
      word = bits;
      continue;
    }
    word =
        arith::ShLIOp::create(builder, loc, word, ints.constant(bytes() / 4));
    word = arith::OrIOp::create(builder, loc, word, bits);
  }
  return word;
}
