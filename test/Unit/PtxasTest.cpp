//===- PtxasTest.cpp - what the assembler said ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Ptxas.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;

// What an assembler that is this script, after the name of its output is in
// $out, makes; empty where it fails.
static std::string assembleBy(const std::string &script) {
  std::string path = testing::TempDir() + "attn-ptxas-XXXXXX";
  int file = mkstemp(path.data());
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(path)
      << "#!/bin/sh\n"
         "out=$(echo \" $* \" | sed 's/.* -o \\([^ ]*\\) .*/\\1/')\n"
      << script;
  EXPECT_EQ(chmod(path.c_str(), 0700), 0);
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler ignore(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  auto cubin = assemble(mlir::UnknownLoc::get(&context), path, "", "sm_90a");
  std::remove(path.c_str());
  return failed(cubin) ? ""
                       : std::string(cubin->bytes.begin(), cubin->bytes.end());
}

// The kernels of an artifact are compiled by several threads.
TEST(Ptxas, ManyKernelsAtATime) {
  std::string arguments = assembleBy("echo \"$*\" >\"$out\"\n");
  EXPECT_NE(arguments.find("-arch=sm_90a"), std::string::npos) << arguments;
  EXPECT_NE(arguments.find("--split-compile="), std::string::npos) << arguments;
}

TEST(Ptxas, AssemblersThatCannot) {
  const std::string refuse =
      "case \"$*\" in *--split-compile=*)\n"
      "  echo \"ptxas fatal   : Unknown option '-split-compile'\"; exit 255;;\n"
      "esac\n";
  std::string arguments = assembleBy(refuse + "echo \"$*\" >\"$out\"\n");
  EXPECT_NE(arguments.find("-arch=sm_90a"), std::string::npos) << arguments;
  EXPECT_EQ(arguments.find("split"), std::string::npos) << arguments;
  EXPECT_EQ(assembleBy(refuse + "exit 255\n"), "");
}

// An alarm of the host is its own.
TEST(Ptxas, AlarmsStay) {
  alarm(1000);
  EXPECT_NE(assembleBy("echo code >\"$out\"\n"), "");
  EXPECT_GT(alarm(0), 900u);
}

TEST(Ptxas, Signals) { EXPECT_EQ(assembleBy("kill -SEGV $$\n"), ""); }

TEST(Ptxas, Nothing) {
  for (const char *log : {"", "\n\n", "ptxas info    : 0 bytes gmem\n"}) {
    PtxasReport report = parsePtxasLog(log);
    EXPECT_EQ(report.registers, -1);
    EXPECT_EQ(report.stackBytes, -1);
    EXPECT_EQ(report.spillStoreBytes, -1);
    EXPECT_EQ(report.spillLoadBytes, -1);
    EXPECT_EQ(report.milliseconds, -1);
    EXPECT_TRUE(report.kernels.empty());
    EXPECT_TRUE(report.warnings.empty());
  }
}

// As LLVM writes it; a name may begin with another.
TEST(Ptxas, DroppedKernels) {
  const std::string head = ".address_size 64\n\n";
  const std::string first = "\t// .globl\tf\n.visible .entry f(\n\t.param .u64 "
                            "f_param_0\n)\n{\n\tret;\n\n}\n";
  const std::string second =
      "\t// .globl\tf_variant1\n.visible .entry f_variant1(\n\t.param .u64 "
      "f_variant1_param_0\n)\n{\n\t{\n\tret;\n\t}\n\n}\n";
  const std::string third = ".visible .entry g()\n{\n\tret;\n}\n";
  std::string ptx = head + first + second + third;
  dropKernel(ptx, "f_variant1");
  EXPECT_EQ(ptx, head + first + third);
  ptx = head + first + second + third;
  dropKernel(ptx, "f");
  EXPECT_EQ(ptx, head + second + third);
  dropKernel(ptx, "g");
  EXPECT_EQ(ptx, head + second);
  // What stands between that comment and a kernel is not its own.
  const std::string shared =
      ".extern .shared .align 128 .b8 attn_shared_memory[];\n";
  const std::string begins =
      "\t// .globl\th\n" + shared + "\n.visible .entry h()\n{\n\tret;\n}\n";
  ptx = head + begins + second;
  dropKernel(ptx, "h");
  EXPECT_EQ(ptx, head + shared + second);
  const std::string bare = ".visible .entry f()\n{\n\tret;\n}\n";
  ptx = head + second + bare;
  dropKernel(ptx, "f");
  EXPECT_EQ(ptx, head + second);
}

// As ptxas 13.0 prints it.
TEST(Ptxas, OneKernel) {
  PtxasReport report = parsePtxasLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'causal' for 'sm_90a'\n"
      "ptxas info    : Function properties for causal\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers\n"
      "ptxas info    : Compile time = 541.787 ms\n");
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.stackBytes, 0);
  EXPECT_EQ(report.spillStoreBytes, 0);
  EXPECT_EQ(report.spillLoadBytes, 0);
  EXPECT_EQ(report.milliseconds, 541);
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels["causal"].registers, 168);
  EXPECT_TRUE(report.warnings.empty());
}

