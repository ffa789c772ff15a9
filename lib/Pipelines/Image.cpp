//===- Image.cpp - the kernels of a compilation as machine code -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "attn/Support/TargetInfo.h"
#include "attn/Target/Ptxas.h"

using namespace mlir;
using namespace attn;

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

/// Of the kernel that lacks most.
std::optional<plan::RegisterNeed>
Compilation::measureNeed(const plan::PlanCase &entry) {
  plan::Budget budget =
      plan::computeBudget(workload, plan::getTiles(entry.plan),
                          plan::getTarget(entry.plan.getTarget()));
  std::string text = print(entry.plan);
  std::optional<plan::RegisterNeed> most;
  for (const VariantInfo &variant : artifact.variants)
    for (const KernelInfo &kernel : variant.kernels) {
      std::optional<RegisterLiveness> counted;
      if (variant.plan == text)
        counted = code->countLiveRegisters(kernel.entry);
      if (!counted)
        continue;
      plan::RegisterNeed need{counted->live, budget.registerLimit};
      // The producer has fewer than the consumer.
      if (auto &roles = counted->roles; roles.size() == 2) {
        llvm::sort(roles, [](const RoleLiveness &a, const RoleLiveness &b) {
          return a.registers < b.registers;
        });
        need = {roles[1].live, roles[1].registers, roles[0].live,
                roles[0].registers};
      }
      need.instructions = counted->instructions;
      if (!most || need.more() > most->more())
        most = need;
    }
  return most;
}

/// What a kernel is known to spill before the assembler runs; 0: that is not
/// known. Of the kernels of 207 random programs for both targets all spilled
/// that had 57 and more registers live between blocks than there are; one with
/// 56 did not; of 240 more one that had 56 did not. They spilled about 8 bytes
/// for each above 24. Of consumers of 600 programs two that had 55 and 59 did
/// not; of more than 10,000 instructions, which take ptxas a second and longer,
/// all did that had 45 and more, and of three warpgroups all 5 of 37 that had
/// 55 and more. Where all plans together have more than 17,500 instructions,
/// which take longest of all, the three that had 21 and more spilled.
static int64_t estimateBytes(const plan::RegisterNeed &need,
                             int64_t instructionsOfAll) {
  constexpr int64_t mostMore = 60, mostOfLong = 50, longCode = 10000;
  constexpr int64_t mostOfThree = 52, registersOfThree = 160;
  constexpr int64_t mostOfThreeInLong = 20, longCodeOfAll = 17500;
  constexpr int64_t needless = 24, bytesPerRegister = 8;
  bool hasRoles = need.producerLimit != 0;
  bool isThree = hasRoles && need.limit == registersOfThree;
  int64_t most = hasRoles && need.instructions > longCode ? mostOfLong
                 : !isThree                               ? mostMore
                 : instructionsOfAll > longCodeOfAll      ? mostOfThreeInLong
                                                          : mostOfThree;
  if (need.more() <= most)
    return 0;
  return std::max<int64_t>(need.more() - needless, 1) * bytesPerRegister;
}

/// Whether the assembler need not run to know that a plan was not to be picked.
bool Compilation::estimateSpills() {
  if (!picked || options.last != Room::PTX || workload.isBackward ||
      workload.isJvp || workload.elementBytes != 2 ||
      options.cubin == CompileOptions::Cubin::No ||
      findPtxas(options.ptxas).empty())
    return false;
  TimingScope scope = time("llvm");
  for (const plan::PlanCase &entry : plans)
    if (std::optional<plan::RegisterNeed> need = measureNeed(entry))
      needs[print(entry.plan)] = *need;
  int64_t instructions = 0;
  for (const auto &[plan, need] : needs)
    instructions += need.instructions;
  // One plan that spills is enough for a search.
  for (const auto &[plan, need] : needs)
    if (int64_t bytes = estimateBytes(need, instructions))
      estimates[plan] = bytes;
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
    // It changes an addition or two. On an H100, forward kernels of sm_90a take
    // as long without it; the gradients of d = 64 in any order, whose loop
    // lacks registers, 1.06 times as long.
    FailureOr<std::string> ptx =
        code->emitPTX(threads(), /*reducesStrength=*/workload.isBackward);
    if (failed(ptx))
      return failure();
    artifact.ptx = std::move(*ptx);
    code.reset();
  }
  LogicalResult isAssembled =
      options.cubin == CompileOptions::Cubin::No ? success() : emitCubin();
  if (failed(leave(Room::PTX, [&] { return artifact.ptx; })))
    return failure();
  return isAssembled;
}

