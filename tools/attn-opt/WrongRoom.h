//===- WrongRoom.h - passes that have nothing to do ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that finds nothing of its room in a program leaves it as it is, and
// succeeds. Who runs passes by hand should be told: the first of them gets a
// warning; those after it find nothing for the same reason.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTN_OPT_WRONGROOM_H
#define ATTN_TOOLS_ATTN_OPT_WRONGROOM_H

#include "mlir/Pass/PassInstrumentation.h"
#include <memory>

namespace attn {

/// Warns of the first pass of this project that has nothing to work on.
std::unique_ptr<mlir::PassInstrumentation> createWrongRoomWarning();

} // namespace attn

#endif // ATTN_TOOLS_ATTN_OPT_WRONGROOM_H
