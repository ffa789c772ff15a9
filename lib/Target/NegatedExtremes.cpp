//===- NegatedExtremes.cpp - what an assembler gets wrong -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/NegatedExtremes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

/// -b = ~(b - 1), and ~ turns the order round.
static void rewrite(llvm::MinMaxIntrinsic &extreme) {
  using namespace llvm::PatternMatch;
  llvm::Value *other = extreme.getLHS(), *negation = extreme.getRHS(), *value;
  if (!match(negation, m_Neg(m_Value(value)))) {
    std::swap(other, negation);
    if (!match(negation, m_Neg(m_Value(value))))
      return;
  }
  llvm::Intrinsic::ID opposite =
      extreme.getIntrinsicID() == llvm::Intrinsic::smax ? llvm::Intrinsic::smin
                                                        : llvm::Intrinsic::smax;
  llvm::IRBuilder<> builder(&extreme);
  llvm::Value *less = builder.CreateAdd(
      value, llvm::Constant::getAllOnesValue(value->getType()));
  extreme.replaceAllUsesWith(builder.CreateNot(
      builder.CreateBinaryIntrinsic(opposite, builder.CreateNot(other), less)));
  extreme.eraseFromParent();
}

void attn::rewriteNegatedExtremes(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function)))
      if (auto *extreme = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction);
          extreme && extreme->isSigned())
        rewrite(*extreme);
}
