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

/// Which loops warp-double-buffer takes: none, those that gain, or all.
enum class DoubleBuffering { Off, Selective, Everywhere };

/// Which of the optional passes of the Warp room run. Each may be dropped:
/// slower, not wrong. Only sm_90a has persist and those behind it; warp-buffer
/// runs there where warp-specialize does not.
struct WarpOptions {
  bool deferSum = true, buffer = true, stageStores = true;
  bool persist = true, specialize = true, makeAsync = true, insertTurns = true;
  bool deepenRings = true;
  DoubleBuffering doubleBuffer = DoubleBuffering::Selective;
};

/// A tile kernel with expanded softmax to a placed warp kernel for `target`.
void buildTileToWarpPipeline(OpPassManager &manager, StringRef target,
                             const WarpOptions &options = {});

/// A placed warp kernel to `gpu.module` and `gpu.launch_func`.
void buildWarpToGPUPipeline(OpPassManager &manager, StringRef target);

/// Every `gpu.module` to the nvvm and llvm dialects.
void buildGPUToNVVMPipeline(OpPassManager &manager);

/// The passes that kernels for sm_80 take.
struct SM80Options : TileOptions {
  SM80Options() { reverseKeys = lazyMax = true; }
  Option<bool> deferSum{*this, "defer-sum",
                        llvm::cl::desc("run warp-defer-sum"),
                        llvm::cl::init(true)};
  Option<bool> buffer{*this, "buffer", llvm::cl::desc("run warp-buffer"),
                      llvm::cl::init(true)};
  Option<bool> stageStores{*this, "stage-stores",
                           llvm::cl::desc("run warp-stage-stores"),
                           llvm::cl::init(true)};
};

/// `attn-sm80`: attention on tensors to kernels in the nvvm dialect.
void buildSM80Pipeline(OpPassManager &manager, const SM80Options &options);

struct SM90Options : SM80Options {
  SM90Options() { overlapProducts = groupBounds = true; }
  Option<bool> persist{*this, "persist", llvm::cl::desc("run warp-persist"),
                       llvm::cl::init(true)};
  Option<DoubleBuffering> doubleBuffer{
      *this, "double-buffer", llvm::cl::desc("run warp-double-buffer"),
      llvm::cl::values(clEnumValN(DoubleBuffering::Off, "off", "on no loop"),
                       clEnumValN(DoubleBuffering::Selective, "selective",
                                  "on loops that gain"),
                       clEnumValN(DoubleBuffering::Everywhere, "everywhere",
                                  "on all that have the registers")),
      llvm::cl::init(DoubleBuffering::Selective)};
  Option<bool> specialize{*this, "specialize",
                          llvm::cl::desc("run warp-specialize"),
                          llvm::cl::init(true)};
  Option<bool> makeAsync{*this, "make-async",
                         llvm::cl::desc("run warp-make-async"),
                         llvm::cl::init(true)};
  Option<bool> insertTurns{*this, "insert-turns",
                           llvm::cl::desc("run warp-insert-turns"),
                           llvm::cl::init(true)};
  Option<bool> deepenRings{*this, "deepen-rings",
                           llvm::cl::desc("run warp-deepen-rings"),
                           llvm::cl::init(true)};
};

/// `attn-sm90`: the same for sm_90a.
void buildSM90Pipeline(OpPassManager &manager, const SM90Options &options);

/// Registers the pipelines of this file by name.
void registerGPUPipelines();

} // namespace attn

#endif // ATTN_PIPELINES_GPU_H
