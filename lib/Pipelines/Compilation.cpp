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
#include "attn/Target/PTX.h"
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
  // Up to the Warp room each pass is verified: what it must keep is written in
  // our verifiers. Later programs are long and their operations MLIR's, and to
  // verify these after each pass took a third of its time.
  bool isMachine = step == roomName(Room::GPU) || step == roomName(Room::NVVM);
  manager.enableVerifier(!isMachine);
  if (failed(manager.run(op)))
    return failure();
  return success(!isMachine || succeeded(verify(op)));
}

LogicalResult Compilation::leave(Room room,
                                 llvm::function_ref<std::string()> text) {
  return options.onRoom ? options.onRoom(room, text()) : success();
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

LogicalResult Compilation::emitImage() {
  gpu::GPUModuleOp source = kernels();
  {
    TimingScope scope = time("llvm");
    FailureOr<KernelCode> result = KernelCode::translate(source, threads());
    if (failed(result))
      return failure();
    code = std::move(*result);
  }
  return estimateSpills() ? success() : assembleImage();
}

static std::string print(PlanAttr plan) {
  std::string text;
  llvm::raw_string_ostream(text) << plan;
  return text;
}

/// Whether the assembler need not run to know that a plan was not to be picked.
/// Of the kernels of 207 random programs for both targets all spilled that had
/// 57 and more registers live between blocks than there are; one with 56 did
/// not; of 240 more one that had 56 did not. They spilled about 8 bytes for
/// each above 24.
bool Compilation::estimateSpills() {
  constexpr int64_t mostMore = 60, needless = 24, bytesPerRegister = 8;
  if (!picked || options.last != Room::PTX || workload.isBackward ||
      workload.isJvp || workload.elementBytes != 2 ||
      options.cubin == CompileOptions::Cubin::No ||
      findPtxas(options.ptxas).empty())
    return false;
  TimingScope scope = time("llvm");
  for (const plan::PlanCase &entry : plans) {
    plan::Budget budget =
        plan::computeBudget(workload, plan::getTiles(entry.plan),
                            plan::getTarget(entry.plan.getTarget()));
    std::string text = print(entry.plan);
    for (const VariantInfo &variant : artifact.variants)
      for (const KernelInfo &kernel : variant.kernels)
        if (int64_t more =
                code->countLiveRegisters(kernel.entry) - budget.registerLimit;
            variant.plan == text && more > mostMore)
          estimates[text] =
              std::max(estimates[text], (more - needless) * bytesPerRegister);
  }
  return !estimates.empty();
}

LogicalResult Compilation::complete() {
  if (!isEstimated())
    return success();
  estimates.clear();
  return assembleImage();
}

LogicalResult Compilation::assembleImage() {
  if (failed(leave(Room::LLVM, [&] { return code->print(); })))
    return failure();
  if (options.last == Room::LLVM)
    return success();
  {
    TimingScope scope = time("ptx");
    FailureOr<std::string> ptx = code->emitPTX(threads());
    if (failed(ptx))
      return failure();
    artifact.ptx = std::move(*ptx);
    code.reset();
  }
  if (failed(leave(Room::PTX, [&] { return artifact.ptx; })))
    return failure();
  return options.cubin == CompileOptions::Cubin::No ? success() : emitCubin();
}

LogicalResult Compilation::emitCubin() {
  Location loc = getLoc();
  std::string ptxas = findPtxas(options.ptxas);
  if (ptxas.empty()) {
    if (options.cubin == CompileOptions::Cubin::Required ||
        !options.ptxas.empty())
      return emitError(loc)
             << (options.ptxas.empty()
                     ? "no ptxas on the PATH"
                     : "'" + options.ptxas +
                           "' is neither a ptxas nor a CUDA Toolkit with one")
             << ": a cubin needs the CUDA Toolkit, PTX does not";
    return success();
  }
  TimingScope scope = time("ptxas");
  FailureOr<AssembledCubin> cubin =
      assemble(loc, ptxas, artifact.ptx, options.target);
  if (failed(cubin))
    return failure();
  report = std::move(cubin->report);
  artifact.cubin = std::move(cubin->bytes);
  for (VariantInfo &variant : artifact.variants)
    for (KernelInfo &kernel : variant.kernels) {
      const PtxasFigures &figures = report.kernels[kernel.entry];
      kernel.registers = figures.registers;
      kernel.spillStoreBytes = figures.spillStoreBytes;
      kernel.spillLoadBytes = figures.spillLoadBytes;
    }
  return success();
}

LogicalResult Compilation::judge() {
  if (failed(reportPtxas(getLoc(), names.front(), report, options.strict)))
    return failure();
  // A kernel of wgmma that ptxas could not overlap is worse than one for an
  // older GPU.
  for (const std::string &warning : report.warnings)
    if (attn::isSerialized(warning))
      return emitError(getLoc()) << "plan " << plan::printPlanCases(plans)
                                 << " cannot be kept: " << warning;
  return success();
}

bool Compilation::isSerialized() const {
  return llvm::any_of(report.warnings, attn::isSerialized);
}

int64_t Compilation::getSpilledBytes(PlanAttr plan) const {
  std::string text = print(plan);
  if (isEstimated()) {
    auto found = estimates.find(text);
    return found == estimates.end() ? 0 : found->second;
  }
  int64_t bytes = -1;
  for (const VariantInfo &variant : artifact.variants)
    if (variant.plan == text) {
      VariantInfo::CodeFigures figures = variant.figures();
      // What is only loaded was a constant, or an argument.
      bytes = std::max(figures.spillStoreBytes, figures.spillLoadBytes);
    }
  return bytes;
}