// Figures by kernel, and the largest of all.
TEST(Ptxas, TwoKernels) {
  PtxasReport report = parsePtxasLog(
      "ptxas info    : Compiling entry function 'f_blocks' for 'sm_80'\n"
      "ptxas info    : Function properties for f_blocks\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 4352 bytes smem\n"
      "ptxas info    : Compile time = 12.000 ms\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_80'\n"
      "ptxas info    : Function properties for f\n"
      "    0 bytes stack frame, 4 bytes spill stores, 36 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers\n"
      "ptxas info    : Compile time = 300.500 ms\n");
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels["f_blocks"].registers, 40);
  EXPECT_EQ(report.kernels["f_blocks"].stackBytes, 16);
  EXPECT_EQ(report.kernels["f_blocks"].spillStoreBytes, 8);
  EXPECT_EQ(report.kernels["f"].registers, 255);
  EXPECT_EQ(report.kernels["f"].spillStoreBytes, 4);
  EXPECT_EQ(report.kernels["f"].spillLoadBytes, 36);
  EXPECT_EQ(report.registers, 255);
  EXPECT_EQ(report.stackBytes, 16);
  EXPECT_EQ(report.spillStoreBytes, 8);
  EXPECT_EQ(report.spillLoadBytes, 36);
  EXPECT_EQ(report.milliseconds, 300);
}

// Numbers that are none, too large, or cut off are not said.
TEST(Ptxas, NoNumbers) {
  PtxasReport report =
      parsePtxasLog("ptxas info    : Used 99999999999999999999999 registers\n"
                    "ptxas info    : Used many registers\n"
                    "ptxas info    : Used\n"
                    " bytes stack frame, bytes spill stores\n"
                    "Compile time = \n"
                    "ptxas info    : Compiling entry function '");
  EXPECT_EQ(report.registers, -1);
  EXPECT_EQ(report.stackBytes, -1);
  EXPECT_EQ(report.spillStoreBytes, -1);
  EXPECT_EQ(report.milliseconds, -1);
  EXPECT_TRUE(report.kernels.empty());
}

TEST(Ptxas, Warnings) {
  PtxasReport report = parsePtxasLog(
      "ptxas warning : Value of threads per SM for entry f is out of range\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized due to ...\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' "
      "ignored\n"
      "ptxas info    : Used 24 registers\r\n"
      "ptxas info    : (D7510) is no advice\n");
  ASSERT_EQ(report.warnings.size(), 3u);
  EXPECT_FALSE(isSerialized(report.warnings[0]));
  EXPECT_TRUE(isSerialized(report.warnings[1]));
  EXPECT_TRUE(isSerialized(report.warnings[2]));
  EXPECT_EQ(report.registers, 24);
}

// Advice about setmaxnreg and wgmma has the numbers C7504 to C7520; that of one
// more fence costs nothing.
TEST(Ptxas, Serialized) {
  for (int number = 7490; number < 7610; ++number) {
    std::string line = "ptxas info : (C" + std::to_string(number) + ") advice";
    EXPECT_EQ(isSerialized(line),
              number >= 7504 && number <= 7520 && number != 7519)
        << line;
  }
  EXPECT_FALSE(isSerialized("C7510 without brackets"));
  EXPECT_FALSE(isSerialized("(C75100)"));
}
