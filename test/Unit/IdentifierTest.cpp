//===- IdentifierTest.cpp - names of functions in other languages ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/Identifier.h"

#include "gtest/gtest.h"

#include <map>

using namespace attn;

TEST(Identifier, KeepsWhatIsOne) {
  for (const char *name : {"f", "attend", "_f", "a_b", "a__x", "_x2", "_xg0_",
                           "A1", "f_relayout16"}) {
    EXPECT_EQ(cIdentifier(name), name);
    EXPECT_EQ(ptxIdentifier(name), name);
  }
}

TEST(Identifier, EscapesTheRest) {
  EXPECT_EQ(cIdentifier("a b"), "a_x20_b");
  EXPECT_EQ(cIdentifier("a.b$"), "a_x2e_b_x24_");
  EXPECT_EQ(cIdentifier("1f1"), "_x31_f1");
  EXPECT_EQ(cIdentifier("gr\xc3\xb6\xc3\x9f"
                        "e"),
            "gr_xc3__xb6__xc3__x9f_e");
  EXPECT_EQ(cIdentifier("_x20_"), "_x5f_x20_");
  EXPECT_EQ(cIdentifier("*/"), "_x2a__x2f_");
  EXPECT_EQ(ptxIdentifier("_"), "_x5f_");
  EXPECT_EQ(ptxIdentifier("WARP_SZ"), "_x57_ARP_SZ");
  EXPECT_EQ(ptxIdentifier("attn_shared_memory"), "_x61_ttn_shared_memory");
}

// All names of up to six of these bytes stay apart.
TEST(Identifier, IsInjective) {
  const std::string bytes = "_x2 ";
  std::map<std::string, std::string> seen;
  std::vector<std::string> names = {""};
  for (size_t next = 0; next < names.size(); ++next) {
    std::string name = names[next];
    auto [place, isNew] = seen.insert({ptxIdentifier(name), name});
    EXPECT_TRUE(isNew) << "'" << name << "' and '" << place->second << "'";
    if (name.size() < 6)
      for (char byte : bytes)
        names.push_back(name + byte);
  }
}
