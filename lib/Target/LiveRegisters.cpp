//===- LiveRegisters.cpp - how many registers a kernel needs -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/LiveRegisters.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <vector>

using namespace attn;

/// Results of an instruction of several are structures: their elements are
/// taken out right behind it, and it is these that live.
static int64_t countRegisters(const llvm::Value &value) {
  llvm::Type *type = value.getType();
  if (type->isVoidTy() || type->isAggregateType() || type->isIntegerTy(1))
    return 0;
  // Addresses in shared memory are known to be short.
  if (auto *pointer = llvm::dyn_cast<llvm::PointerType>(type))
    return pointer->getAddressSpace() == 3 ? 1 : 2;
  return (type->getPrimitiveSizeInBits().getFixedValue() + 31) / 32;
}

namespace {
class Liveness {
public:
  explicit Liveness(const llvm::Function &kernel);
  void solve();
  /// The most that lives at the end of a block.
  int64_t countAtEnds(llvm::ArrayRef<const llvm::BasicBlock *> blocks);

private:
  void use(const llvm::Value &value, llvm::BitVector &live) {
    if (auto found = numbers.find(&value); found != numbers.end())
      live.set(found->second);
  }
  llvm::BitVector findLiveOut(const llvm::BasicBlock &block);
  void walk(const llvm::BasicBlock &block, llvm::BitVector &live);
  int64_t count(const llvm::BitVector &live) const;

  const llvm::Function &kernel;
  llvm::DenseMap<const llvm::Value *, unsigned> numbers;
  std::vector<int64_t> registers; // of each value
  /// At the first instruction that is no phi, with the phis.
  llvm::DenseMap<const llvm::BasicBlock *, llvm::BitVector> liveIn;
};
} // namespace

Liveness::Liveness(const llvm::Function &kernel) : kernel(kernel) {
  for (const llvm::BasicBlock &block : kernel)
    for (const llvm::Instruction &instruction : block)
      if (int64_t count = countRegisters(instruction)) {
        numbers[&instruction] = registers.size();
        registers.push_back(count);
      }
}

llvm::BitVector Liveness::findLiveOut(const llvm::BasicBlock &block) {
  llvm::BitVector live(registers.size());
  for (const llvm::BasicBlock *next : llvm::successors(&block)) {
    llvm::BitVector needed = liveIn.lookup(next);
    if (needed.empty())
      needed.resize(registers.size());
    for (const llvm::PHINode &phi : next->phis())
      if (auto found = numbers.find(&phi); found != numbers.end())
        needed.reset(found->second);
    live |= needed;
    for (const llvm::PHINode &phi : next->phis())
      use(*phi.getIncomingValueForBlock(&block), live);
  }
  return live;
}

/// From what lives at the end of a block to what does at its first instruction.
void Liveness::walk(const llvm::BasicBlock &block, llvm::BitVector &live) {
  for (const llvm::Instruction &instruction : llvm::reverse(block)) {
    if (llvm::isa<llvm::PHINode>(instruction))
      break;
    if (auto found = numbers.find(&instruction); found != numbers.end())
      live.reset(found->second);
    for (const llvm::Value *operand : instruction.operands())
      use(*operand, live);
  }
}

int64_t Liveness::count(const llvm::BitVector &live) const {
  int64_t sum = 0;
  for (unsigned number : live.set_bits())
    sum += registers[number];
  return sum;
}

void Liveness::solve() {
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (const llvm::BasicBlock *block :
         llvm::post_order(&kernel.getEntryBlock())) {
      llvm::BitVector live = findLiveOut(*block);
      walk(*block, live);
      llvm::BitVector &known = liveIn[block];
      if (known != live) {
        known = std::move(live);
        isChanged = true;
      }
    }
  }
}

int64_t Liveness::countAtEnds(llvm::ArrayRef<const llvm::BasicBlock *> blocks) {
  int64_t most = 0;
  for (const llvm::BasicBlock *block : blocks)
    most = std::max(most, count(findLiveOut(*block)));
  return most;
}

/// What a role takes that begins in this block; 0: none does.
static int64_t findShare(const llvm::BasicBlock &block) {
  for (const llvm::Instruction &instruction : block)
    if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
      if (call->getIntrinsicID() ==
              llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32 ||
          call->getIntrinsicID() ==
              llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32)
        return llvm::cast<llvm::ConstantInt>(call->getArgOperand(0))
            ->getSExtValue();
  return 0;
}

RegisterLiveness attn::countLiveRegisters(const llvm::Function &kernel) {
  Liveness liveness(kernel);
  liveness.solve();
  std::vector<const llvm::BasicBlock *> all;
  for (const llvm::BasicBlock *block :
       llvm::depth_first(&kernel.getEntryBlock()))
    all.push_back(block);
  RegisterLiveness result;
  result.live = liveness.countAtEnds(all);
  for (const llvm::BasicBlock *block : all) {
    int64_t share = findShare(*block);
    if (share == 0)
      continue;
    // Its blocks come behind this one; roles do not meet again.
    std::vector<const llvm::BasicBlock *> blocks(llvm::df_begin(block),
                                                 llvm::df_end(block));
    result.roles.push_back({share, liveness.countAtEnds(blocks)});
  }
  result.instructions = kernel.getInstructionCount();
  return result;
}
