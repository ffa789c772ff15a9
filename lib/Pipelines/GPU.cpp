//===- GPU.cpp - the pipelines from attention to kernels for a GPU -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/GPU.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

/// The first compute capability with TMA and wgmma.
static constexpr int64_t hopper = 90;

void attn::buildTileToWarpPipeline(OpPassManager &manager, StringRef target,
                                   const WarpOptions &options) {
  const TargetInfo *info = findTarget(target.str());
  bool isHopper = info && info->sm >= hopper;
  OpPassManager &functions = manager.nest<func::FuncOp>();
  // No canonicalisation before this conversion: it would fold unit dimensions
  // of the grid and loops of one step, which the next passes look for.
  functions.addPass(createCSEPass());
  functions.addPass(createConvertTileToWarp());
  if (options.deferSum)
    functions.addPass(warp::createWarpDeferSum());
  if (isHopper && options.persist && options.specialize)
    functions.addPass(warp::createWarpPersist());
  // Without roles and products in flight there is nothing to win by it.
  if (isHopper && options.doubleBuffer != DoubleBuffering::Off &&
      options.specialize && options.makeAsync)
    functions.addPass(warp::createWarpDoubleBuffer(
        {options.doubleBuffer == DoubleBuffering::Selective}));
  if (isHopper && options.specialize)
    functions.addPass(warp::createWarpSpecialize());
  else if (options.buffer)
    functions.addPass(warp::createWarpBuffer());
  if (isHopper && options.makeAsync)
    functions.addPass(warp::createWarpMakeAsync());
  if (isHopper && options.insertTurns)
    functions.addPass(warp::createWarpInsertTurns());
  warp::WarpStageStoresOptions staging;
  warp::WarpAssignResourcesOptions resources;
  if (info)
    staging.sharedLimit = resources.sharedLimit = info->sharedBytesPerBlock;
  if (options.stageStores)
    functions.addPass(warp::createWarpStageStores(staging));
  if (isHopper && options.deepenRings)
    functions.addPass(warp::createWarpDeepenRings({resources.sharedLimit}));
  functions.addPass(warp::createWarpAssignResources(resources));
  // The door of the Warp room: constants and unit steps.
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
}

void attn::buildWarpToGPUPipeline(OpPassManager &manager, StringRef target) {
  ConvertWarpToGPUOptions options;
  options.chip = target.str();
  manager.addPass(createConvertWarpToGPU(options));
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createGPUShareWarpNumber());
  kernels.addPass(createGPUHideInductions());
  kernels.addPass(createGPUOrderIntegers());
  // Each op computed the lane and the addresses it needs. What does not change
  // in a loop is computed once for all loops: LLVM alone would compute it in
  // front of each, and keep what that needs in registers.
  kernels.addNestedPass<gpu::GPUFuncOp>(createLoopInvariantCodeMotionPass());
  kernels.addPass(createCSEPass());
  manager.addPass(createGPUAddRelayouts());
}

void attn::buildGPUToNVVMPipeline(OpPassManager &manager) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.allowPatternRollback = false;
  kernels.addPass(createConvertGpuOpsToNVVMOps(options));
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

void attn::buildSM80Pipeline(OpPassManager &manager,
                             const SM80Options &options) {
  constexpr StringLiteral target = "sm_80";
  TileOptions tile(options);
  tile.target = target.str();
  buildAttnToTilePipeline(manager, tile);
  WarpOptions warp;
  warp.deferSum = options.deferSum;
  warp.buffer = options.buffer;
  warp.stageStores = options.stageStores;
  buildTileToWarpPipeline(manager, target, warp);
  buildWarpToGPUPipeline(manager, target);
  buildGPUToNVVMPipeline(manager);
}

void attn::buildSM90Pipeline(OpPassManager &manager,
                             const SM90Options &options) {
  constexpr StringLiteral target = "sm_90a";
  TileOptions tile(options);
  tile.target = target.str();
  buildAttnToTilePipeline(manager, tile);
  WarpOptions warp;
  warp.deferSum = options.deferSum;
  warp.buffer = options.buffer;
  warp.stageStores = options.stageStores;
  warp.persist = options.persist;
  warp.doubleBuffer = options.doubleBuffer;
  warp.specialize = options.specialize;
  warp.makeAsync = options.makeAsync;
  warp.insertTurns = options.insertTurns;
  warp.deepenRings = options.deepenRings;
  buildTileToWarpPipeline(manager, target, warp);
  buildWarpToGPUPipeline(manager, target);
  buildGPUToNVVMPipeline(manager);
}

void attn::registerGPUPipelines() {
  PassPipelineRegistration<SM90Options>(
      "attn-sm90", "Attention on tensors to kernels for sm_90a (nvvm dialect)",
      buildSM90Pipeline);
  PassPipelineRegistration<SM80Options>(
      "attn-sm80", "Attention on tensors to kernels for sm_80 (nvvm dialect)",
      buildSM80Pipeline);
  PassPipelineRegistration<>("attn-gpu-to-nvvm",
                             "Kernels in gpu modules to the nvvm dialect",
                             buildGPUToNVVMPipeline);
}
