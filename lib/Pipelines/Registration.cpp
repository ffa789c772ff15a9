//===- Registration.cpp - passes and pipelines by name -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"
#include "attn/Conversion/ProcessorPasses.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/GPU.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Pipelines/Raise.h"
#include "attn/Pipelines/Tile.h"
#include "attn/Plan/Passes.h"

using namespace mlir;
using namespace attn;

static bool registerAll() {
  registerAttnTransformsPasses();
  tile::registerTileTransformsPasses();
  warp::registerWarpTransformsPasses();
  plan::registerAttnPlanPasses();
  registerAttnConversionPasses();
  registerAttnProcessorPasses();
  registerRaisePipelines();
  registerTilePipelines();
  registerCPUPipelines();
  registerGPUPipelines();
  return true;
}

void attn::registerPassesAndPipelines() {
  static const bool isDone = registerAll(); // once, whoever asks
  (void)isDone;
}
