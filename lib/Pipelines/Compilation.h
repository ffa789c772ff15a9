//===- Compilation.h - one function through the rooms -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_COMPILATION_H
#define ATTN_LIB_PIPELINES_COMPILATION_H

#include "attn/Pipelines/Compile.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"
#include "attn/Target/PTX.h"
#include "attn/Target/Ptxas.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn {

/// One compilation: the rooms in order.
class Compilation {
public:
  Compilation(ModuleOp module, const CompileOptions &options)
      : options(options), module(module.clone()) {}

  /// All rooms that are wanted; what the assembler said is not judged yet.
  LogicalResult run();
  /// Assembles what was not, because it will spill.
  LogicalResult complete();
  /// Keeps the first of several plans, for all sizes, and assembles its
  /// kernels.
  LogicalResult keepFirstPlan();
  /// Assembles again with fewer registers for speed, which may spill less.
  LogicalResult assembleSparingly();
  /// Says what the assembler did: spills and warnings, and what cannot be kept.
  LogicalResult judge();
  Artifact takeArtifact() { return std::move(artifact); }

  /// The plans with their conditions, also those that are not compiled.
  FailureOr<std::string> resolvePlan();
  /// Which of them is, of several; nothing: all.
  std::optional<size_t> getVariant() const;
  const std::optional<RulePart> &getPart() const { return artifact.partOf; }
  /// Those that are compiled.
  ArrayRef<plan::PlanCase> getPlans() const { return plans; }
  /// Whether the plans are the compiler's choice and nobody's wish.
  bool isPicked() const { return picked; }
  const plan::Workload &getWorkload() const { return workload; }
  Location getLoc() { return host(names.front()).getLoc(); }

  /// What the kernels of a plan spill, in bytes; -1 where no assembler ran. An
  /// estimate, where it was not run because one of the plans, which was picked,
  /// will spill much: that takes it longest.
  int64_t getSpilledBytes(PlanAttr plan) const;
  bool isEstimated() const { return !estimates.empty(); }
  /// What the kernels of a plan that was picked need; nothing where an estimate
  /// would have no use for it.
  std::optional<plan::RegisterNeed> getNeed(PlanAttr plan) const;
  /// Whether the assembler gave up on products in flight.
  bool isSerialized() const;

private:
  using Build = llvm::function_ref<void(OpPassManager &)>;

  LogicalResult begin();
  LogicalResult lowerToWarp();
  LogicalResult placeProgram();
  FailureOr<SmallVector<plan::PlanCase>> choosePlans();
  void keepPlans(SmallVector<plan::PlanCase> cases);
  LogicalResult describeLaunches();
  LogicalResult runPasses(StringRef step, Operation *op, Build build);
  auto runIn(Room room) {
    return [this, room](Operation *op, Build build) {
      return runPasses(roomName(room), op, build);
    };
  }
  LogicalResult leave(Room room, llvm::function_ref<std::string()> text);
  LogicalResult leave(Room room) {
    return leave(room, [&] { return printProgram(*module); });
  }
  LogicalResult emitImage();
  bool estimateSpills();
  std::optional<plan::RegisterNeed> measureNeed(const plan::PlanCase &entry);
  LogicalResult assembleImage();
  LogicalResult emitCubin();
  void keepCubin(AssembledCubin cubin);
  LogicalResult assembleForFewerBlocks(StringRef ptxas, AssembledCubin &cubin);
  gpu::GPUModuleOp kernels();
  unsigned threads() const;
  func::FuncOp host(StringRef name) {
    return this->module->lookupSymbol<func::FuncOp>(name);
  }
  TimingScope time(StringRef step) {
    return options.timing ? options.timing->nest(step) : TimingScope();
  }

  const CompileOptions &options;
  OwningOpRef<ModuleOp> module;
  Artifact artifact;
  /// The functions of the variants; the first one is the source's.
  SmallVector<std::string> names;
  SmallVector<plan::PlanCase> plans;
  plan::Workload workload;
  /// What is not assembled yet, and what each of its plans will spill.
  std::optional<KernelCode> code;
  std::map<std::string, int64_t> estimates;
  std::map<std::string, plan::RegisterNeed> needs;
  PtxasReport report;
  bool isProgram = false; // of the Warp room
  bool picked = false;
};

} // namespace attn

#endif // ATTN_LIB_PIPELINES_COMPILATION_H
