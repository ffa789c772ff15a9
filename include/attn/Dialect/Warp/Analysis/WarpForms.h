//===- WarpForms.h - the forms of warp kernels ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_ANALYSIS_WARPFORMS_H
#define ATTN_DIALECT_WARP_ANALYSIS_WARPFORMS_H

#include "attn/Support/LLVM.h"

namespace attn::warp {

/// In the order of the passes. Each allows what those before it allow.
enum class WarpForm {
  Sync,     // copies and products end where they stand
  Resident, // blocks may stay and share the tiles out
  Buffered, // copies may go through rings
  Roles,    // and be started by a role of their own
  Async,    // products of slots with panels are in flight
  Staged,   // stores may go through shared memory
  Deepened, // a ring that each tile fills once may have several slots
  Placed,   // slots and rings have their places
};

/// Checks that the program under `root` has the form, or one before it, for the
/// pass of that name.
LogicalResult requireForm(Operation *root, WarpForm form, StringRef pass);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_ANALYSIS_WARPFORMS_H
