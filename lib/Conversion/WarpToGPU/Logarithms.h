//===- Logarithms.h - logarithms to the last bit -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_LOGARITHMS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_LOGARITHMS_H

#include "Floats.h"

namespace attn::warp {

/// The logarithm of x of base e, or 2, within a unit in the last place, as
/// processors have it; that of what is not positive and finite, too.
mlir::Value computeLog(Floats &f, mlir::Value x);
mlir::Value computeLog2(Floats &f, mlir::Value x);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_LOGARITHMS_H
