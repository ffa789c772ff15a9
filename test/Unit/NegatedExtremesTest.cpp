//===- NegatedExtremesTest.cpp - minima and maxima of -b -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/NegatedExtremes.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/SourceMgr.h"

#include "gtest/gtest.h"

#include <climits>

using namespace attn;

/// What a function of two i32 without branches returns.
static int64_t evaluate(llvm::Function &function, int32_t a, int32_t b) {
  llvm::DenseMap<llvm::Value *, llvm::Constant *> known;
  llvm::Type *type = function.getArg(0)->getType();
  known[function.getArg(0)] = llvm::ConstantInt::getSigned(type, a);
  known[function.getArg(1)] = llvm::ConstantInt::getSigned(type, b);
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    std::vector<llvm::Constant *> operands;
    for (llvm::Value *operand : instruction.operands())
      operands.push_back(known.contains(operand)
                             ? known[operand]
                             : llvm::cast<llvm::Constant>(operand));
    if (llvm::isa<llvm::ReturnInst>(instruction))
      return llvm::cast<llvm::ConstantInt>(operands[0])->getSExtValue();
    known[&instruction] = llvm::ConstantFoldInstOperands(
        &instruction, operands, function.getDataLayout());
  }
  return 0;
}

static int countNegatedOperands(llvm::Function &function) {
  using namespace llvm::PatternMatch;
  int count = 0;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    llvm::Value *value;
    auto negation = m_Neg(m_Value(value));
    count += match(&instruction, m_CombineOr(m_c_SMax(negation, m_Value()),
                                             m_c_SMin(negation, m_Value())));
  }
  return count;
}

/// Rewritten it computes the same, and has no such operand.
static void check(const char *body) {
  std::string text =
      std::string("declare i32 @llvm.smax.i32(i32, i32)\n"
                  "declare i32 @llvm.smin.i32(i32, i32)\n"
                  "define i32 @f(i32 %a, i32 %b) {\n  %n = sub i32 0, %b\n") +
      body + "  ret i32 %r\n}\n";
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  auto before = llvm::parseAssemblyString(text, error, context);
  auto after = llvm::parseAssemblyString(text, error, context);
  ASSERT_TRUE(before && after) << error.getMessage().str();
  llvm::Function &old = *before->getFunction("f"),
                 &rewritten = *after->getFunction("f");
  EXPECT_GT(countNegatedOperands(old), 0) << body;
  rewriteNegatedExtremes(*after);
  EXPECT_EQ(countNegatedOperands(rewritten), 0) << body;
  const int32_t numbers[] = {INT_MIN, INT_MIN + 1, -7, -1, 0, 1, 5, 7, INT_MAX};
  for (int32_t a : numbers)
    for (int32_t b : numbers)
      EXPECT_EQ(evaluate(old, a, b), evaluate(rewritten, a, b))
          << body << a << " " << b;
}

TEST(NegatedExtremes, BothOrders) {
  check("  %r = call i32 @llvm.smax.i32(i32 %a, i32 %n)\n");
  check("  %r = call i32 @llvm.smax.i32(i32 %n, i32 %a)\n");
  check("  %r = call i32 @llvm.smin.i32(i32 %a, i32 %n)\n");
  check("  %r = call i32 @llvm.smin.i32(i32 %n, i32 %a)\n");
}

TEST(NegatedExtremes, InAChain) {
  check("  %m = call i32 @llvm.smax.i32(i32 %a, i32 %n)\n"
        "  %k = sub i32 0, %a\n"
        "  %o = call i32 @llvm.smax.i32(i32 %b, i32 %k)\n"
        "  %r = call i32 @llvm.smax.i32(i32 %m, i32 %o)\n");
}

// Instruction selection makes a maximum of it.
TEST(NegatedExtremes, Choices) {
  check("  %c = icmp sgt i32 %a, %n\n"
        "  %r = select i1 %c, i32 %a, i32 %n\n");
  check("  %c = icmp slt i32 %a, %n\n"
        "  %r = select i1 %c, i32 %a, i32 %n\n");
}

TEST(NegatedExtremes, OthersStay) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  auto module = llvm::parseAssemblyString(
      "declare i32 @llvm.umax.i32(i32, i32)\n"
      "declare i32 @llvm.smax.i32(i32, i32)\n"
      "define i32 @f(i32 %a, i32 %b) {\n"
      "  %n = sub i32 0, %b\n"
      "  %m = call i32 @llvm.umax.i32(i32 %a, i32 %n)\n"
      "  %r = call i32 @llvm.smax.i32(i32 %a, i32 %m)\n"
      "  ret i32 %r\n}\n",
      error, context);
  ASSERT_TRUE(module) << error.getMessage().str();
  unsigned count = module->getFunction("f")->getInstructionCount();
  rewriteNegatedExtremes(*module);
  EXPECT_EQ(module->getFunction("f")->getInstructionCount(), count);
}
