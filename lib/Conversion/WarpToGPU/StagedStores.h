//===- StagedStores.h - fragments to global memory via slots ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_STAGEDSTORES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_STAGEDSTORES_H

#include "Roles.h"

#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

void populateStagedStorePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 const RolePlan &roles);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_STAGEDSTORES_H
