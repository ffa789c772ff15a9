//===- OutputFileTest.cpp - files that are there whole or not at all ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/OutputFile.h"

#include "attn/Execute/Npy.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;

namespace {
struct OutputFileTest : testing::Test {
  OutputFileTest() {
    std::string name = testing::TempDir() + "attn-output-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root = name + "/";
  }
  ~OutputFileTest() override { std::filesystem::remove_all(root); }

  // The message, or "".
  static std::string write(const std::string &path, llvm::StringRef text) {
    return llvm::toString(writeOutputFile(
        path, [&](llvm::raw_ostream &stream) { stream << text; }));
  }
  static std::string read(const std::string &path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t countFiles() const {
    auto files = std::filesystem::directory_iterator(root);
    return std::distance(begin(files), end(files));
  }

  std::string root;
};

/// A disk that is full after so many bytes of a file.
struct FullDisk {
  explicit FullDisk(rlim_t bytes) {
    handler = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = {bytes, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FullDisk() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
  }

  struct rlimit before = {};
  void (*handler)(int) = nullptr;
};
} // namespace

TEST_F(OutputFileTest, AppearsWholeOrStaysAsItWas) {
  std::string path = root + "f", large(1 << 20, 'x');
  EXPECT_EQ(write(path, "old"), "");
  {
    FullDisk disk(4096);
    EXPECT_EQ(write(path, large),
              "cannot write '" + path + "': File too large");
    EXPECT_EQ(write(root + "new", large),
              "cannot write '" + root + "new': File too large");
  }
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(countFiles(), 1u);
  EXPECT_EQ(write(path, large), "");
  EXPECT_EQ(read(path), large);
}

TEST_F(OutputFileTest, WritesThroughLinks) {
  std::filesystem::create_directory(root + "there");
  std::filesystem::create_symlink("there/f", root + "link");
  std::filesystem::create_symlink(root + "link", root + "far");
  for (const char *text : {"new", "newer"}) { // first it points nowhere
    EXPECT_EQ(write(root + "far", text), "");
    EXPECT_TRUE(std::filesystem::is_symlink(root + "far"));
    EXPECT_TRUE(std::filesystem::is_symlink(root + "link"));
    EXPECT_EQ(read(root + "there/f"), text);
  }
  std::filesystem::create_symlink("round", root + "round");
  EXPECT_EQ(write(root + "round", "text"),
            "cannot write '" + root +
                "round': Too many levels of symbolic links");
  EXPECT_TRUE(std::filesystem::is_symlink(root + "round"));
}

TEST_F(OutputFileTest, ModesStay) {
  std::string path = root + "f";
  EXPECT_EQ(write(path, "old"), "");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(write(path, "new"), "");
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(OutputFileTest, Devices) {
  EXPECT_EQ(write("/dev/null", "text"), "");
  EXPECT_EQ(write("/dev/full", "text"),
            "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(write(root, "text"), "cannot write '" + root + "': Is a directory");
  EXPECT_EQ(write(root + "no/f", "text"),
            "cannot write '" + root + "no/f': No such file or directory");
}

TEST_F(OutputFileTest, Npy) {
  HostTensor tensor(ElementKind::F32, {1000, 1000});
  EXPECT_TRUE(writeNpy(root + "f.npy", tensor).ok());
  EXPECT_EQ(read(root + "f.npy").size(), 4000128u);
  EXPECT_EQ(writeNpy("/dev/full", tensor).message(),
            "cannot write '/dev/full': No space left on device");
  FullDisk disk(4096);
  EXPECT_EQ(writeNpy(root + "g.npy", tensor).message(),
            "cannot write '" + root + "g.npy': File too large");
  EXPECT_EQ(countFiles(), 1u);
}
