//===- WarpToGPU.cpp - the kernel as gpu dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversion has four steps, and its files are of five kinds; each includes
// only those of the lines before it.
//
// 1. `outlineKernel` moves the body of a `warp.kernel` into a `gpu.func`.
// 2. Regions become branches: roles, turns, groups that see fewer keys, early
//    exits.
// 3. One dialect conversion replaces every value of a warp type: a fragment by
//    the registers that one lane holds, a slot or a ring by its byte address in
//    shared memory.
// 4. Scalar math becomes instructions of the GPU.
//
//   numbers      Integers, View, SharedMemory, MaskWords, Offsets, Remainders,
//                Fragments
//   atoms        Atoms/*: one instruction, or one batch of them, each
//   roles        Turns, Roles
//   operations   Elementwise, Math, Products, Copies, Mailbox, Searches,
//                Gathers, Stores, SplatStores, StagedStores
//   the kernel   Kernel, WarpToGPU
//
// What makes its code faster and no other is a pass of its own that comes after
// it: ShareWarpNumber, HideInductions, OrderIntegers.
//
//===----------------------------------------------------------------------===//

#include "Bins.h"
#include "Copies.h"
#include "Elementwise.h"
#include "Fragments.h"
#include "Gathers.h"
#include "Integers.h"
#include "Kernel.h"
#include "Mailbox.h"
#include "MaskWords.h"
#include "Math.h"
#include "Offsets.h"
#include "PackedTiles.h"
#include "Products.h"
#include "Roles.h"
#include "RowProducts.h"
#include "Searches.h"
#include "SlotReader.h"
#include "SplatStores.h"
#include "StagedStores.h"
#include "Stores.h"
#include "Turns.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/Identifier.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTWARPTOGPU
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// There is none in a role: all warps go through the same loops.
static void lowerGroupBounds(RewriterBase &rewriter, gpu::GPUFuncOp function) {
  function.walk([&](GroupBoundsOp bounds) {
    rewriter.replaceOp(bounds, bounds.getBounds());
  });
}

/// Each lane asks for its own number; then they vote.
static void lowerVotes(RewriterBase &rewriter, gpu::GPUFuncOp function) {
  function.walk([&](AllOp all) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(all);
    Integers ints(rewriter, all.getLoc());
    Block &body = all.getCondition().front();
    Operation *yield = body.getTerminator();
    Value mine = all.getYielded();
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&body, all, ints.toIndex(ints.lane()));
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(all, rewriter.getI1Type(),
                                                  ints.constant(-1), mine,
                                                  NVVM::VoteSyncKind::all);
  });
}

/// What leads to integers and truth values made of floats: rounded as it is
/// written. Reads a function before anything of it is lowered.
static DecisionPaths findDecisionPaths(gpu::GPUFuncOp function) {
  auto isCast = [](Operation *op) {
    auto cast = dyn_cast<CastOp>(op);
    return cast &&
           (cast.getKind() == CastKind::FPToSI ||
            cast.getKind() == CastKind::FPToUI ||
            (cast.getKind() == CastKind::Bitcast &&
             isa<FloatType>(cast.getValue().getType().getElementType())));
  };
  return DecisionPaths::find(
      function.getBody(),
      [&](Operation *op) { return isDecision(op) || isCast(op); },
      [](Operation *op) {
        return isa<SplatOp, SelectOp, CastOp, BroadcastOp>(op);
      });
}

static bool isHopperOrLater(StringRef chip) {
  unsigned number = 0;
  chip.consume_front("sm_");
  return !chip.consumeInteger(10, number) && number >= 90;
}

/// Whether special functions take longer than products, so that multiplications
/// in their place gain time: with a softcap 64 columns are 1.05 to 1.18 times
/// as fast, 128 1.00 to 1.03, and 256 were 0.93 to 0.98 (H200).
static bool waitsForFunctions(gpu::GPUFuncOp function, StringRef chip) {
  constexpr int64_t mostColumns = 128;
  WalkResult products = function.walk([](ProductOp product) {
    ArrayRef<int64_t> tile = product.getB().getType().getShape();
    return *llvm::max_element(tile) > mostColumns ? WalkResult::interrupt()
                                                  : WalkResult::advance();
  });
  return isHopperOrLater(chip) && !products.wasInterrupted();
}

