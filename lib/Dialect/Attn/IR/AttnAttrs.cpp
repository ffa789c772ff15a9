//===- AttnAttrs.cpp - attributes of the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "attn/Support/RoleRegisters.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;

#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"

/// A float literal; an integer one is a mistake that deserves its own words.
static ParseResult parseCap(AsmParser &parser, FloatAttr &cap) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute value;
  if (parser.parseAttribute(value))
    return failure();
  cap = dyn_cast<FloatAttr>(value);
  if (cap)
    return success();
  return parser.emitError(loc)
         << "softcap wants a float literal like 30.0, got " << value;
}

static void printCap(AsmPrinter &printer, FloatAttr cap) {
  printer.printAttribute(cap);
}

/// `["tile-lazy-max", …]`.
static FailureOr<SmallVector<OptionalPass>> parsePassList(AsmParser &parser) {
  SmallVector<OptionalPass> passes;
  auto parseName = [&]() -> ParseResult {
    std::string name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseString(&name))
      return failure();
    const OptionalPassInfo *pass = findOptionalPass(name);
    if (!pass)
      return parser.emitError(loc) << findPassFault(name, /*target=*/"");
    passes.push_back(pass->pass);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseName))
    return failure();
  return passes;
}

static std::string printPassList(ArrayRef<OptionalPass> passes) {
  std::string text;
  for (OptionalPass pass : passes)
    text += (text.empty() ? "\"" : ", \"") +
            std::string(optionalPasses[size_t(pass)].name) + "\"";
  return "[" + text + "]";
}

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

/// One integer field of an attribute against its closed range.
static LogicalResult verifyRange(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef field, int64_t value, int64_t low,
                                 int64_t high) {
  if (value >= low && value <= high)
    return success();
  return emitError() << "'" << field << "' must be in [" << low << ", " << high
                     << "], got " << value;
}

/// Plans that mean the same are the same: the lists name what differs from the
/// target's default, in the order in which the passes run.
static LogicalResult verifyPasses(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef target,
                                  ArrayRef<OptionalPass> without,
                                  ArrayRef<OptionalPass> with) {
  PassSelection passes(target);
  for (bool run : {false, true})
    for (OptionalPass pass : run ? with : without) {
      std::string fault =
          findPassFault(optionalPasses[size_t(pass)].name, target);
      if (!fault.empty())
        return emitError() << fault;
      passes.setUse(pass, run ? PassUse::On : PassUse::Off);
    }
  auto [less, more] = passes.changesFrom(PassSelection(target));
  if (without == ArrayRef(less) && with == ArrayRef(more))
    return success();
  return emitError() << "got without = " << printPassList(without)
                     << " and with = " << printPassList(with) << ", expected "
                     << printPassList(less) << " and " << printPassList(more)
                     << ": what differs from the default of " << target
                     << ", in the order in which the passes run";
}

/// A number of registers says something else than the default, of a role that
/// is there.
static LogicalResult
verifyRegisters(function_ref<InFlightDiagnostic()> emitError, TargetKind target,
                int64_t warps, int64_t registers, int64_t blocksPerSM,
                ArrayRef<OptionalPass> without) {
  bool hasRoles = target == TargetKind::SM90A &&
                  !llvm::is_contained(without, OptionalPass::Specialize);
  if (blocksPerSM != 1 && !hasRoles)
    return emitError() << "'blocks_per_sm': got " << blocksPerSM
                       << " of a kernel without roles";
  if (registers == 0)
    return success();
  std::string fault = findShareFault(warps, registers, blocksPerSM);
  if (!hasRoles)
    fault = "got " + std::to_string(registers) + " of a kernel without roles";
  else if (registers == shareRegisters(warps, 0, blocksPerSM).consumer)
    fault = "got " + std::to_string(registers) +
            ", what it is by default: expected it left out";
  if (fault.empty())
    return success();
  return emitError() << "'consumer_registers': " << fault;
}

