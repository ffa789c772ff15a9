//===- Manifest.h - an artifact without its images, as JSON -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_MANIFEST_H
#define ATTN_LIB_SUPPORT_MANIFEST_H

#include "attn/Support/Artifact.h"

namespace attn {

/// How a manifest calls launch expressions of two operands.
struct BinaryExprName {
  LaunchExpr::Kind kind;
  std::string_view name;
};
inline constexpr BinaryExprName kBinaryExprs[] = {
    {LaunchExpr::Kind::Add, "add"},
    {LaunchExpr::Kind::Sub, "sub"},
    {LaunchExpr::Kind::Mul, "mul"},
    {LaunchExpr::Kind::FloorDiv, "floordiv"},
    {LaunchExpr::Kind::CeilDiv, "ceildiv"},
    {LaunchExpr::Kind::Mod, "mod"},
    {LaunchExpr::Kind::Min, "min"},
    {LaunchExpr::Kind::Max, "max"}};

/// The sizes of the images of a function.
struct ImageBytes {
  uint64_t ptx = 0, cubin = 0;
};

/// Fills `artifact`, but for the images of its functions, whose sizes are given
/// back. On failure `error` says what is wrong.
bool readManifest(std::string_view text, Artifact &artifact,
                  std::vector<ImageBytes> &images, std::string &error);

/// What no compiler writes and no launch could mean: threads below 1, no
/// kernel, a view that counts elements twice; empty where there is nothing of
/// the kind. Companions are functions of their own.
std::string findManifestFault(const Artifact &artifact);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_MANIFEST_H
