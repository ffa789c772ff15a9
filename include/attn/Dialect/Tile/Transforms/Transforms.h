//===- Transforms.h - transformations of the tile dialect ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tile passes do, callable from other C++ code.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_TRANSFORMS_H
#define ATTN_DIALECT_TILE_TRANSFORMS_TRANSFORMS_H

#include "attn/Dialect/Tile/Analysis/BlockCounts.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/BlockLoops.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// Numbers the query blocks of a kernel from the end if its mask shows later
/// rows more keys; fails, with the reason in `reason`, and changes nothing
/// where it does not.
LogicalResult reverseQueryBlocks(RewriterBase &rewriter, KernelOp kernel,
                                 std::string &reason);

/// What a loop over key blocks became.
struct PeeledLoop {
  /// In order; their results are chained.
  SmallVector<scf::ForOp, 3> segments;
  /// The segment without a mask, if there is one.
  scf::ForOp unmasked;
  /// The intervals of visited blocks: with more than one, the loops count
  /// visits.
  size_t numIntervals = 1;
  /// Every row sees a key in the first block.
  bool isFirstBlockSeen = false;
  /// For one head, if the lengths are known.
  std::optional<BlockCounts> counts;
};

/// Divides `loop` by what its mask shows, or with `oneLoop` leaves out the
/// blocks that show nothing, and masks all others; fails, with the reason in
/// `reason`, and changes nothing where the mask is not understood at all.
FailureOr<PeeledLoop> peelMasks(RewriterBase &rewriter, scf::ForOp loop,
                                std::string &reason, bool oneLoop = false);

/// Removes the mask of the step in `loop`, and what only it needed: every block
/// that the loop visits shows everything.
void dropMask(RewriterBase &rewriter, scf::ForOp loop);

/// Divides `loop`, of the loops `chain`, where an operation of its score
/// functions begins or ceases to give the same for all pairs of a block, if
/// that spares a read of memory or a function per score; returns of how many
/// loops that are left. Fails, with the reason in `reason`, and changes nothing
/// where it spares none.
FailureOr<int64_t> peelScores(RewriterBase &rewriter, scf::ForOp loop,
                              ArrayRef<scf::ForOp> chain, std::string &reason);

/// Lets the loops over blocks of a kernel go through the share that `op` says,
/// and erases `op`; fails, with the reason in `reason`, and changes nothing
/// where they are no chain.
LogicalResult shareBlocks(RewriterBase &rewriter, ShareBlocksOp op,
                          std::string &reason);

/// Lets each part of `rows` rows of a kernel's tiles go through those key
/// blocks only that it sees; fails, with the reason in `reason`, and changes
/// nothing where all parts see the same.
LogicalResult groupBounds(RewriterBase &rewriter, KernelOp kernel, int64_t rows,
                          std::string &reason);

/// Replaces comparisons of sorted data at the key (searches, sorted gathers)
/// with values of the row by bounds of the key, in all of `loops`; returns how
/// many.
int64_t boundSortedKeys(RewriterBase &rewriter, const BlockLoops &loops);

/// Replaces comparisons of quotients of positions by constants, with values of
/// the row, by bounds of the positions; those of the absolute values of
/// positions by two each; those of positions with longer numbers, of masks and
/// of scores, by those with numbers of 32 bits. All return how many.
int64_t boundQuotients(RewriterBase &rewriter, ScoresOp scores);
int64_t splitDistances(RewriterBase &rewriter, ScoresOp scores);
int64_t narrowComparisons(RewriterBase &rewriter, ScoresOp scores);

/// Makes one of all lower and one of all upper bounds that the mask in `loop`,
/// one of `loops`, sets to the keys of a row; false where there is nothing to
/// join.
bool joinKeyBounds(RewriterBase &rewriter, const BlockLoops &loops,
                   scf::ForOp loop);

/// Divides `loop`, over all key blocks, into one over the blocks in which the
/// mask both shows and hides, and one over those in which it hides nothing, as
/// grids before the kernel list them; the second one is returned. Fails,
/// with the reason in `reason`, and changes nothing where bounds tell as much.
FailureOr<scf::ForOp> listBlocks(RewriterBase &rewriter, scf::ForOp loop,
                                 std::string &reason);

/// Leaves out the key blocks of a kernel whose weights a linear bias makes
/// nothing (HideFaint.cpp); fails, with the reason in `reason`, and changes
/// nothing where scores or masks have another form.
LogicalResult hideFaintKeys(RewriterBase &rewriter, KernelOp kernel,
                            std::string &reason);

/// Visits the key blocks of a kernel from the last to the first where its
/// scores grow with the key, or where the mask is of the last block alone;
/// fails, with the reason in `reason`, and changes nothing where neither is so,
/// or its loops have another form.
LogicalResult reverseKeyBlocks(RewriterBase &rewriter, KernelOp kernel,
                               std::string &reason);

/// Moves the product with the values of block n - 1 beside the scores of block
/// n, in all loops over key blocks of a kernel, and gives their number; fails,
/// with the reason in `reason`, and changes nothing where they have another
/// form.
FailureOr<int64_t> overlapProducts(RewriterBase &rewriter, KernelOp kernel,
                                   std::string &reason);

/// Keeps the old maximum in the steps of `loop` where no weight overflows for
/// it; fails, with the reason in `reason`, and changes nothing where they have
/// another form.
LogicalResult makeMaximumLazy(RewriterBase &rewriter, scf::ForOp loop,
                              std::string &reason);

/// Replaces `op` by its regions as code on vectors; what does not change from
/// block to block is computed before the loops.
void expandScores(RewriterBase &rewriter, ScoresOp op);

/// What `tile-fold-exp2` makes of the score function where weights of gradients
/// take the scores: fewer operations, without the constant factor at its end,
/// which is the result.
llvm::APFloat foldScores(RewriterBase &rewriter, ScoresOp op);

/// Whether the product of any row's reference with log2(e) is rounded too much.
Value isAnyFar(OpBuilder &b, Location loc, Value reference);

/// Replaces `op` by vector, arith and math operations.
void expandSoftmax(RewriterBase &rewriter, OnlineSoftmaxOp op);

/// Makes one of the constant factors of each element of a kernel's tiles, but
/// where they lead to a decision; returns how many were merged.
int64_t mergeFactors(RewriterBase &rewriter, KernelOp kernel);

/// Has a block go through the query heads that share a key head, one by one,
/// instead of a kernel after it adding up what their blocks give; fails and
/// changes nothing where a kernel has no such sums, or, with the reason in
/// `reason`, where they have another form.
LogicalResult loopOverHeads(RewriterBase &rewriter, KernelOp kernel,
                            std::string &reason);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_TRANSFORMS_H
