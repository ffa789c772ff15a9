//===- x - BuildId.h - the identity of this build -----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_BUILDID_H
#define ATTN_SUPPORT_BUILDID_H

#include <string>

namespace attn {

/// The linker's build id, in hex, of the program or library that this function
/// was linked into: it differs whenever the code does, where a version number
/// may not. Empty if the linker wrote none.
std::string buildId();

} // namespace attn

#endif // ATTN_SUPPORT_BUILDID_H
