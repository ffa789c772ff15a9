//===- Transforms.h - transformations of warp kernels ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_TRANSFORMS_TRANSFORMS_H
#define ATTN_DIALECT_WARP_TRANSFORMS_TRANSFORMS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::warp {

/// `depth`, or the stages of the plan where it is 0.
inline int64_t getRingDepth(KernelOp kernel, int64_t depth) {
  return depth != 0 ? depth : kernel.getStages().value_or(1);
}

/// Where the copies ahead stand; see Buffer.cpp.
enum class BufferSchedule { Auto, Own, Early, Together };

/// Puts the copies of the key loops of a kernel into rings of `depth` slots (0:
/// the stages of the kernel) and starts them ahead of their use; the copies
/// before the loops become asynchronous too. Gives the number of rings. Fails,
/// with `reason` set and the kernel untouched, if the loops do not have the
/// expected form.
FailureOr<int64_t> bufferLoops(RewriterBase &rewriter, KernelOp kernel,
                               int64_t depth, BufferSchedule schedule,
                               std::string &reason);

/// Puts a loop over tiles around the body of a kernel, which becomes resident.
/// Gives who hands out the tiles. Fails, with `reason` set and the kernel
/// untouched, if there is no producer to be had that runs ahead.
FailureOr<Scheduler> persistBlocks(RewriterBase &rewriter, KernelOp kernel,
                                   std::string &reason);

/// Has the grid of a kernel whose tiles differ begin the longest first, in
/// groups of heads. Gives how many these are. Fails, with `reason` set and the
/// kernel untouched, if there is nothing to gain.
FailureOr<int64_t> orderTiles(RewriterBase &rewriter, KernelOp kernel,
                              std::string &reason);

/// Unrolls the loops that carry a left operand of a product by two, so that it
/// is another value in each step; if `selective`, only those that are known to
/// gain. Gives their number; `reason` says why others stayed as they are. Fails
/// if there is none.
FailureOr<int64_t> doubleBufferOperands(KernelOp kernel, bool selective,
                                        std::string &reason);

/// Moves the copies of a kernel into a producer role; the rings that loops fill
/// get `depth` slots (0: the stages of the kernel). Gives the number of copies;
/// `reason` says why groups of the consumer go through blocks that only others
/// see. Fails, with `reason` set and the kernel untouched, if the copies do not
/// have the expected form.
FailureOr<int64_t> specializeCopies(RewriterBase &rewriter, KernelOp kernel,
                                    int64_t depth, std::string &reason);

/// Gives a producer whose loops need more numbers than it has registers more of
/// them, of those that the consumer can spare. Gives how many more each thread
/// has; if none, `reason` says why.
int64_t spareForProducer(RewriterBase &rewriter, KernelOp kernel,
                         std::string &reason);

/// Lets a role read what it wrote for itself one step later, where that only
/// adds to memory, as long as the kernel takes at most `limit` bytes. Gives the
/// number of rings; `reason` says why one stayed as it is.
int64_t delayExchanges(RewriterBase &rewriter, KernelOp kernel, int64_t limit,
                       std::string &reason);

/// Splits the products of slots with panels into issue and wait, and moves each
/// wait to the first use. Gives the number of products; `reason` says why there
/// is none.
int64_t makeProductsAsync(RewriterBase &rewriter, KernelOp kernel,
                          std::string &reason);

/// Puts the products that are in flight together in a loop of the consumer into
/// turns. Gives the number of turns. Fails, with `reason` set and the kernel
/// untouched, if there are none or nobody to take turns with.
FailureOr<int64_t> insertTurns(RewriterBase &rewriter, KernelOp kernel,
                               std::string &reason);

/// Puts the warps of kernels without roles in grids where products by mma_sync
/// read less of shared memory then, so that a kernel takes at most `limit`
/// bytes. Gives the number of products; `reason` says why a grid is not taken.
int64_t shareColumns(RewriterBase &rewriter, func::FuncOp function,
                     int64_t limit, std::string &reason);

/// Lets stores of tiles go via slots, so that the kernel takes at most `limit`
/// bytes. Gives their number; `reason` says why a store stayed as it is.
int64_t stageStores(RewriterBase &rewriter, KernelOp kernel, int64_t limit,
                    std::string &reason);

/// Gives a ring of one slot a second one. False, with `reason` set and the ring
/// as it was, if the kernel would take more than `limit` bytes.
bool addSecondSlot(RewriterBase &rewriter, RingOp ring, int64_t limit,
                   std::string &reason);

/// Gives rings of one slot that a loop over tiles refills a second one, as long
/// as the kernel takes at most `limit` bytes; `isForSteps`: those alone that
/// each step of a tile refills. Gives the number of such rings; `reason` says
/// why one stayed as it is.
int64_t deepenRings(RewriterBase &rewriter, KernelOp kernel, int64_t limit,
                    bool isForSteps, std::string &reason);

/// The bytes that a kernel's slots, rings and barriers take.
int64_t getSharedBytesUsed(KernelOp kernel);

/// Gives each slot and ring its place and the kernel its bytes. Emits an error
/// if more than `limit` bytes are needed.
LogicalResult placeSharedMemory(KernelOp kernel, int64_t limit);

/// Keeps running row sums as one partial sum per lane and adds the lanes up
/// once, after the loops. Gives the number of sums deferred; `reason` says why
/// there is none.
int64_t deferRowSums(RewriterBase &rewriter, KernelOp kernel,
                     std::string &reason);

/// Makes what follows a warp.exit_if of a block run where the condition is
/// false: in the branches of an scf.if.
void nestExits(RewriterBase &rewriter, Block *body);

/// Lets the idle warps of the next kernel do what the blocks of a kernel of one
/// warp do, which is erased. Fails, with `reason` set and both untouched, if
/// the next kernel may need it or has no idle warps.
LogicalResult runBeside(RewriterBase &rewriter, KernelOp kernel,
                        std::string &reason);

/// Lets a kernel start while the one before it runs; null for the first one.
/// The kernels before it have been decided. It is beside those before it that
/// touch nothing that it writes, and write nothing that it touches.
std::optional<Start> findStart(KernelOp kernel);

/// Tests items of rings ahead of their awaits in the loops of roles; if
/// `selective`, only of those that are known to gain. Gives the number of
/// tests; `reason` says why loops stayed as they were.
int64_t testAhead(RewriterBase &rewriter, KernelOp kernel, bool selective,
                  std::string &reason);

/// Gives each approximate tanh of a tile a polynomial, for warps that hold
/// small numbers only. Gives how many these are; `reason` says why there is
/// none.
int64_t expandTanh(RewriterBase &rewriter, KernelOp kernel,
                   std::string &reason);

/// Has the products of a tile outside its loops take turns, where those within
/// do. Gives how many these are; `reason` says why there is none.
int64_t turnEnds(RewriterBase &rewriter, KernelOp kernel, std::string &reason);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_TRANSFORMS_TRANSFORMS_H
