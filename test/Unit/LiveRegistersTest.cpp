//===- LiveRegistersTest.cpp - the registers a kernel needs -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/LiveRegisters.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include "gtest/gtest.h"

#include <map>

using namespace attn;

static RegisterLiveness measure(const char *text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  return countLiveRegisters(*module->getFunction("f"));
}

static int64_t countIn(const char *text) { return measure(text).live; }

TEST(LiveRegisters, NothingLives) {
  EXPECT_EQ(countIn("define void @f(i32 %a) { ret void }"), 0);
}

// What is used where it is made lives in no other block.
TEST(LiveRegisters, InsideOfABlock) {
  EXPECT_EQ(countIn("define void @f(ptr %p) {\n"
                    "  %a = load i32, ptr %p\n"
                    "  %b = load i32, ptr %p\n"
                    "  %c = add i32 %a, %b\n"
                    "  br label %next\n"
                    "next:\n"
                    "  store i32 %c, ptr %p\n"
                    "  ret void\n}"),
            1);
}

TEST(LiveRegisters, WidthsCount) {
  EXPECT_EQ(countIn("define void @f(ptr %p) {\n"
                    "  %a = load <4 x float>, ptr %p\n"
                    "  %b = load i64, ptr %p\n"
                    "  %c = load i1, ptr %p\n"
                    "  br label %next\n"
                    "next:\n"
                    "  store <4 x float> %a, ptr %p\n"
                    "  store i64 %b, ptr %p\n"
                    "  store i1 %c, ptr %p\n"
                    "  ret void\n}"),
            6);
}

// What is used behind a loop lives in it, beside what goes round.
TEST(LiveRegisters, Loops) {
  EXPECT_EQ(countIn("define void @f(ptr %p, i32 %n) {\n"
                    "entry:\n"
                    "  %behind = load i64, ptr %p\n"
                    "  br label %loop\n"
                    "loop:\n"
                    "  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n"
                    "  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]\n"
                    "  %value = load float, ptr %p\n"
                    "  %more = fadd float %sum, %value\n"
                    "  %next = add i32 %i, 1\n"
                    "  %again = icmp slt i32 %next, %n\n"
                    "  br i1 %again, label %loop, label %end\n"
                    "end:\n"
                    "  store i64 %behind, ptr %p\n"
                    "  store float %more, ptr %p\n"
                    "  ret void\n}"),
            4);
}

// The elements of a result count, and not the result.
TEST(LiveRegisters, SeveralResults) {
  EXPECT_EQ(countIn("declare {float, float} @g()\n"
                    "define void @f(ptr %p) {\n"
                    "  %both = call {float, float} @g()\n"
                    "  %a = extractvalue {float, float} %both, 0\n"
                    "  %b = extractvalue {float, float} %both, 1\n"
                    "  br label %next\n"
                    "next:\n"
                    "  store float %a, ptr %p\n"
                    "  store float %b, ptr %p\n"
                    "  ret void\n}"),
            2);
}

// A role has what it takes when it begins; what lives before it is none of it.
TEST(LiveRegisters, Roles) {
  RegisterLiveness liveness = measure(
      "declare void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32)\n"
      "declare void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32)\n"
      "define void @f(ptr %p, i1 %first) {\n"
      "  %before = load <4 x float>, ptr %p\n"
      "  br label %split\n"
      "split:\n"
      "  %sum = call float @llvm.vector.reduce.fadd.v4f32(float 0.0, "
      "<4 x float> %before)\n"
      "  store float %sum, ptr %p\n"
      "  br i1 %first, label %more, label %less\n"
      "more:\n"
      "  call void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 232)\n"
      "  %a = load <2 x float>, ptr %p\n"
      "  br label %end\n"
      "end:\n"
      "  store <2 x float> %a, ptr %p\n"
      "  ret void\n"
      "less:\n"
      "  call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 40)\n"
      "  %b = load float, ptr %p\n"
      "  br label %last\n"
      "last:\n"
      "  store float %b, ptr %p\n"
      "  ret void\n}\n"
      "declare float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>)");
  EXPECT_EQ(liveness.live, 4);
  std::map<int64_t, int64_t> lives;
  for (const RoleLiveness &role : liveness.roles)
    lives[role.registers] = role.live;
  EXPECT_EQ(lives, (std::map<int64_t, int64_t>{{40, 1}, {232, 2}}));
}
