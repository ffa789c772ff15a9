//===- CPU.h - pipelines that end on the host processor -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_CPU_H
#define ATTN_PIPELINES_CPU_H

#include "attn/Conversion/AttnToLinalg.h"
#include "attn/Pipelines/Tile.h"
#include "attn/Support/LLVM.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// `convert-tile-to-llvm`: tile kernels (functions on memrefs) to the llvm
/// dialect, through loops.
void buildTileToLLVMPipeline(OpPassManager &manager);

/// Functions on tensors with linalg bodies to the llvm dialect; the results
/// become memref arguments at the end, contiguous.
void buildLinalgToLLVMPipeline(OpPassManager &manager);

struct OracleOptions : public PassPipelineOptions<OracleOptions> {
  Option<OraclePrecision> precision{
      *this, "precision", llvm::cl::desc("what the definition is evaluated in"),
      llvm::cl::values(clEnumValN(OraclePrecision::F64, "f64",
                                  "everything in f64 (r of C20)"),
                       clEnumValN(OraclePrecision::Score, "score",
                                  "the score region in f32, all else in f64 (s "
                                  "of C20)"),
                       clEnumValN(OraclePrecision::Saved, "saved",
                                  "everything in f64, gradients from output as "
                                  "it was saved (C16)"),
                       clEnumValN(OraclePrecision::Input, "input",
                                  "every step rounded to the input type (t0 "
                                  "of C20)")),
      llvm::cl::init(OraclePrecision::F64)};
};

/// `attn-oracle`: attention on tensors to the llvm dialect, as its definition
/// says, unfused.
void buildOraclePipeline(OpPassManager &manager, const OracleOptions &options);

/// `attn-cpu`: attention on tensors to the llvm dialect, tiled.
void buildCPUPipeline(OpPassManager &manager, const TileOptions &options);

/// Registers the pipelines of this file by name.
void registerCPUPipelines();

} // namespace attn

#endif // ATTN_PIPELINES_CPU_H
