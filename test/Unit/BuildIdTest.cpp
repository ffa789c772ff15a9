//===- x - BuildIdTest.cpp - the identity of this build -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/BuildId.h"

#include "gtest/gtest.h"

using namespace attn;

TEST(BuildId, IsStableHex) {
  EXPECT_EQ(buildId(), buildId());
  EXPECT_EQ(buildId().find_first_not_of("0123456789abcdef"), std::string::npos);
}
