//===- Registration.cpp - dialects and passes by name -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Plan/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

using namespace mlir;

void attn::registerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<AttnDialect, tile::TileDialect, warp::WarpDialect>();
}

void attn::registerPassesAndPipelines() {
  registerAttnTransformsPasses();
  tile::registerTileTransformsPasses();
  warp::registerWarpTransformsPasses();
  plan::registerAttnPlanPasses();
  registerAttnConversionPasses();
}
