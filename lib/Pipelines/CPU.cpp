//===- CPU.cpp - pipelines that end on the host processor -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/CPU.h"

#include "attn/Conversion/Passes.h"
#include "attn/Conversion/ProcessorPasses.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

/// Structured loops over memrefs and scalars to the llvm dialect.
static void addLoopsToLLVM(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createConvertMathToFuncs());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  // Not every processor has f16 and bf16, and no C library helps out.
  manager.addPass(createConvertNarrowFloats());
  manager.addPass(arith::createArithExpandOpsPass());
  // log1p from the C library: log(1 + x) is wrong near 0.
  ConvertMathToLLVMPassOptions math;
  math.approximateLog1p = false;
  manager.addPass(createConvertMathToLLVMPass(math));
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createLLVMNarrowFloatsToBits());
}

void attn::buildTileToLLVMPipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createConvertTileToLoops());
  addLoopsToLLVM(manager);
}

void attn::buildLinalgToLLVMPipeline(OpPassManager &manager) {
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  bufferization::BufferResultsToOutParamsPassOptions results;
  results.modifyPublicFunctions = true;
  manager.addPass(bufferization::createBufferResultsToOutParamsPass(results));
  bufferization::buildBufferDeallocationPipeline(manager);
  manager.addPass(createConvertBufferizationToMemRefPass());
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addNestedPass<func::FuncOp>(createConvertCopyToLoops());
  addLoopsToLLVM(manager);
}

void attn::buildOraclePipeline(OpPassManager &manager,
                               const OracleOptions &options) {
  manager.addPass(createAttnExpandVariantsPass());
  manager.addPass(createAttnExpandMathPass());
  ConvertAttnToLinalgOptions convert;
  convert.precision = options.precision;
  manager.addPass(createConvertAttnToLinalg(convert));
  buildLinalgToLLVMPipeline(manager);
}

void attn::buildCPUPipeline(OpPassManager &manager,
                            const TileOptions &options) {
  buildAttnToTilePipeline(manager, "cpu", options, options.selection("cpu"));
  buildTileToLLVMPipeline(manager);
}

void attn::registerCPUPipelines() {
  PassPipelineRegistration<>(
      "convert-tile-to-llvm",
      "Tile kernels to the llvm dialect for the host processor: loops over "
      "buffers, no vectors",
      buildTileToLLVMPipeline);
  PassPipelineRegistration<>(
      "attn-linalg-to-llvm",
      "Functions on tensors with linalg bodies to the llvm dialect for the "
      "host processor; results become arguments",
      buildLinalgToLLVMPipeline);
  PassPipelineRegistration<TileOptions>(
      "attn-cpu",
      "Attention on tensors to the llvm dialect for the host processor, tiled",
      buildCPUPipeline);
  PassPipelineRegistration<OracleOptions>(
      "attn-oracle",
      "Attention on tensors to the llvm dialect for the host processor, as its "
      "unfused definition",
      buildOraclePipeline);
}