static int64_t countSpilled(const PtxasReport &report) {
  int64_t bytes = 0;
  for (const auto &[kernel, figures] : report.kernels)
    bytes += figures.spillStoreBytes + figures.spillLoadBytes;
  return bytes;
}

/// Assembles again, with as many registers as a thread may have, what spills
/// and has fewer.
LogicalResult Compilation::assembleForFewerBlocks(StringRef ptxas,
                                                  AssembledCubin &cubin) {
  // Gradients and f32 may spill a little, and more blocks are worth it.
  if (isProgram || workload.isBackward || workload.isJvp ||
      workload.elementBytes != 2)
    return success();
  constexpr int64_t step = 8;
  const TargetInfo *target = findTarget(options.target);
  std::string ptx = artifact.ptx;
  for (const auto &[entry, variant] :
       llvm::zip_equal(plans, artifact.variants)) {
    // That share a multiprocessor is what they are for, and what their roles
    // take is counted from what they begin with.
    if (entry.plan.getBlocksPerSm() != 1)
      continue;
    for (const KernelInfo &kernel : variant.kernels) {
      const PtxasFigures &figures = cubin.report.kernels[kernel.entry];
      int64_t most =
          std::min(target->registersPerThread,
                   target->registersPerSM / kernel.threads / step * step);
      if (figures.spillStoreBytes + figures.spillLoadBytes > 0 &&
          figures.registers < most)
        allowOneBlock(ptx, kernel.entry);
    }
  }
  if (ptx == artifact.ptx)
    return success();
  FailureOr<AssembledCubin> other =
      assemble(getLoc(), ptxas, ptx, options.target);
  if (failed(other))
    return failure();
  if (countSpilled(other->report) < countSpilled(cubin.report)) {
    cubin = std::move(*other);
    artifact.ptx = std::move(ptx);
  }
  return success();
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
  if (failed(assembleForFewerBlocks(ptxas, *cubin)))
    return failure();
  keepCubin(std::move(*cubin));
  return success();
}

void Compilation::keepCubin(AssembledCubin cubin) {
  report = std::move(cubin.report);
  artifact.cubin = std::move(cubin.bytes);
  for (VariantInfo &variant : artifact.variants)
    for (KernelInfo &kernel : variant.kernels) {
      const PtxasFigures &figures = report.kernels[kernel.entry];
      kernel.registers = figures.registers;
      kernel.spillStoreBytes = figures.spillStoreBytes;
      kernel.spillLoadBytes = figures.spillLoadBytes;
    }
}

LogicalResult Compilation::keepFirstPlan() {
  bool isAssembled = !isEstimated();
  for (const VariantInfo &variant : ArrayRef(artifact.variants).drop_front())
    for (const KernelInfo &kernel : variant.kernels)
      if (isAssembled)
        dropKernel(artifact.ptx, kernel.entry);
      else
        code->drop(kernel.entry);
  artifact.variants.resize(1);
  artifact.rule = VariantRule();
  names.resize(1);
  plans.assign({plan::PlanCase{LaunchCondition(), plans.front().plan}});
  return isAssembled ? emitCubin() : complete();
}

LogicalResult Compilation::assembleSparingly() {
  TimingScope scope = time("ptxas");
  FailureOr<AssembledCubin> cubin =
      assemble(getLoc(), findPtxas(options.ptxas), artifact.ptx, options.target,
               /*isSparing=*/true);
  if (failed(cubin))
    return failure();
  if (countSpilled(cubin->report) < countSpilled(report))
    keepCubin(std::move(*cubin));
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

std::optional<plan::RegisterNeed> Compilation::getNeed(PlanAttr plan) const {
  auto found = needs.find(print(plan));
  if (found == needs.end())
    return std::nullopt;
  return found->second;
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
