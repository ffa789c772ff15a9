//===- Protocol.h - parts of the protocol's verifier ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_IR_PROTOCOL_H
#define ATTN_LIB_DIALECT_WARP_IR_PROTOCOL_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// W2: the release of an awaited slot; null (with a diagnostic) unless there is
/// exactly one and it stands in the await's block.
ReleaseOp getOnlyRelease(AwaitOp await);

/// W1: the wait of a pending value; null (with a diagnostic) unless there is
/// exactly one and it stands in the issue's block.
WaitOp getOnlyWait(MmaAsyncOp issue);

/// W1 for all pending values of a kernel.
LogicalResult verifyPending(KernelOp kernel);

/// Which roles there are, what stands in them (W5) and their registers (W4).
LogicalResult verifyRoles(KernelOp kernel);

/// W3: what warps do together does not stand where they may part.
LogicalResult verifyVotes(KernelOp kernel);

/// W2: stores via slots overwrite only what nobody reads.
LogicalResult verifyStagedStores(KernelOp kernel);

/// W3: a test speaks of the item that is awaited next.
LogicalResult verifyTests(KernelOp kernel);

/// W3 for a kernel with roles.
LogicalResult verifyRoleRings(KernelOp kernel);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_IR_PROTOCOL_H
