//===- Compilation.cpp - one function through the rooms -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Pipelines/ArgumentViews.h"
#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Pipelines/GPU.h"
#include "attn/Pipelines/KernelList.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Pipelines/Tile.h"
#include "attn/Pipelines/Variants.h"
#include "attn/Support/TargetInfo.h"
#include "attn/Support/Version.h"
#include "attn/Target/Jobs.h"
#include "attn/Target/LaunchRule.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace attn;

/// Checks what was asked for and describes the function.
LogicalResult Compilation::begin() {
  const TargetInfo *target = findTarget(options.target);
  if (!target || target->sm == 0)
    return module->emitError("unknown GPU '")
           << options.target << "', expected sm_80 or sm_90a";
  FailureOr<func::FuncOp> function = findFunction(*module, options.function);
  if (failed(function))
    return failure();
  isProgram = isWarpProgram(*function);
  if (isProgram && options.last < Room::Warp)
    return function->emitError("is written in the Warp room, which comes after "
                               "the room that is wanted");
  bool hasPasses =
      !options.passes.disabled.empty() || !options.passes.enabled.empty();
  if (isProgram && (!options.plan.empty() || hasPasses))
    return function->emitError("is written in the Warp room, expected no ")
           << (hasPasses ? "optional passes" : "plan") << " for it";
  if (failed(isProgram ? describeWarpProgram(*function, artifact)
                       : describeSignature(*function, artifact)) ||
      (!isProgram && failed(absorbArgumentViews(*function))))
    return failure();
  names = {function->getName().str()};
  artifact.target = options.target;
  artifact.compilerVersion =
      std::string(versionString) + " (LLVM " + llvmVersionString + ")";
  return success();
}

LogicalResult Compilation::runPasses(StringRef step, Operation *op,
                                     Build build) {
  PassManager manager(op->getName());
  build(manager);
  TimingScope scope = time(step);
  if (options.timing)
    manager.enableTiming(scope);
  if (options.configure && failed(options.configure(manager)))
    return failure();
  // Once for a room, not after each pass: that took a third of the time of the
  // last rooms, whose programs are long, and a tenth up to the Warp room. The
  // pipelines of attn-opt, by which passes are tested, do so after each.
  manager.enableVerifier(false);
  if (failed(manager.run(op)))
    return failure();
  return verify(op);
}

LogicalResult Compilation::leave(Room room,
                                 llvm::function_ref<std::string()> text) {
  if (!options.onRoom || room < options.firstShown)
    return success();
  return options.onRoom(room, text());
}

unsigned Compilation::threads() const {
  return options.threads != 0 ? options.threads : countProcessors();
}

gpu::GPUModuleOp Compilation::kernels() {
  // All kernels are in one module.
  auto launches = host(names.front()).getOps<gpu::LaunchFuncOp>();
  return module->lookupSymbol<gpu::GPUModuleOp>(
      (*launches.begin()).getKernelModuleName());
}

/// Expands the attention, and chooses a plan for each range of sizes.
FailureOr<SmallVector<plan::PlanCase>> Compilation::choosePlans() {
  if (failed(runPasses("expand", *module, buildExpandPipeline)))
    return failure();
  func::FuncOp function = host(names.front());
  for (auto other :
       llvm::make_early_inc_range(this->module->getOps<func::FuncOp>()))
    if (other != function)
      other.erase();
  plan::PlanRequest request{*symbolizeTargetKind(options.target),
                            options.plan,
                            options.results,
                            options.gpu,
                            options.passes,
                            options.sizes.has_value()};
  FailureOr<SmallVector<plan::PlanCase>> cases = failure();
  function.walk([&](ScoredOp op) {
    picked =
        options.isPlanPicked ||
        (options.plan.empty() && options.results.empty() && !op.getPlanAttr());
    workload = plan::getWorkload(op);
    cases = plan::choosePlans(op, request);
  });
  return cases;
}

