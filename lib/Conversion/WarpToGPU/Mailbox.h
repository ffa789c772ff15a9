//===- Mailbox.h - tiles that are handed out -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_MAILBOX_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_MAILBOX_H

#include "Roles.h"

#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

/// warp.draw, warp.send and warp.receive.
void populateMailboxPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns,
                             const RolePlan &roles);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_MAILBOX_H
