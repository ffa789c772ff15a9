//===- Dropout.cpp - which weights dropout keeps -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// section 4.3): ten rounds
//
//   c0, c1, c2, c3 = hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0
//   c0)
//
// between which the key grows by a Weyl sequence. The first two words of the
// counter are the same for a whole block of rows and keys, so that the first
// two rounds cost little more than one each per row and per key.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Dropout.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr uint32_t multipliers[] = {0xD2511F53, 0xCD9E8D57};
static constexpr uint32_t keySteps[] = {0x9E3779B9, 0xBB67AE85};
static constexpr int numRounds = 10;

namespace {
/// 32-bit words without sign.
struct Words {
  OpBuilder &b;
  Location loc;

  Value constant(uint32_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value add(Value lhs, uint32_t rhs) {
    return rhs == 0 ? lhs : arith::AddIOp::create(b, loc, lhs, constant(rhs));
  }
  Value bitXor(Value lhs, Value rhs) {
    return arith::XOrIOp::create(b, loc, lhs, rhs);
  }
  /// The low and the high word of value * factor.
  std::array<Value, 2> multiply(Value value, uint32_t factor) {
    Type wide = b.getI64Type();
    Value product = arith::MulIOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, wide, value),
        arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(factor)));
    Value bits = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(32));
    Value high = arith::ShRUIOp::create(b, loc, product, bits);
    return {arith::TruncIOp::create(b, loc, b.getI32Type(), product),
            arith::TruncIOp::create(b, loc, b.getI32Type(), high)};
  }
};
} // namespace

/// The first word of the block of random numbers for a counter and a key.
static Value buildPhilox(Words words, std::array<Value, 4> counter,
                         std::array<Value, 2> key) {
  for (uint32_t round = 0; round < numRounds; ++round) {
    auto [low0, high0] = words.multiply(counter[0], multipliers[0]);
    auto [low1, high1] = words.multiply(counter[2], multipliers[1]);
    Value key0 = words.add(key[0], round * keySteps[0]);
    Value key1 = words.add(key[1], round * keySteps[1]);
    // What depends on less comes first.
    counter = {words.bitXor(words.bitXor(counter[1], key0), high1), low1,
               words.bitXor(words.bitXor(counter[3], key1), high0), low0};
  }
  return counter[0];
}

void attn::buildKeepRegion(OpBuilder &b, Location loc, Region &region,
                           double probability) {
  OpBuilder::InsertionGuard guard(b);
  Block &block = region.emplaceBlock();
  for (unsigned i = 0; i < 6; ++i)
    block.addArgument(b.getI32Type(), loc);
  b.setInsertionPointToStart(&block);
  constexpr double range = 4294967296.0;
  double threshold = std::round(probability * range);
  Value keep;
  if (threshold == 0 || threshold == range) {
    keep = arith::ConstantOp::create(b, loc, b.getBoolAttr(threshold == 0));
  } else {
    auto at = [&](unsigned i) -> Value { return block.getArgument(i); };
    Words words{b, loc};
    Value word =
        buildPhilox(words, {at(0), at(1), at(2), at(3)}, {at(4), at(5)});
    keep =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, word,
                              words.constant(static_cast<uint32_t>(threshold)));
  }
  YieldOp::create(b, loc, keep);
  // The last rounds compute words that nobody reads.
  SmallVector<Operation *> ops =
      llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}
