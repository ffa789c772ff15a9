//===- SessionTest.cpp - what a session knows, and its cache depends on ---===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Session.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;

static const char *program = R"mlir(
!t = tensor<?x?x?x64xbf16>
func.func @plain(%q: !t, %k: !t, %v: !t) -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<?x?x?xf32>)
  return %o, %lse : !t, tensor<?x?x?xf32>
}
)mlir";

namespace {
struct SessionTest : testing::Test {
  SessionTest() {
    std::string name = testing::TempDir() + "attn-session-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root = name;
    options.cubin = CompileOptions::Cubin::No;
  }
  ~SessionTest() override {
    EXPECT_EQ(std::system(("rm -rf '" + root + "'").c_str()), 0);
  }

  // An assembler whose cubin is that text.
  std::string writePtxas(const std::string &directory, const char *text) {
    EXPECT_EQ(std::system(("mkdir -p '" + root + directory + "'").c_str()), 0);
    std::string path = root + directory + "/ptxas";
    std::ofstream(path) << "#!/bin/sh\nwhile [ $# -gt 1 ]; do\n"
                           "[ \"$1\" = -o ] && echo "
                        << text << " >\"$2\"\nshift\ndone\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  runtime::Result<Artifact> compile(llvm::StringRef text = program) {
    runtime::Cache cache(root + "/cache");
    Session session;
    auto artifact = session.compile(text, options, &cache);
    isFromCache = session.isFromCache();
    return artifact;
  }

  std::string root;
  CompileOptions options;
  bool isFromCache = false;
};
} // namespace

// The first test: others compile, and that registers back ends too. Threads
// that compile for different targets must find them all; LLVM's list has no
// lock.
TEST_F(SessionTest, ASessionRegistersEveryBackEnd) {
  Session session;
  for (const char *name : {"nvptx64-nvidia-cuda", LLVM_HOST_TRIPLE}) {
    std::string error;
    EXPECT_NE(llvm::TargetRegistry::lookupTarget(llvm::Triple(name), error),
              nullptr)
        << error;
  }
}

TEST_F(SessionTest, MissingResultsAreAnErrorWithAWarmCacheToo) {
  options.results = root + "/results.json";
  std::ofstream(options.results) << R"({"attn_results": 1, "results": []})";
  ASSERT_TRUE(compile().ok());
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  // The same kernel without results is there as well.
  options.results = "";
  ASSERT_TRUE(compile().ok());
  options.results = root + "/missing.json";
  EXPECT_NE(compile().message().find("cannot read results '" + root +
                                     "/missing.json': No such file"),
            std::string::npos)
      << compile().message();
}

TEST_F(SessionTest, AProgramOfTheWarpRoomHasNoPlanAndIsFound) {
  const char *text = R"mlir(
func.func @f(%x: f32, %out: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @k blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) {
    %f = warp.splat %x : !warp.frag<64x64xf32, acc, 4>
    warp.store %f, %out[%c0, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}
)mlir";
  runtime::Result<Artifact> artifact = compile(text);
  ASSERT_TRUE(artifact.ok()) << artifact.message();
  EXPECT_FALSE(isFromCache);
  ASSERT_TRUE(compile(text).ok());
  EXPECT_TRUE(isFromCache);
}

TEST_F(SessionTest, TheAssemblerIsPartOfTheKeyByItsBytes) {
  options.cubin = CompileOptions::Cubin::Required;
  options.ptxas = writePtxas("/a", "first");
  runtime::Result<Artifact> artifact = compile();
  ASSERT_TRUE(artifact.ok()) << artifact.message();
  EXPECT_FALSE(isFromCache);
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  // The same one somewhere else, and as the root of a toolkit.
  options.ptxas = writePtxas("/b", "first");
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  writePtxas("/c/bin", "first");
  options.ptxas = root + "/c";
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  // Another one in the same place.
  options.ptxas = writePtxas("/a", "second");
  artifact = compile();
  ASSERT_TRUE(artifact.ok()) << artifact.message();
  EXPECT_FALSE(isFromCache);
  EXPECT_EQ(std::string(artifact->cubin.begin(), artifact->cubin.end()),
            "second\n");
}

// However it came to be: asked for in words, by lists of passes, by results.
TEST_F(SessionTest, ThePlanIsTheKeyWithTheOperation) {
  runtime::Result<Artifact> pick = compile();
  ASSERT_TRUE(pick.ok()) << pick.message();
  options.plan = pick->variants.front().plan;
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  // The target leaves this one out by default.
  options.passes.add("tile-overlap-products", false);
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);

  options.plan = "";
  options.passes.add("tile-lazy-max", false);
  runtime::Result<Artifact> without = compile();
  ASSERT_TRUE(without.ok()) << without.message();
  EXPECT_FALSE(isFromCache);
  options.passes = PassRequest();
  options.plan = without->variants.front().plan;
  EXPECT_NE(options.plan.find("without = [\"tile-lazy-max\"]"),
            std::string::npos)
      << options.plan;
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  // A list edits a plan that is given, too.
  options.passes.add("tile-lazy-max", true);
  ASSERT_TRUE(compile().ok());
  EXPECT_TRUE(isFromCache);
  EXPECT_EQ(compile()->variants.front().plan, pick->variants.front().plan);
}

// Every text costs the time to print it: rooms before the first one that is
// wanted have none.
TEST_F(SessionTest, RoomsAreShownFromTheFirstThatIsWanted) {
  std::vector<Room> shown;
  options.last = Room::NVVM;
  options.onRoom = [&](Room room, llvm::StringRef text) {
    EXPECT_FALSE(text.empty());
    shown.push_back(room);
    return llvm::success();
  };
  ASSERT_TRUE(compile().ok());
  EXPECT_EQ(shown, (std::vector<Room>{Room::Attn, Room::Tile, Room::Warp,
                                      Room::GPU, Room::NVVM}));
  shown.clear();
  options.firstShown = Room::GPU;
  ASSERT_TRUE(compile().ok());
  EXPECT_EQ(shown, (std::vector<Room>{Room::GPU, Room::NVVM}));
}