/// Leaves the plan for the sizes that are wanted.
void Compilation::keepPlans(SmallVector<plan::PlanCase> cases) {
  plans = std::move(cases);
  artifact.partOf = keepVariant(plans, options.sizes, options.variant);
}

std::optional<size_t> Compilation::getVariant() const {
  if (!artifact.partOf)
    return std::nullopt;
  return artifact.partOf->variant;
}

FailureOr<std::string> Compilation::resolvePlan() {
  if (failed(begin()))
    return failure();
  if (isProgram)
    return std::string(); // it has none
  FailureOr<SmallVector<plan::PlanCase>> cases = choosePlans();
  if (failed(cases))
    return failure();
  keepPlans(*cases);
  return plan::printPlanCases(*cases);
}

LogicalResult Compilation::describeLaunches() {
  for (auto [name, variant] : llvm::zip_equal(names, artifact.variants))
    if (failed(describeLaunch(host(name), artifact, variant)))
      return failure();
  return success();
}

/// From the Attn room, as far as is wanted.
LogicalResult Compilation::lowerToWarp() {
  if (failed(leave(Room::Attn)))
    return failure();
  if (options.last == Room::Attn)
    return success();

  FailureOr<SmallVector<plan::PlanCase>> cases = choosePlans();
  if (failed(cases))
    return failure();
  keepPlans(std::move(*cases));
  if (artifact.partOf)
    emitRemark(getLoc()) << "compiled in variant " << artifact.partOf->variant
                         << " of '" << artifact.partOf->rule.print() << "'";
  names = splitVariants(host(names.front()), plans, artifact);
  if (failed(lowerPlannedToTile(*module, runIn(Room::Tile))) ||
      failed(leave(Room::Tile)))
    return failure();
  for (auto [name, variant] : llvm::zip_equal(names, artifact.variants))
    describeKernels(host(name), artifact, variant);
  if (options.last == Room::Tile)
    return success();
  auto build = [&](OpPassManager &functions, const PassSelection &passes) {
    buildTileToWarpPipeline(functions, options.target, passes);
  };
  if (failed(runSchedules(*module, runIn(Room::Warp), build)))
    return failure();
  return leave(Room::Warp);
}

/// A program that was written in the Warp room.
LogicalResult Compilation::placeProgram() {
  // Roles copy by TMA, wgmma reads panels.
  bool isHopper = findTarget(options.target)->hasWarpgroups;
  WalkResult walk = host(names.front()).walk([&](Operation *op) {
    auto ring = dyn_cast<warp::RingOp>(op);
    auto alloc = dyn_cast<warp::AllocOp>(op);
    bool hasPanels = (ring && ring.getRing().getType().getPanelBytes() != 0) ||
                     (alloc && alloc.getSlot().getType().hasPanels());
    if (isHopper || !(isa<warp::RoleOp>(op) || hasPanels))
      return WalkResult::advance();
    op->emitOpError("is for sm_90a, got target ") << options.target;
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted() ||
      failed(
          runPasses(roomName(Room::Warp), *module, [&](OpPassManager &manager) {
            buildPlaceKernelsPipeline(manager, options.target);
          })))
    return failure();
  return leave(Room::Warp);
}

LogicalResult Compilation::run() {
  if (failed(begin()) || failed(isProgram ? placeProgram() : lowerToWarp()))
    return failure();
  if (options.last <= Room::Warp)
    return success();

  if (failed(
          runPasses(roomName(Room::GPU), *module, [&](OpPassManager &manager) {
            buildWarpToGPUPipeline(manager, options.target);
          })))
    return failure();
  if (names.size() > 1)
    joinKernels(*module);
  if (failed(leave(Room::GPU)) || failed(describeLaunches()))
    return failure();
  if (options.last == Room::GPU)
    return success();

  if (failed(
          runPasses(roomName(Room::NVVM), *module, buildGPUToNVVMPipeline)) ||
      failed(leave(Room::NVVM)))
    return failure();
  return options.last == Room::NVVM ? success() : emitImage();
}
