//===- TestProcessor.h - the processor that a suite asks for -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_TESTPROCESSOR_H
#define ATTN_TEST_UNIT_TESTPROCESSOR_H

#include <cstdlib>
#include <string>

/// What lit's `--param cpu=` says, in the words of attn-run's --cpu.
inline std::string testProcessor() {
  const char *name = std::getenv("ATTN_TEST_CPU");
  return name ? name : "native";
}

#endif // ATTN_TEST_UNIT_TESTPROCESSOR_H
