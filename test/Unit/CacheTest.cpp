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
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
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
    artifact.arguments.emplace_back().isOutput = true;
    KernelInfo &kernel = artifact.variants[0].kernels.emplace_back();
    kernel.entry = "attention";
    kernel.results = {0};
    kernel.threads = 1;
    for (LaunchExpr &blocks : kernel.grid)
      blocks.value = 1;
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
  EXPECT_EQ(status.message(),
            "cannot use the directory '" + root + "/file': Not a directory");
  // A directory where the entry should be is in the way.
  ASSERT_EQ(mkdir(Cache(root).fileName(key).c_str(), 0700), 0);
  EXPECT_EQ(Cache(root).store(key, artifact(1)).message(),
            "cannot write '" + Cache(root).fileName(key) + "': Is a directory");
  EXPECT_EQ(countFiles(root), 2u); // "file" and the directory
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

// None of these may be waited for, or read without end.
TEST_F(CacheTest, WhatIsNoFileIsNoEntry) {
  Cache cache(root);
  std::string name = cache.fileName(key);
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(key).has_value());
  ASSERT_TRUE(cache.store(key, artifact(100)).ok()); // in its place
  EXPECT_TRUE(cache.find(key).has_value());

  std::string moved = root + "/moved";
  ASSERT_EQ(std::rename(name.c_str(), moved.c_str()), 0);
  for (const std::string &target : {std::string("/dev/zero"), moved}) {
    ASSERT_EQ(symlink(target.c_str(), name.c_str()), 0);
    EXPECT_FALSE(cache.find(key).has_value()) << target;
    ASSERT_EQ(unlink(name.c_str()), 0);
  }

  std::ofstream(name) << "attn-cache 1\n";
  ASSERT_EQ(truncate(name.c_str(), off_t(100) << 30), 0); // a hole
  EXPECT_FALSE(cache.find(key).has_value());
}

// What others could have written is not run.
TEST_F(CacheTest, TrustsOnlyThisUser) {
  Cache cache(root + "/cache");
  ASSERT_TRUE(cache.store(key, artifact(100)).ok());
  std::string name = cache.fileName(key);
  for (mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(chmod(name.c_str(), mode), 0);
    EXPECT_FALSE(cache.find(key).has_value()) << mode;
  }
  ASSERT_EQ(chmod(name.c_str(), 0644), 0);
  EXPECT_TRUE(cache.find(key).has_value());

  for (mode_t mode : {0770, 0777, 01777}) {
    ASSERT_EQ(chmod(cache.directory().c_str(), mode), 0);
    EXPECT_FALSE(cache.find(key).has_value()) << mode;
    EXPECT_EQ(cache.store(key, artifact(1)).message(),
              "cannot use the directory '" + cache.directory() +
                  "': others may write to it (wanted mode 0700)");
  }
  ASSERT_EQ(chmod(cache.directory().c_str(), 0755), 0);
  EXPECT_TRUE(cache.find(key).has_value());

  // Only root can give files away.
  if (geteuid() != 0)
    return;
  ASSERT_EQ(chown(name.c_str(), 1, 1), 0);
  EXPECT_FALSE(cache.find(key).has_value());
  ASSERT_EQ(chown(name.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(cache.directory().c_str(), 1, 1), 0);
  EXPECT_FALSE(cache.find(key).has_value());
  EXPECT_EQ(cache.store(key, artifact(1)).message(),
            "cannot use the directory '" + cache.directory() +
                "': it belongs to user 1, this process to user 0");
}

TEST_F(CacheTest, NoWiderThanTheUserAndTheUmask) {
  auto mode = [](const std::string &name) {
    struct stat status;
    EXPECT_EQ(stat(name.c_str(), &status), 0);
    return status.st_mode & 07777;
  };
  mode_t before = umask(0);
  Cache cache(root + "/deep/down");
  EXPECT_TRUE(cache.store(key, artifact(100)).ok());
  EXPECT_EQ(mode(root + "/deep"), 0700u);
  EXPECT_EQ(mode(root + "/deep/down"), 0700u);
  EXPECT_EQ(mode(cache.fileName(key)), 0600u);
  umask(0200);
  EXPECT_TRUE(cache.store(key, artifact(100)).ok());
  EXPECT_EQ(mode(cache.fileName(key)), 0400u);
  umask(before);
}

TEST_F(CacheTest, SweepsWhatKilledWritersLeft) {
  Cache cache(root);
  struct timespec old[2] = {};
  clock_gettime(CLOCK_REALTIME, &old[0]);
  old[0].tv_sec -= 7200;
  old[1] = old[0];
  for (const char *name : {"new-AbCdEf", "new-17-0", "new-now", "notes"}) {
    std::ofstream(root + "/" + name) << "half of an artifact";
    if (std::string_view(name) != "new-now")
      ASSERT_EQ(utimensat(AT_FDCWD, (root + "/" + name).c_str(), old, 0), 0);
  }
  ASSERT_TRUE(cache.store(key, artifact(100)).ok());
  EXPECT_EQ(access((root + "/new-AbCdEf").c_str(), F_OK), -1);
  EXPECT_EQ(access((root + "/new-17-0").c_str(), F_OK), -1);
  EXPECT_EQ(access((root + "/new-now").c_str(), F_OK), 0); // may be written to
  EXPECT_EQ(access((root + "/notes").c_str(), F_OK), 0);
  EXPECT_EQ(countFiles(root), 3u);
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