// The bounds only keep arithmetic on plans far from overflow; what fits a
// target is the plan room's question.
LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               TargetKind target, int64_t blockQ,
                               int64_t blockK, int64_t warps, int64_t stages,
                               bool, SchedulerKind, int64_t registers,
                               int64_t blocksPerSM, int64_t splitKeys,
                               int64_t packedHeads, RecomputedScores,
                               ArrayRef<OptionalPass> without,
                               ArrayRef<OptionalPass> with) {
  return success(
      succeeded(verifyRange(emitError, "block_q", blockQ, 1, 65536)) &&
      succeeded(verifyRange(emitError, "block_k", blockK, 1, 65536)) &&
      succeeded(verifyRange(emitError, "warps", warps, 1, 32)) &&
      succeeded(verifyRange(emitError, "stages", stages, 1, 64)) &&
      succeeded(verifyRange(emitError, "blocks_per_sm", blocksPerSM, 1, 8)) &&
      succeeded(verifyRange(emitError, "split_keys", splitKeys, 1, 64)) &&
      succeeded(verifyRange(emitError, "packed_heads", packedHeads, 1, 64)) &&
      succeeded(verifyPasses(emitError, stringifyTargetKind(target), without,
                             with)) &&
      succeeded(verifyRegisters(emitError, target, warps, registers,
                                blocksPerSM, without)));
}

PlanAttr PlanAttr::withOneWarp() const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), /*warps=*/1,
             getStages(), getQInRegisters(), getScheduler(),
             /*consumer_registers=*/0, /*blocks_per_sm=*/1, getSplitKeys(),
             getPackedHeads(), getScores(), getWithout(), getWith());
}

PlanAttr PlanAttr::withTiles(int64_t blockQ, int64_t blockK, int64_t warps,
                             int64_t stages) const {
  return get(getContext(), getTarget(), blockQ, blockK, warps, stages,
             getQInRegisters(), getScheduler(), getConsumerRegisters(),
             getBlocksPerSm(), getSplitKeys(), getPackedHeads(), getScores(),
             getWithout(), getWith());
}

PlanAttr PlanAttr::withScheduler(SchedulerKind scheduler) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), scheduler, getConsumerRegisters(),
             getBlocksPerSm(), getSplitKeys(), getPackedHeads(), getScores(),
             getWithout(), getWith());
}

PlanAttr PlanAttr::withConsumerRegisters(int64_t registers) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(), registers,
             getBlocksPerSm(), getSplitKeys(), getPackedHeads(), getScores(),
             getWithout(), getWith());
}

PlanAttr PlanAttr::withBlocksPerSM(int64_t blocks) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(),
             getConsumerRegisters(), blocks, getSplitKeys(), getPackedHeads(),
             getScores(), getWithout(), getWith());
}

PlanAttr PlanAttr::withSplitKeys(int64_t parts) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(),
             getConsumerRegisters(), getBlocksPerSm(), parts, getPackedHeads(),
             getScores(), getWithout(), getWith());
}

PlanAttr PlanAttr::withPackedHeads(int64_t heads) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(),
             getConsumerRegisters(), getBlocksPerSm(), getSplitKeys(), heads,
             getScores(), getWithout(), getWith());
}

PlanAttr PlanAttr::withScores(RecomputedScores scores) const {
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(),
             getConsumerRegisters(), getBlocksPerSm(), getSplitKeys(),
             getPackedHeads(), scores, getWithout(), getWith());
}

PassSelection PlanAttr::getPasses() const {
  PassSelection passes(stringifyTargetKind(getTarget()));
  for (OptionalPass pass : getWithout())
    passes.setUse(pass, PassUse::Off);
  for (OptionalPass pass : getWith())
    passes.setUse(pass, PassUse::On);
  return passes;
}

PlanAttr PlanAttr::withPasses(const PassSelection &passes) const {
  auto [without, with] =
      passes.changesFrom(PassSelection(stringifyTargetKind(getTarget())));
  // Without roles there is nothing to share.
  bool hasRoles = passes.runs(OptionalPass::Specialize);
  return get(getContext(), getTarget(), getBlockQ(), getBlockK(), getWarps(),
             getStages(), getQInRegisters(), getScheduler(),
             hasRoles ? getConsumerRegisters() : 0,
             hasRoles ? getBlocksPerSm() : 1, getSplitKeys(), getPackedHeads(),
             getScores(), without, with);
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t left, int64_t right, Alignment) {
  // Positions plus a bound stay inside i32, as lengths are at most 2^30 too.
  constexpr int64_t max = int64_t(1) << 30;
  return success(succeeded(verifyRange(emitError, "left", left, -1, max)) &&
                 succeeded(verifyRange(emitError, "right", right, -1, max)));
}

LogicalResult SoftcapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  FloatAttr cap) {
  if (!cap.getType().isF32() && !cap.getType().isF64())
    return emitError() << "softcap must be f32 or f64, got " << cap.getType();
  // The expansion computes in f32: what matters is the value there.
  float value = static_cast<float>(cap.getValueAsDouble());
  if (std::isfinite(value) && value > 0 && std::isfinite(1 / value))
    return success();
  return emitError() << "softcap must be positive and finite in f32, got "
                     << cap;
}
