//===- HostTensorTest.cpp - strided tensors and their files ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/HostTensor.h"

#include "attn/Execute/Npy.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace attn;

static const ElementKind everyKind[] = {
    ElementKind::F16, ElementKind::BF16, ElementKind::F32,
    ElementKind::F64, ElementKind::I1,   ElementKind::I8,
    ElementKind::I16, ElementKind::I32,  ElementKind::I64};

TEST(HostTensor, ElementsSurviveEncoding) {
  for (ElementKind kind : everyKind)
    for (double value : {0.0, 1.0})
      EXPECT_EQ(decodeElement(kind, encodeElement(kind, value)), value);
  for (ElementKind kind :
       {ElementKind::I8, ElementKind::I16, ElementKind::I32, ElementKind::I64})
    EXPECT_EQ(decodeElement(kind, encodeElement(kind, -7)), -7);
  // Every f16 is a double.
  for (uint64_t bits = 0; bits < 1 << 16; ++bits) {
    double value = decodeElement(ElementKind::F16, bits);
    if (std::isnan(value))
      EXPECT_EQ(bits & 0x7c00, 0x7c00u);
    else
      EXPECT_EQ(encodeElement(ElementKind::F16, value), bits);
  }
  EXPECT_EQ(encodeElement(ElementKind::BF16, 1.0 + 0x1p-9), 0x3f80u);
  EXPECT_EQ(decodeElement(ElementKind::BF16, 0xff80), -INFINITY);
}

TEST(HostTensor, LayoutDoesNotChangeTheElements) {
  std::vector<double> values(2 * 3 * 4 * 5);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i);
  HostTensor plain(ElementKind::F32, {2, 3, 4, 5});
  HostTensor other(ElementKind::F32, {2, 3, 4, 5}, {0, 2, 1, 3}, 3);
  plain.assign(values);
  other.assign(values);
  EXPECT_EQ(plain.strides(), (std::vector<int64_t>{60, 20, 5, 1}));
  EXPECT_EQ(other.strides(), (std::vector<int64_t>{96, 8, 24, 1}));
  EXPECT_EQ(plain.values(), values);
  EXPECT_EQ(other.values(), values);
  EXPECT_EQ(plain.bits(), other.bits());
  EXPECT_TRUE(other.isPaddingIntact());
  static_cast<float *>(other.data())[5] = 0; // after the first row
  EXPECT_FALSE(other.isPaddingIntact());
}

TEST(HostTensor, EmptyTensors) {
  HostTensor empty(ElementKind::BF16, {2, 0, 4}, {}, 2);
  EXPECT_EQ(empty.numElements(), 0);
  EXPECT_TRUE(empty.values().empty());
  EXPECT_TRUE(empty.isPaddingIntact());
  HostTensor scalar(ElementKind::F64, {});
  scalar.assign({2.5});
  EXPECT_EQ(scalar.values(), std::vector<double>{2.5});
}

namespace {
/// A file that is gone with the test.
class NpyTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attn", "npy", path));
  }
  void TearDown() override { llvm::sys::fs::remove(path); }
  std::string file() const { return std::string(path); }
  void write(const std::string &bytes) {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    stream << bytes;
  }
  std::string errorOf(const std::string &bytes) {
    write(bytes);
    auto read = readNpy(file(), ElementKind::F32);
    return read.ok() ? "" : read.message();
  }
  llvm::SmallString<128> path;
};
} // namespace

TEST_F(NpyTest, RoundTrip) {
  for (ElementKind kind : everyKind) {
    HostTensor tensor(kind, {2, 3}, {1, 0}, 1);
    tensor.assign({0, 1, 1, 0, 1, 0});
    ASSERT_TRUE(writeNpy(file(), tensor).ok());
    auto read = readNpy(file(), kind);
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(read->sizes(), tensor.sizes());
    EXPECT_EQ(read->bits(), tensor.bits());
  }
}

static std::string npy(const std::string &header, const std::string &data) {
  return std::string("\x93NUMPY\x01", 7) + '\0' +
         static_cast<char>(header.size()) + '\0' + header + data;
}

TEST_F(NpyTest, WrongFiles) {
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  std::string good =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  EXPECT_EQ(errorOf(npy(good, std::string(8, '\0'))), "");
  EXPECT_TRUE(has(errorOf("hello"), "not a .npy file"));
  EXPECT_TRUE(has(errorOf(npy(good, "1234")), "the data is cut off"));
  EXPECT_TRUE(has(errorOf(npy(good, "").substr(0, 30)), "header is cut off"));
  EXPECT_TRUE(
      has(errorOf(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
                      "1234")),
          "element type '>f4'"));
  EXPECT_TRUE(
      has(errorOf(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}",
                      "1234")),
          "wanted C order"));
  EXPECT_TRUE(has(
      errorOf(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                  "1234")),
      "cannot read the shape"));
  EXPECT_TRUE(has(errorOf(npy("{'descr': '<f4', 'fortran_order': False, "
                              "'shape': (4611686018427387904, 16)}",
                              "1234")),
                  "too large"));
  EXPECT_TRUE(has(errorOf(npy("{}", "")), "element type ''"));
  EXPECT_FALSE(readNpy(file() + ".missing", ElementKind::F32).ok());
}
