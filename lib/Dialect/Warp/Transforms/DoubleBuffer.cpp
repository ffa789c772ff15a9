//===- DoubleBuffer.cpp - weights in two sets of registers ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that carries the left operand of a product (the weights of the block
// before, from `tile-overlap-products`) makes the next one while the product
// reads the last. If both are the same carried value they are the same
// registers, so the product has to end first. Two steps in one body have two
// values: the first step reads the carried one and makes the second, the second
// step reads that and makes the carried one. Nothing is copied from set to set,
// and `warp-make-async` may leave the product in flight while its successor's
// operand is made.
//
// That takes the registers of one more operand. Where they are not there the
// assembler would serialize (C7512, see Atoms.h), so a loop whose tiles would
// leave a lane less than 32 registers stays as it is. With 32 ptxas 13.0 had
// enough in every plan for head dimensions of 64, 128 and 256, with 24 in none.
//
// What it is worth depends on the block of keys: at d = 128 on an H200 the
// steps of 128 keys gain 1 %, those of 64 lose 3 %, at d = 64 6 %. So the
// pipeline asks for steps of 128 keys and columns only, and of these for those
// whose scores need no registers of their own.
//
//===----------------------------------------------------------------------===//

#include "ChangedScores.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/BlockLoops.h"
#include "attn/Support/RoleRegisters.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPDOUBLEBUFFER
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// What a lane of the consumer needs beside the tiles of products.
static constexpr int64_t otherRegisters = 32;
/// And that for masks and functions of scores.
static constexpr int64_t scoreRegisters = 16;

/// The registers of a lane that hold a fragment.
static int64_t countRegisters(Type type) {
  auto fragment = dyn_cast<FragType>(type);
  if (!fragment)
    return 0;
  constexpr int64_t registerBits = 32;
  int64_t bits = fragment.getElementType().getIntOrFloatBitWidth();
  for (int64_t size : fragment.getShape())
    bits *= size;
  return bits / (fragment.getWarps() * attn::layout::warpSize * registerBits);
}

/// Those of what the products of a body read and give, with two sets of
/// operands.
static int64_t countTileRegisters(scf::ForOp loop) {
  int64_t registers = 0;
  for (auto mma : loop.getBody()->getOps<MmaOp>())
    registers += countRegisters(mma.getAcc().getType()) +
                 2 * countRegisters(mma.getA().getType());
  return registers;
}

/// Whether a product of the body reads a carried value, in registers, while
/// others can run beside it; and whether the steps are those of blocks.
static bool carriesOperand(scf::ForOp loop) {
  if (!hasUnitStep(loop))
    return false;
  return llvm::any_of(loop.getBody()->getOps<MmaOp>(), [&](MmaOp mma) {
    Value left = mma.getA();
    if (auto convert = left.getDefiningOp<ConvertOp>())
      left = convert.getValue();
    return getTraits(mma.getAtom()).isAsync && isa<FragType>(left.getType()) &&
           llvm::is_contained(loop.getRegionIterArgs(), left);
  });
}

/// Whether a body has fewer keys or columns of values than pay.
static bool isSmall(scf::ForOp loop) {
  constexpr int64_t leastKeys = 128, leastColumns = 128;
  return llvm::any_of(loop.getBody()->getOps<MmaOp>(), [](MmaOp mma) {
    auto left = dyn_cast<FragType>(mma.getA().getType());
    return left && (left.getShape()[1] < leastKeys ||
                    mma.getAcc().getType().getShape()[1] < leastColumns);
  });
}

FailureOr<int64_t> attn::warp::doubleBufferOperands(KernelOp kernel,
                                                    bool selective,
                                                    std::string &reason) {
  assert(!kernel.hasRoles() && "the loops of two roles must stay alike");
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (carriesOperand(loop))
      loops.push_back(loop);
  });
  if (loops.empty()) {
    reason = "no loop of step 1 carries an operand of a product in registers";
    return failure();
  }
  int64_t registers =
      shareRegisters(kernel.getWarps(), kernel.getRegisters().value_or(0),
                     kernel.getBlocksPerSM().value_or(1))
          .consumer;
  int64_t numLoops = 0;
  for (scf::ForOp loop : loops) {
    int64_t tiles = countTileRegisters(loop);
    bool ownScores = changesScores(loop);
    int64_t others = otherRegisters + (ownScores ? scoreRegisters : 0);
    if (selective && (isSmall(loop) || ownScores))
      reason = "steps of less than 128 keys or 128 columns of values, or with "
               "a mask or a score function, do not gain";
    else if (tiles + others <= registers)
      numLoops += succeeded(loopUnrollByFactor(loop, /*unrollFactor=*/2));
    else
      reason = llvm::formatv("a lane has {0} registers, two sets of operands "
                             "and the results would take {1} of them and "
                             "leave less than {2}",
                             registers, tiles, others);
  }
  if (numLoops == 0)
    return failure();
  return numLoops;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpDoubleBuffer final
    : attn::SchedulePass<
          attn::warp::impl::WarpDoubleBufferBase<WarpDoubleBuffer>, KernelOp,
          WarpForm::Resident> {
  using Base::Base;

  void transform(RewriterBase &, KernelOp kernel) override {
    std::string reason;
    report("loops", doubleBufferOperands(kernel, selective, reason), reason);
  }
};
} // namespace
