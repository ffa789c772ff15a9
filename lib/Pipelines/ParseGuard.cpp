//===- ParseGuard.cpp - survives a parse that gives up ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParseGuard.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace attn;

namespace {
/// The blocks of a parse and where they begin. A region whose operation is not
/// finished has no parent; a block that is being read is in no region.
class Blocks {
public:
  explicit Blocks(const AsmParserState &state) {
    for (const AsmParserState::BlockDefinition &definition :
         state.getBlockDefs())
      begins[definition.block] = definition.definition.loc.Start.getPointer();
  }

  /// What began before the block is around it, or a use of a later value.
  bool isEscape(Block *block, const OpOperand &use) const {
    Block *user = use.getOwner()->getBlock();
    while (user && user->getParent() != block->getParent()) {
      Operation *parent = user->getParentOp();
      if (!parent || !parent->getBlock())
        return begins.lookup(user) < begins.lookup(block);
      user = parent->getBlock();
    }
    return false;
  }

private:
  /// Null for the block of the top level.
  llvm::DenseMap<Block *, const char *> begins;
};
} // namespace

ParseGuard::ParseGuard(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !hasFailed)
          dropUses();
        return failure();
      }) {}

void ParseGuard::dropUses() {
  hasFailed = true;
  Blocks blocks(state);
  for (const AsmParserState::BlockDefinition &definition :
       state.getBlockDefs()) {
    Block *block = definition.block;
    // The parser looks after the block that it is reading.
    auto isEscape = [&](Value value) {
      return llvm::any_of(value.getUses(), [&](const OpOperand &use) {
        return blocks.isEscape(block, use);
      });
    };
    if (block->getParent() && !escape &&
        (llvm::any_of(block->getArguments(), isEscape) ||
         llvm::any_of(*block, [&](Operation &op) {
           return llvm::any_of(op.getResults(), isEscape);
         })))
      escape = definition.definition.loc.Start.getPointer();
  }
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    definition.block->dropAllDefinedValueUses();
}
