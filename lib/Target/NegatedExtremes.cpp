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
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

namespace {
/// The larger or the smaller one of two signed integers.
struct Extreme {
  llvm::Instruction *instruction;
  llvm::Value *lhs, *rhs;
  bool isLargest;
};
} // namespace

/// A minimum or maximum, or a choice that instruction selection makes one of.
static std::optional<Extreme> findExtreme(llvm::Instruction &instruction) {
  if (auto *extreme = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction)) {
    if (!extreme->isSigned())
      return std::nullopt;
    return Extreme{extreme, extreme->getLHS(), extreme->getRHS(),
                   extreme->getIntrinsicID() == llvm::Intrinsic::smax};
  }
  if (!llvm::isa<llvm::SelectInst>(instruction))
    return std::nullopt;
  Extreme extreme{&instruction, nullptr, nullptr, false};
  llvm::SelectPatternFlavor flavor =
      llvm::matchSelectPattern(&instruction, extreme.lhs, extreme.rhs).Flavor;
  extreme.isLargest = flavor == llvm::SPF_SMAX;
  if (!extreme.isLargest && flavor != llvm::SPF_SMIN)
    return std::nullopt;
  return extreme;
}

/// -b = ~(b - 1), and ~ turns the order round.
static void rewrite(const Extreme &extreme) {
  using namespace llvm::PatternMatch;
  llvm::Value *other = extreme.lhs, *negation = extreme.rhs, *value;
  if (!match(negation, m_Neg(m_Value(value)))) {
    std::swap(other, negation);
    if (!match(negation, m_Neg(m_Value(value))))
      return;
  }
  llvm::IRBuilder<> builder(extreme.instruction);
  llvm::Value *less = builder.CreateAdd(
      value, llvm::Constant::getAllOnesValue(value->getType()));
  extreme.instruction->replaceAllUsesWith(
      builder.CreateNot(builder.CreateBinaryIntrinsic(
          extreme.isLargest ? llvm::Intrinsic::smin : llvm::Intrinsic::smax,
          builder.CreateNot(other), less)));
  extreme.instruction->eraseFromParent();
}

void attn::rewriteNegatedExtremes(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function)))
      if (std::optional<Extreme> extreme = findExtreme(instruction))
        rewrite(*extreme);
}