static LogicalResult lowerKernel(RewriterBase &rewriter, OutlinedKernel &kernel,
                                 StringRef chip) {
  MLIRContext *context = kernel.function->getContext();
  ProductsInFlight products = ProductsInFlight::plan(kernel.function);
  DecisionPaths exact = findDecisionPaths(kernel.function);
  Positions positions = Positions::plan(kernel.function, exact);
  SplatStores splatStores = SplatStores::plan(kernel.function);
  lowerExactMath(rewriter, kernel.function, exact);
  lowerSharedPowers(rewriter, kernel.function);
  lowerGroupBounds(rewriter, kernel.function);
  lowerVotes(rewriter, kernel.function);
  if (failed(lowerTurns(rewriter, kernel.function)))
    return failure();
  lowerRoles(rewriter, kernel.function, kernel.roles);
  Block *body = &kernel.function.getBody().front();
  nestExits(rewriter, body);
  if (kernel.waitsAtEnd) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(body->getTerminator());
    NVVM::GriddepcontrolOp::create(rewriter, kernel.function.getLoc(),
                                   NVVM::GridDepActionKind::wait);
  }

  TypeConverter converter;
  populateFragmentTypeConversions(converter);

  RewritePatternSet patterns(context);
  populateFragmentPatterns(converter, patterns, positions);
  populateElementwisePatterns(converter, patterns, positions, exact);
  populateCopyPatterns(converter, patterns, kernel.awaits, kernel.storeFrags,
                       kernel.roles);
  populateMailboxPatterns(converter, patterns, kernel.roles);
  populateSearchPatterns(converter, patterns);
  populateGatherPatterns(converter, patterns, positions);
  populateStorePatterns(converter, patterns);
  populateRowProductPatterns(converter, patterns);
  populateBinPatterns(converter, patterns);
  // One instruction adds four floats to memory.
  populatePackedTilePatterns(converter, patterns, isHopperOrLater(chip));
  populateSlotReadPatterns(converter, patterns);
  populateSplatStorePatterns(converter, patterns, splatStores);
  populateStagedStorePatterns(converter, patterns, kernel.roles);
  populateProductPatterns(converter, patterns, products);

  ConversionTarget target(*context);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  target.addIllegalDialect<WarpDialect>();
  target.addLegalOp<MaskWordOp>();
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });

  ConversionConfig config;
  config.allowPatternRollback = false;
  // Folding may ask for constants of fragments, which there are none of.
  config.foldingMode = DialectConversionFoldingMode::Never;
  LogicalResult result = applyPartialConversion(kernel.function, target,
                                                std::move(patterns), config);
  lowerMaskWords(rewriter, kernel.function);
  kernel.function.walk([](scf::IfOp branch) {
    branch->removeAttr(kFirstWarpAttrName);
    branch->removeAttr(kAloneAttrName);
  });
  return result;
}

static bool isIeee(func::FuncOp host) {
  auto numerics =
      host->getAttrOfType<NumericsAttr>(AttnDialect::kNumericsAttrName);
  return numerics && numerics.getF32Products() == F32Products::IEEE;
}

/// Workspaces are arguments of every kernel, those of later ones too.
static LogicalResult allocateBefore(RewriterBase &rewriter, KernelOp first) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == first->getBlock() && first->isBeforeInBlock(op);
  };
  SetVector<Operation *> moved;
  for (auto alloc : first->getBlock()->getOps<memref::AllocOp>())
    if (options.filter(alloc) &&
        failed(getBackwardSlice(alloc.getOperation(), &moved, options)))
      return alloc.emitError("cannot find out what its size is made of");
  for (Operation *op : moved)
    if (!isa<memref::AllocOp>(op) && !isMemoryEffectFree(op))
      return op->emitError(
          "makes the size of a workspace, expected one that is "
          "known before the first kernel");
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, first);
  return success();
}

namespace {

struct ConvertWarpToGPU final
    : attn::impl::ConvertWarpToGPUBase<ConvertWarpToGPU> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requireForm(module, WarpForm::Placed, getArgument())))
      return signalPassFailure();
    IRRewriter rewriter(module.getContext());
    bool any = false;
    for (func::FuncOp host :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (host.isExternal())
        continue;
      FailureOr<SmallVector<KernelOp>> kernels = findKernels(host);
      if (failed(kernels) ||
          (!kernels->empty() &&
           failed(allocateBefore(rewriter, kernels->front()))))
        return signalPassFailure();
      for (KernelOp kernel : *kernels) {
        std::string name = ptxIdentifier(kernel.getSymName().str());
        FailureOr<OutlinedKernel> outlined =
            outlineKernel(rewriter, host, kernel, name, {chip, features});
        if (failed(outlined))
          return signalPassFailure();
        bool bySteps = waitsForFunctions(outlined->function, chip);
        if (failed(lowerKernel(rewriter, *outlined, chip)) ||
            failed(lowerMath(outlined->function, isIeee(host), bySteps)))
          return signalPassFailure();
        any = true;
      }
    }
    if (any)
      module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                      rewriter.getUnitAttr());
  }
};

} // namespace
