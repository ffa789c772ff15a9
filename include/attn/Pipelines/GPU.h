//===- GPU.h - the pipelines from attention to GPUs -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_GPU_H
#define ATTN_PIPELINES_GPU_H

#include "attn/Pipelines/Tile.h"
#include "attn/Support/LLVM.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// A tile kernel with expanded softmax to a placed warp kernel for `target`.
void buildTileToWarpPipeline(OpPassManager &functions, StringRef target,
                             const PassSelection &passes);

/// Warp kernels to placed ones.
void buildPlaceKernelsPipeline(OpPassManager &manager, StringRef target);

/// A placed warp kernel to `gpu.module` and `gpu.launch_func`.
void buildWarpToGPUPipeline(OpPassManager &manager, StringRef target);

/// Every `gpu.module` to the nvvm and llvm dialects.
void buildGPUToNVVMPipeline(OpPassManager &manager);

struct SM80Options : TileOptions {
  PassSwitches warpPasses{*this, "warp", 80};
};

/// `attn-sm80`: attention on tensors to kernels in the nvvm dialect.
void buildSM80Pipeline(OpPassManager &manager, const SM80Options &options);

struct SM90Options : TileOptions {
  PassSwitches warpPasses{*this, "warp", 90};
};

/// `attn-sm90`: the same for sm_90a.
void buildSM90Pipeline(OpPassManager &manager, const SM90Options &options);

/// Registers the pipelines of this file by name.
void registerGPUPipelines();

} // namespace attn

#endif // ATTN_PIPELINES_GPU_H
