//===- WarpOps.td - operations of the warp dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_WARPOPS_TD
#define ATTN_DIALECT_WARP_IR_WARPOPS_TD

include "attn/Dialect/Warp/IR/ComputeOps.td"
include "attn/Dialect/Warp/IR/CopyOps.td"
include "attn/Dialect/Warp/IR/FragmentOps.td"
include "attn/Dialect/Warp/IR/KernelOps.td"
include "attn/Dialect/Warp/IR/MailboxOps.td"

#endif // ATTN_DIALECT_WARP_IR_WARPOPS_TD
