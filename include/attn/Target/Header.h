//===- Header.h - an artifact as a C header -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_HEADER_H
#define ATTN_TARGET_HEADER_H

#include "attn/Support/Artifact.h"

namespace attn {

/// A header for programs in C or C++ that link libattn or libattn-runtime: the
/// bytes of the artifact, `NAME_load`, and `NAME_launch` with one parameter for
/// each argument of the source function and each of its results. NAME is that
/// of the function and of the target, `causal_sm_90a`. Companions have a load
/// and a launch of their own.
std::string emitHeader(const Artifact &artifact);

} // namespace attn

#endif // ATTN_TARGET_HEADER_H
