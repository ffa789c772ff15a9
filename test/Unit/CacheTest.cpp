//===- CacheTest.cpp - the artifact cache --------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Cache.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace attn;
using namespace attn::runtime;

namespace {
struct CacheTest : testing::Test {
  CacheTest() {
    std::string name = testing::TempDir() + "attn-cache-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  ~CacheTest() override {
    EXPECT_EQ(std::system(("rm -rf '" + root + "'").c_str()), 0);
  }

  static Artifact artifact(size_t bytes) {
    Artifact artifact;
    artifact.name = "attention";
    artifact.target = "sm_80";
    artifact.ptx = std::string(bytes, 'x');
    return artifact;
  }

  static size_t countFiles(const std::string &path) {
    size_t count = 0;
    DIR *directory = opendir(path.c_str());
    while (dirent *entry = directory ? readdir(directory) : nullptr)
      count += entry->d_name[0] != '.';
    if (directory)
      closedir(directory);
    return count;
  }

  std::string root;
  CacheKey key = {"func.func @a", "", "sm_80", "attn 0.1.0", ""};
};
} // namespace

TEST_F(CacheTest, FindsWhatWasStored) {
  Cache cache(root + "/deep/down");
  EXPECT_FALSE(cache.find(key).has_value());
  Status status = cache.store(key, artifact(100));
  ASSERT_TRUE(status.ok()) << status.message();
  std::optional<Artifact> found = cache.find(key);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(*found == artifact(100));
  ASSERT_TRUE(cache.store(key, artifact(200)).ok());
  EXPECT_TRUE(*cache.find(key) == artifact(200));
  EXPECT_EQ(countFiles(cache.directory()), 1u);
}

TEST_F(CacheTest, EveryFieldIsPartOfTheKey) {
  Cache cache(root);
  ASSERT_TRUE(cache.store(key, artifact(100)).ok());
  for (auto field : {&CacheKey::op, &CacheKey::plan, &CacheKey::target,
                     &CacheKey::compiler, &CacheKey::options}) {
    CacheKey other = key;
    other.*field += "b";
    EXPECT_FALSE(cache.find(other).has_value());
  }
  CacheKey moved = {"func.func ", "@a", "sm_80", "attn 0.1.0", ""};
  EXPECT_FALSE(cache.find(moved).has_value());
}

TEST_F(CacheTest, ACollisionOfHashesIsAMiss) {
  Cache cache(root);
  CacheKey other = key;
  other.op = "func.func @b";
  ASSERT_TRUE(cache.store(other, artifact(100)).ok());
  ASSERT_EQ(
      std::rename(cache.fileName(other).c_str(), cache.fileName(key).c_str()),
      0);
  EXPECT_FALSE(cache.find(key).has_value());
}

TEST_F(CacheTest, DamagedEntriesAreIgnoredAndRewritten) {
  Cache cache(root);
  ASSERT_TRUE(cache.store(key, artifact(1000)).ok());
  std::ifstream in(cache.fileName(key), std::ios::binary);
  std::stringstream whole;
  whole << in.rdbuf();
  std::string bytes = whole.str();
  for (size_t size :
       {size_t(0), size_t(20), bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(cache.fileName(key), std::ios::binary)
        << bytes.substr(0, size);
    EXPECT_FALSE(cache.find(key).has_value()) << size;
  }
  std::string flipped = bytes;
  flipped[bytes.size() - 100] ^= 1;
  std::ofstream(cache.fileName(key), std::ios::binary) << flipped;
  EXPECT_FALSE(cache.find(key).has_value());
  ASSERT_TRUE(cache.store(key, artifact(1000)).ok());
  EXPECT_TRUE(cache.find(key).has_value());
}

TEST_F(CacheTest, SaysWhyItCannotStore) {
  std::ofstream(root + "/file") << "not a directory";
  Status status = Cache(root + "/file/cache").store(key, artifact(1));
  EXPECT_EQ(status.message(), "cannot make the directory '" + root +
                                  "/file/cache': Not a directory");
  status = Cache(root + "/file").store(key, artifact(1));
  EXPECT_EQ(status.message(), "cannot write into the directory '" + root +
                                  "/file': Not a directory");
}

// Two processes write one key over and over while this one reads: what is
// found is always one of the two artifacts, whole.
TEST_F(CacheTest, TwoProcessesMayWriteOneKey) {
  constexpr int kRounds = 300;
  Cache cache(root);
  ASSERT_TRUE(cache.store(key, artifact(100000)).ok());
  pid_t writers[2];
  for (int i = 0; i < 2; ++i) {
    writers[i] = fork();
    ASSERT_GE(writers[i], 0);
    if (writers[i] != 0)
      continue;
    bool ok = true;
    for (int round = 0; round < kRounds; ++round)
      ok &= cache.store(key, artifact(100000 * (i + 1))).ok();
    _exit(ok ? 0 : 1);
  }
  for (int round = 0; round < kRounds; ++round) {
    std::optional<Artifact> found = cache.find(key);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->ptx.size() % 100000, 0u);
  }
  for (pid_t writer : writers) {
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(countFiles(root), 1u);
}

TEST_F(CacheTest, UserDirectoryFollowsXdg) {
  setenv("XDG_CACHE_HOME", "/x/cache", 1);
  EXPECT_EQ(Cache::user()->directory(), "/x/cache/attn");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(Cache::user()->directory(), "/home/me/.cache/attn");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(Cache::user().message(),
            "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
}
