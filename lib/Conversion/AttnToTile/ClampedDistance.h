//===- ClampedDistance.h - distances between limits -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_CLAMPEDDISTANCE_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_CLAMPEDDISTANCE_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"

namespace attn {

/// min(max(sign * (query - key) + offset, least), most), where there are such
/// limits: the index of a table of relative positions (Shaw et al., 2018).
struct ClampedDistance {
  int64_t sign = 1, offset = 0;
  std::optional<int64_t> least, most;
};

/// What `value` is, computed of these positions and of constants.
std::optional<ClampedDistance> matchClampedDistance(Value value, Value query,
                                                    Value key);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_CLAMPEDDISTANCE_H
