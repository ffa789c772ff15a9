//===- EmptyBlocks.cpp - tiles of which nothing shows -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmptyBlocks.h"

#include "DeadOps.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn::tile;

/// Whether the map lists a block, by `predicate` of their number and 0; at
/// the start of the body.
static Value compareVisits(RewriterBase &rewriter, KernelOp grid,
                           const BlockMap &map,
                           arith::CmpIPredicate predicate) {
  Location loc = grid.getLoc();
  rewriter.setInsertionPointToStart(grid.getBody());
  auto count = [&](int64_t number) -> Value {
    Value which = arith::ConstantIndexOp::create(rewriter, loc, number);
    return memref::LoadOp::create(rewriter, loc, map.counts,
                                  map.indicesOf(rewriter, which));
  };
  Value visits = arith::AddIOp::create(rewriter, loc, count(0), count(1));
  Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
  return arith::CmpIOp::create(rewriter, loc, predicate, visits, zero);
}

/// The result of a comparison of constants, which upstream knows for scalars.
static Attribute foldComparison(arith::CmpFOp op) {
  DenseElementsAttr lhs, rhs;
  if (!matchPattern(op.getLhs(), m_Constant(&lhs)) || !lhs.isSplat() ||
      !matchPattern(op.getRhs(), m_Constant(&rhs)) || !rhs.isSplat())
    return {};
  bool result =
      arith::applyCmpPredicate(op.getPredicate(), lhs.getSplatValue<APFloat>(),
                               rhs.getSplatValue<APFloat>());
  return DenseElementsAttr::get(cast<ShapedType>(op.getType()), result);
}

/// Constants for what can be computed now, also in inner blocks, nothing for
/// what nobody uses.
static void fold(RewriterBase &rewriter, Block *body) {
  for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (inner.mightHaveTerminator())
          fold(rewriter, &inner);
    SmallVector<Value> folded;
    rewriter.setInsertionPoint(&op);
    if (auto compare = dyn_cast<arith::CmpFOp>(op))
      if (Attribute result = foldComparison(compare)) {
        rewriter.replaceOpWithNewOp<arith::ConstantOp>(compare,
                                                       cast<TypedAttr>(result));
        continue;
      }
    if (!op.hasTrait<OpTrait::ConstantLike>() &&
        succeeded(rewriter.tryFold(&op, folded)) && !folded.empty())
      rewriter.replaceOp(&op, folded);
  }
  eraseDeadOps(rewriter, body);
}

void attn::tile::separateEmptyBlocks(RewriterBase &rewriter, KernelOp grid,
                                     scf::ForOp loop, const BlockMap &map) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(grid);
  IRMapping mapping;
  auto empty = cast<KernelOp>(rewriter.clone(*grid, mapping));
  std::string name = (grid.getSymName() + "_empty_blocks").str();
  empty.setSymName(KernelOp::findName(grid->getBlock(), name));
  empty.setPlanAttr(grid.getPlan().withOneWarp());
  empty.setIndependent(true);
  Operation *visits = mapping.lookup(loop.getOperation());
  rewriter.replaceOp(visits, cast<scf::ForOp>(visits).getInitArgs());
  fold(rewriter, empty.getBody());

  // What it writes too much the kernel writes again.
  BlockMap own = map;
  own.batch = mapping.lookupOrDefault(map.batch);
  own.head = mapping.lookupOrDefault(map.head);
  own.tile = mapping.lookupOrDefault(map.tile);
  Value hasWork = compareVisits(rewriter, empty, own, arith::CmpIPredicate::ne);
  ExitIfOp::create(rewriter, grid.getLoc(), hasWork);
  Value isEmpty = compareVisits(rewriter, grid, map, arith::CmpIPredicate::eq);
  ExitIfOp::create(rewriter, grid.getLoc(), isEmpty);
}
