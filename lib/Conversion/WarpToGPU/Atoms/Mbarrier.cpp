//===- Mbarrier.cpp - barriers in shared memory -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assembly, so that no instruction of the kernel moves over a barrier (the
// memory clobber) and that what one lane does alone is a predicate and not a
// branch (C7518, see IR/Atoms.h). What a whole warp has one lane do for it,
// that lane is elected for: ptxas then knows that it is one, and TMA needs no
// loop over lanes.
//
//===----------------------------------------------------------------------===//

#include "Mbarrier.h"

#include "../Integers.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Inline assembly that touches memory.
static LLVM::InlineAsmOp emitAssembly(OpBuilder &builder, Location loc,
                                      TypeRange results, StringRef text,
                                      ValueRange operands,
                                      StringRef constraints) {
  return LLVM::InlineAsmOp::create(
      builder, loc, results, operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

void attn::warp::emitStatement(OpBuilder &builder, Location loc, StringRef text,
                               ValueRange operands) {
  std::string constraints;
  for (size_t i = 0; i < operands.size(); ++i)
    constraints += "r,";
  constraints += "~{memory}";
  emitAssembly(builder, loc, TypeRange(), text, operands, constraints);
}

void attn::warp::emitBarrierInit(OpBuilder &builder, Location loc,
                                 Value barrier, int64_t count) {
  Integers ints(builder, loc);
  emitStatement(builder, loc, "mbarrier.init.shared::cta.b64 [$0], $1;",
                {barrier, ints.constant(count)});
}

void attn::warp::emitBarrierInitFence(OpBuilder &builder, Location loc) {
  emitStatement(builder, loc, "fence.mbarrier_init.release.cluster;");
}

Value attn::warp::emitBarrierTest(OpBuilder &builder, Location loc,
                                  Value barrier, Value parity) {
  return emitAssembly(builder, loc, builder.getI1Type(),
                      "mbarrier.test_wait.parity.shared::cta.b64 $0, [$1], $2;",
                      {barrier, parity}, "=b,r,r,~{memory}")
      .getResult(0);
}

void attn::warp::emitBarrierWait(OpBuilder &builder, Location loc,
                                 Value barrier, Value parity,
                                 Value isComplete) {
  if (!isComplete)
    return emitStatement(builder, loc,
                         "{ .reg .pred done; AGAIN: "
                         "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], "
                         "$1; @!done bra AGAIN; }",
                         {barrier, parity});
  emitAssembly(builder, loc, TypeRange(),
               "{ .reg .pred done; mov.pred done, $2; AGAIN: @done bra DONE; "
               "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
               "bra AGAIN; DONE: }",
               {barrier, parity, isComplete}, "r,r,b,~{memory}");
}

void attn::warp::emitBarrierArrive(OpBuilder &builder, Location loc,
                                   Value barrier) {
  Integers ints(builder, loc);
  emitStatement(builder, loc,
                "{ .reg .pred first; setp.eq.u32 first, $1, 0; "
                "@first mbarrier.arrive.shared::cta.b64 _, [$0]; }",
                {barrier, ints.lane()});
}

void attn::warp::emitBarrierExpect(OpBuilder &builder, Location loc,
                                   Value barrier, int64_t bytes) {
  Integers ints(builder, loc);
  emitStatement(builder, loc,
                "{ .reg .pred first; elect.sync _|first, -1; "
                "@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; "
                "}",
                {barrier, ints.constant(bytes)});
}

void attn::warp::emitProxyFence(OpBuilder &builder, Location loc) {
  emitStatement(builder, loc, "fence.proxy.async.shared::cta;");
}
