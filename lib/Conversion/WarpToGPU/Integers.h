//===- Integers.h - integer arithmetic of addresses and lanes ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_INTEGERS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_INTEGERS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// Arithmetic on i32 with the trivial cases folded away, and the numbers of the
/// running thread.
class Integers {
public:
  Integers(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs);
  Value mul(Value lhs, int64_t rhs);
  /// Unsigned; `rhs` positive.
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitXor(Value lhs, Value rhs);
  Value bitXor(Value lhs, int64_t rhs);
  Value bitAnd(Value lhs, int64_t rhs);
  Value lessThan(Value lhs, int64_t rhs); // signed
  Value fromIndex(Value index);
  Value toIndex(Value value);
  /// The number as a pointer to shared memory.
  Value toPointer(Value address);

  Value thread();
  Value lane();
  /// Number of the warp in its role, or in the block if it has none.
  Value warp();
  /// The same for all lanes in the eyes of ptxas, too: number of its group of 4
  /// in the role, or in the block; number of the warp in the block.
  Value warpgroup();
  Value blockWarpgroup();
  Value blockWarp();

private:
  /// That of the role in which the next operation stands.
  int64_t getFirstWarp();

  OpBuilder &builder;
  Location loc;
};

/// On the branch of a role that computes, while the kernel is lowered: the
/// role's first warp.
inline constexpr StringLiteral kFirstWarpAttrName = "first_warp";
/// The branch of warps each of which is by itself.
inline constexpr StringLiteral kAloneAttrName = "alone";

/// Arithmetic on i64, for addresses in global memory.
class Addresses {
public:
  Addresses(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value mul(Value lhs, int64_t rhs);
  Value fromIndex(Value index);
  Value fromInt(Value i32);
  /// The number as a pointer to global memory.
  Value toPointer(Value address);

private:
  OpBuilder &builder;
  Location loc;
};

/// The pointer that is so many bytes further.
Value offsetBy(OpBuilder &builder, Location loc, Value pointer, int64_t bytes);

/// The same number (i32 or i64), of unknown origin and computed here: LLVM can
/// neither move what depends on it out of a loop nor turn it into a running
/// value. ptxas drops the move. In a causal kernel (bf16, blocks of 128x64,
/// head dimension 128), which needs all registers, this saves 150 bytes of
/// spills.
Value hideOrigin(OpBuilder &builder, Location loc, Value address);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_INTEGERS_H
