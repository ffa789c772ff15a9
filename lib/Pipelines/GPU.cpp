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

/// The door of the Warp room: memory has its place, constants and unit steps.
static void addPlacing(OpPassManager &functions, StringRef target) {
  warp::WarpAssignResourcesOptions resources;
  if (const TargetInfo *info = findTarget(target.str()))
    resources.sharedLimit = info->sharedBytesPerBlock;
  functions.addPass(warp::createWarpAssignResources(resources));
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
}

void attn::buildTileToWarpPipeline(OpPassManager &functions, StringRef target,
                                   const PassSelection &passes) {
  const TargetInfo *info = findTarget(target.str());
  int64_t sm = info ? info->sm : 0;
  // Kernels are canonicalised once, when everything has its place.
  functions.addPass(createCSEPass());
  functions.addPass(createConvertTileToWarp());
  auto runs = [&](OptionalPass pass) {
    return optionalPasses[size_t(pass)].exists(sm) && passes.runs(pass);
  };
  bool hasRoles = runs(OptionalPass::Specialize);
  if (runs(OptionalPass::DeferSum))
    functions.addPass(warp::createWarpDeferSum());
  if (runs(OptionalPass::Persist) && hasRoles)
    functions.addPass(warp::createWarpPersist());
  if (runs(OptionalPass::OrderTiles))
    functions.addPass(warp::createWarpOrderTiles());
  // Without roles and products in flight there is nothing to win by it.
  if (runs(OptionalPass::DoubleBuffer) && hasRoles &&
      runs(OptionalPass::MakeAsync))
    functions.addPass(warp::createWarpDoubleBuffer(
        {passes.getUse(OptionalPass::DoubleBuffer) == PassUse::Selective}));
  warp::WarpDelayExchangeOptions exchange;
  warp::WarpStageStoresOptions staging;
  warp::WarpDeepenRingsOptions rings;
  warp::WarpShareColumnsOptions columns;
  if (info)
    exchange.sharedLimit = columns.sharedLimit = staging.sharedLimit =
        rings.sharedLimit = info->sharedBytesPerBlock;
  if (hasRoles) {
    functions.addPass(warp::createWarpSpecialize());
    functions.addPass(warp::createWarpShareRegisters());
    if (runs(OptionalPass::DelayExchange))
      functions.addPass(warp::createWarpDelayExchange(exchange));
  } else if (runs(OptionalPass::Buffer)) {
    functions.addPass(warp::createWarpBuffer());
  }
  if (runs(OptionalPass::ShareColumns) && !hasRoles)
    functions.addPass(warp::createWarpShareColumns(columns));
  // What a step refills comes before what a tile stores.
  if (runs(OptionalPass::DeepenRings) && hasRoles) {
    warp::WarpDeepenRingsOptions ofSteps = rings;
    ofSteps.steps = true;
    functions.addPass(warp::createWarpDeepenRings(ofSteps));
  }
  if (runs(OptionalPass::MakeAsync))
    functions.addPass(warp::createWarpMakeAsync());
  // Turns order products in flight.
  if (runs(OptionalPass::InsertTurns) && runs(OptionalPass::MakeAsync))
    functions.addPass(warp::createWarpInsertTurns());
  if (runs(OptionalPass::StageStores))
    functions.addPass(warp::createWarpStageStores(staging));
  if (runs(OptionalPass::DeepenRings))
    functions.addPass(warp::createWarpDeepenRings(rings));
  if (runs(OptionalPass::TestAhead) && hasRoles)
    functions.addPass(warp::createWarpTestAhead(
        {passes.getUse(OptionalPass::TestAhead) == PassUse::Selective}));
  if (runs(OptionalPass::RunBeside) && hasRoles)
    functions.addPass(warp::createWarpRunBeside());
  if (runs(OptionalPass::StartEarly))
    functions.addPass(warp::createWarpStartEarly());
  // Passes before it ask what is computed upon scores.
  if (runs(OptionalPass::ExpandTanh))
    functions.addPass(warp::createWarpExpandTanh());
  if (runs(OptionalPass::TurnEnds) && hasRoles)
    functions.addPass(warp::createWarpTurnEnds());
  addPlacing(functions, target);
}

void attn::buildPlaceKernelsPipeline(OpPassManager &manager, StringRef target) {
  addPlacing(manager.nest<func::FuncOp>(), target);
}

void attn::buildWarpToGPUPipeline(OpPassManager &manager, StringRef target) {
  ConvertWarpToGPUOptions options;
  options.chip = target.str();
  // The first with additions of vectors to memory.
  if (target == "sm_90a")
    options.features = "+ptx81";
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

/// From attention to the nvvm dialect, for `target`.
static void buildGPUPipeline(OpPassManager &manager, StringRef target,
                             const TileOptions &options,
                             const PassSwitches &warpPasses) {
  PassSelection passes = options.selection(target);
  warpPasses.apply(passes);
  buildAttnToTilePipeline(manager, target, options, passes);
  buildTileToWarpPipeline(manager.nest<func::FuncOp>(), target, passes);
  buildWarpToGPUPipeline(manager, target);
  buildGPUToNVVMPipeline(manager);
}

void attn::buildSM80Pipeline(OpPassManager &manager,
                             const SM80Options &options) {
  buildGPUPipeline(manager, "sm_80", options, options.warpPasses);
}

void attn::buildSM90Pipeline(OpPassManager &manager,
                             const SM90Options &options) {
  buildGPUPipeline(manager, "sm_90a", options, options.warpPasses);
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
