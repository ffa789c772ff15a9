//===- PlanSearch.cpp - plans whose kernels do not spill -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"

#include "Compilation.h"
#include "attn/Support/RoleRegisters.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace attn;

/// Each costs as long as the first.
static constexpr int maxTries = 3;
/// As which a kernel counts whose products ptxas does not overlap.
static constexpr int64_t serializedBytes = 512;
/// What gradients may spill. Tiles of half as many keys spill nothing and take
/// longer: 1.1 to 1.3 times as long where 128 x 64 spills 8 to 150 bytes (two
/// programs, 12 masks and scores at d = 64 and 128 on an H100, s = 8192), 1.07
/// times with a softcap that spills 260, as long where it spills 290; one
/// program for all gradients is 1.06 times as fast as two where it spills 216.
static constexpr int64_t mostOfGradients = 288;
/// The same for sm_90a, where what is given up for it is worth more: at d = 64
/// 128 x 64 that spill 308 to 600 bytes took 0.51 to 0.99 of the time of what
/// does not (14 scores with tables, parameters or long formulas on an H200; two
/// took 1.19 and 1.32), those that spill up to 2000 took 0.77 to 1.02 (12; one
/// 1.12, one 1.15), with 5248 bytes 1.73; at d = 192 those that spill 700 to
/// 1770 took 0.70 to 0.98 (4), with 3972 bytes 1.34; at d = 128 128 x 32 that
/// spill 312 to 1388 took 0.64 to 0.80 of the time of one warpgroup (9; one
/// 1.07).
static constexpr int64_t mostOfHopperGradients = 2048;
/// What less than other tiles may mend.
static constexpr int64_t little = 64;
/// What an f32 kernel may spill: plans that spill nothing split the same keys
/// for half as many rows, and took 1.5 times as long where 128 x 32 by 4 warps
/// spilled 376 bytes (d = 112); half as many keys took 1.12 times as long, in
/// gradients 1.16 times where 64 x 32 spilled 272 (an H200, 577 tokens).
static constexpr int64_t mostOfF32 = 448;
/// The same of its gradients: of one program, 64 x 32 by 8 warps at d = 256
/// that spilled 1080 bytes took 0.90 of the time of 64 x 16 that spilled 352.
static constexpr int64_t mostOfF32Gradients = 1088;
/// What plans for few queries may spill: they wait for memory. Tiles of 128 x
/// 32 that spill nothing took 101 us for a bias by distance, those of 64 x 64
/// that spill 84 bytes 75 (one query, 32768 keys, d = 128 on an H100); with
/// sinks and a window 64 x 64 spills 468, 128 x 32 still 376.
static constexpr int64_t mostOfFewQueries = 480;

namespace {
/// Nothing is said meanwhile.
struct Silence : ScopedDiagnosticHandler {
  explicit Silence(ModuleOp module)
      : ScopedDiagnosticHandler(module.getContext(),
                                [](Diagnostic &) { return success(); }) {}
};

/// A compilation, and what the rooms left.
class Try {
public:
  Try(ModuleOp module, const CompileOptions &given)
      : options(collect(given)), compilation(module, options) {}
  Try(const Try &) = delete;

  LogicalResult run() { return compilation.run(); }
  /// Says what the compilation had to say.
  LogicalResult finish(const CompileOptions &given, bool isDone) {
    for (auto &[room, text] : texts)
      if (failed(given.onRoom(room, text)))
        return failure();
    return isDone ? compilation.judge() : failure();
  }
  /// Of all plans.
  int64_t spilledBytes() const {
    int64_t bytes = compilation.isSerialized() ? serializedBytes : -1;
    for (const plan::PlanCase &entry : compilation.getPlans())
      bytes = std::max(bytes, compilation.getSpilledBytes(entry.plan));
    return bytes;
  }

private:
  CompileOptions collect(CompileOptions given) {
    if (given.onRoom)
      given.onRoom = [this](Room room, StringRef text) {
        texts.emplace_back(room, text.str());
        return success();
      };
    return given;
  }

  std::vector<std::pair<Room, std::string>> texts;
  CompileOptions options;

public:
  Compilation compilation;
};

/// The plans that are tried where the first ones spill.
class PlanSearch {
public:
  PlanSearch(ModuleOp module, const CompileOptions &options)
      : module(module), options(options) {}

  /// Null where the assembler fails, which has been said.
  std::unique_ptr<Try> run(std::unique_ptr<Try> first);
  void finish(Try &best);

private:
  std::unique_ptr<Try> compile(PlanAttr plan);

  ModuleOp module;
  const CompileOptions &options;
};
} // namespace

/// Null if it cannot be compiled.
std::unique_ptr<Try> PlanSearch::compile(PlanAttr plan) {
  CompileOptions one = options;
  one.plan = "";
  llvm::raw_string_ostream(one.plan) << plan;
  one.results = one.gpu = "";
  one.isPlanPicked = true;
  one.sizes = std::nullopt;
  one.variant = std::nullopt;
  auto attempt = std::make_unique<Try>(module, one);
  // What was said of the first one would be said again.
  Silence silence(module);
  return succeeded(attempt->run()) ? std::move(attempt) : nullptr;
}

static bool hasHeadLoop(const plan::PlanCase &entry) {
  return entry.plan.getPasses().runs(OptionalPass::LoopHeads);
}

static int64_t tolerated(const Compilation &compilation) {
  auto isForFew = [](const plan::PlanCase &entry) {
    return entry.plan.getSplitKeys() != 1 || entry.plan.getPackedHeads() != 1 ||
           entry.plan.getBlocksPerSm() != 1;
  };
  if (llvm::any_of(compilation.getPlans(), isForFew))
    return mostOfFewQueries;
  const plan::Workload &workload = compilation.getWorkload();
  if (workload.elementBytes == 4)
    return workload.isBackward ? mostOfF32Gradients : mostOfF32;
  if (!workload.isBackward)
    return 0;
  bool isHopper =
      llvm::all_of(compilation.getPlans(), [](const plan::PlanCase &entry) {
        return entry.plan.getTarget() == TargetKind::SM90A;
      });
  return isHopper ? mostOfHopperGradients : mostOfGradients;
}

/// About how many registers a thread lacks: what is spilled in loops is stored
/// and loaded more than once. Of what is known to be picked for scores and
/// masks more, or a second plan spills, too.
static int64_t countLacking(int64_t spilledBytes, bool isKnown) {
  constexpr int64_t least = 8, most = 64;
  return std::min(least + spilledBytes / (isKnown ? 8 : 16), most);
}

/// The plan with all registers that a consumer can have beside a producer that
/// has as many as before: one warpgroup of both leaves some.
static PlanAttr giveAllRegisters(PlanAttr plan) {
  constexpr int64_t most = 248;
  int64_t warps = plan.getWarps();
  bool isFree =
      plan.getTarget() == TargetKind::SM90A && plan.getBlocksPerSm() == 1 &&
      plan.getConsumerRegisters() == 0 && findShareFault(warps, most).empty() &&
      shareRegisters(warps, most).producer == shareRegisters(warps).producer;
  return isFree ? plan.withConsumerRegisters(most) : plan;
}

/// The same tiles with more registers for a consumer that lacks few, or
/// `mayLackMore`, where no other tiles do; null elsewhere. Two programs at d =
/// 256 that spilled 76 and 4 bytes with 216 registers do not with 240. Two
/// random ones at d = 192 keep 64 keys so, and an H200 is 1.27 and 1.08 times
/// as fast as with 32.
static PlanAttr favorConsumer(PlanAttr plan, const plan::RegisterNeed &need,
                              int64_t bytes, bool mayLackMore) {
  // Of random programs those that spilled up to 12 bytes with 8 registers less
  // spilled none with these, one with 60 bytes still 40.
  constexpr int64_t bytesOfRegister = 4, fewBytes = 128;
  PlanAttr favored = plan::favorConsumer(plan, need.producerLive);
  if (!favored || need.producerLimit == 0 || bytes > fewBytes ||
      need.limit >= favored.getConsumerRegisters())
    return nullptr;
  int64_t registers = favored.getConsumerRegisters();
  bool isFew = need.live <= registers + plan::registersMadeAgain &&
               bytes <= bytesOfRegister * (registers - need.limit);
  return mayLackMore || isFew ? favored : nullptr;
}

/// The next plan, of tiles whose code is shorter where that of the last one is
/// long. Of 150 random programs for sm_80 all 7 second plans of more than 8400
/// instructions, by the estimate below, spilled like the first one; of 7 that
/// had 5300 to 7900 four did not.
static PlanAttr pickNext(const plan::Workload &workload, PlanAttr least,
                         PlanAttr last, const plan::Shortage &shortage) {
  constexpr int64_t longCode = 8000;
  auto scoresPerWarp = [](PlanAttr plan) {
    return plan.getBlockQ() * plan.getBlockK() / plan.getWarps();
  };
  PlanAttr next = plan::pickSparing(workload, least, last, shortage);
  if (!next)
    return nullptr;
  if (!shortage.need || shortage.need->producerLimit != 0)
    return giveAllRegisters(next);
  int64_t instructions = shortage.need->instructions;
  while (instructions * scoresPerWarp(next) > longCode * scoresPerWarp(last)) {
    PlanAttr further = plan::pickSparing(workload, least, next, shortage);
    if (!further)
      break;
    next = further;
  }
  return next;
}

/// The same tiles without lazy maxima, which live from block to block, where
/// smaller ones would free few registers: the rows of a warp are the fewest,
/// and its output fills twice as many registers as its scores. Null elsewhere.
/// (A score at d = 192 that spilled 52 bytes: 104 with half as many keys, none
/// so. With more rows it helped 5 of 43 plans of sm_80 and 3 of 23 of sm_90a.)
static PlanAttr giveUpLazyMax(const plan::Workload &workload, PlanAttr plan) {
  constexpr int64_t fewestRows = 16;
  PassSelection passes = plan.getPasses();
  if (workload.isBackward || plan.getTarget() != TargetKind::SM80 ||
      plan.getBlockQ() > fewestRows * plan.getWarps() ||
      2 * plan.getBlockK() > plan::padHeadDim(workload.valueHeadDim) ||
      !passes.runs(OptionalPass::LazyMax))
    return nullptr;
  passes.setUse(OptionalPass::LazyMax, PassUse::Off);
  return plan.withPasses(passes);
}

/// Where three blocks share a multiprocessor, two: they have more registers,
/// and room for one block of keys more. Null elsewhere.
static PlanAttr giveUpBlock(const plan::Workload &workload, PlanAttr plan) {
  constexpr int64_t most = 2;
  if (plan.getBlocksPerSm() <= most)
    return nullptr;
  PlanAttr fewer = plan.withBlocksPerSM(most);
  PlanAttr deeper = fewer.withTiles(plan.getBlockQ(), plan.getBlockK(),
                                    plan.getWarps(), plan.getStages() + 1);
  bool fits = plan::findObstacle(workload, plan::getTiles(deeper),
                                 plan::getTarget(plan.getTarget()))
                  .empty();
  return fits ? deeper : fewer;
}

std::unique_ptr<Try> PlanSearch::run(std::unique_ptr<Try> first) {
  const Compilation &begun = first->compilation;
  plan::Workload workload = begun.getWorkload();
  // The plan that spills least: that may be little enough for all sizes. Of
  // several the last one, which is that of the largest.
  PlanAttr least;
  int64_t leastBytes = 0;
  // Others are sought for those that do without loops.
  bool hasLoops = llvm::any_of(begun.getPlans(), hasHeadLoop) &&
                  !llvm::all_of(begun.getPlans(), hasHeadLoop);
  for (const plan::PlanCase &entry : begun.getPlans()) {
    if (hasLoops && hasHeadLoop(entry))
      continue;
    int64_t bytes = begun.getSpilledBytes(entry.plan);
    if (least && leastBytes < bytes)
      continue;
    least = entry.plan;
    leastBytes = bytes;
  }
  plan::Shortage shortage{0, begun.getNeed(least)};
  // What serves all sizes leaves open what was said for some of them.
  if (begun.getPlans().size() > 1)
    least = least.withScores(RecomputedScores::Auto);
  if (begun.isSerialized())
    leastBytes = first->spilledBytes();

  int64_t bytes = leastBytes, most = tolerated(begun);
  // Where another plan's estimate was enough, this one was not assembled.
  bool isWanting =
      bytes > most || (begun.isEstimated() && shortage.need &&
                       shortage.need->more() > plan::registersMadeAgain);
  std::unique_ptr<Try> best = std::move(first);
  int64_t bestBytes = hasLoops ? leastBytes : best->spilledBytes();
  // The first of several, which spills nothing, serves all sizes; who looks on
  // sees the rooms of a plan by itself.
  if (!isWanting && !options.onRoom && begun.getPlans().size() > 1 &&
      begun.getPlans().front().plan == least) {
    if (failed(best->compilation.keepFirstPlan()))
      return nullptr;
    bestBytes = bytes = best->spilledBytes();
    isWanting = bytes > most;
  }
  PlanAttr next = least, spilling = least, leastSpilling;
  for (int number = 0; number < maxTries && bestBytes > most; ++number) {
    PlanAttr shared;
    if (isWanting && shortage.need)
      shared = plan::spareForProducer(spilling, *shortage.need);
    PlanAttr favored;
    if (isWanting && !workload.isBackward && shortage.need && !shared)
      favored = favorConsumer(spilling, *shortage.need, bytes,
                              /*mayLackMore=*/false);
    PlanAttr eager;
    if (isWanting && number == 0 && bytes <= most + little)
      eager = giveUpLazyMax(workload, spilling);
    PlanAttr fewer = isWanting ? giveUpBlock(workload, spilling) : nullptr;
    if (fewer) {
      next = least = fewer;
      --number; // its own search follows
    } else if (shared) {
      next = shared;
    } else if (favored) {
      next = favored;
    } else if (eager) {
      next = eager;
    } else if (isWanting) {
      shortage.registers += countLacking(std::max<int64_t>(bytes - most, 0),
                                         shortage.need.has_value());
      next = pickNext(workload, least, spilling, shortage);
    }
    if (!next)
      break;
    spilling = next;
    std::unique_ptr<Try> attempt = compile(next);
    bytes = attempt ? attempt->spilledBytes() : serializedBytes;
    isWanting = bytes > most;
    shortage.need.reset();
    if (attempt)
      shortage.need = attempt->compilation.getNeed(next);
    if (attempt && bytes < bestBytes) {
      best = std::move(attempt);
      bestBytes = bytes;
      leastSpilling = next;
    }
  }
  std::optional<plan::RegisterNeed> need;
  if (bestBytes > most && leastSpilling && !workload.isBackward)
    need = best->compilation.getNeed(leastSpilling);
  if (need)
    if (PlanAttr last = favorConsumer(leastSpilling, *need, bestBytes,
                                      /*mayLackMore=*/true)) {
      std::unique_ptr<Try> attempt = compile(last);
      if (attempt && attempt->spilledBytes() < bestBytes)
        best = std::move(attempt);
    }
  return best;
}

/// Assembles once more what spills a little. Of 24 kernels that spilled, fewer
/// registers for speed left 6 without: five had spilled up to 24 bytes.
void PlanSearch::finish(Try &best) {
  int64_t bytes = best.spilledBytes();
  int64_t most = tolerated(best.compilation);
  if (bytes <= most || bytes > most + little || best.compilation.isSerialized())
    return;
  // Assemblers that cannot do so leave what there is.
  Silence silence(module);
  (void)best.compilation.assembleSparingly();
}

/// Whether blocks of keys go through several heads, of the compiler's own
/// accord.
static bool hasOwnLoops(const Compilation &compilation,
                        const PassRequest &passes) {
  StringRef name = optionalPasses[size_t(OptionalPass::LoopHeads)].name;
  return !llvm::is_contained(passes.disabled, name) &&
         !llvm::is_contained(passes.enabled, name) &&
         llvm::any_of(compilation.getPlans(), hasHeadLoop);
}

/// Whether only such plans spill. What others spill, too, is no matter of
/// loops.
static bool areLoopsToBlame(const Compilation &compilation,
                            const PassRequest &passes) {
  auto isGood = [&](const plan::PlanCase &entry) {
    return hasHeadLoop(entry) ||
           compilation.getSpilledBytes(entry.plan) <= tolerated(compilation);
  };
  return hasOwnLoops(compilation, passes) &&
         llvm::all_of(compilation.getPlans(), isGood);
}

/// The same without cases in which blocks of keys go through several heads:
/// those of one head may be good enough.
static CompileOptions withoutLoops(CompileOptions options) {
  options.passes.add(optionalPasses[size_t(OptionalPass::LoopHeads)].name,
                     /*run=*/false);
  return options;
}

/// Whether what a plan with such loops spills is more than others do, and more
/// than is known to be worth it.
static bool spillsByLoops(const Compilation &compilation) {
  int64_t ofLoops = 0, ofOthers = mostOfGradients;
  for (const plan::PlanCase &entry : compilation.getPlans()) {
    int64_t &most = hasHeadLoop(entry) ? ofLoops : ofOthers;
    most = std::max(most, compilation.getSpilledBytes(entry.plan));
  }
  return ofLoops > ofOthers;
}

/// Whether nothing else need be tried.
static bool isGoodEnough(const Try &attempt) {
  return attempt.spilledBytes() <= tolerated(attempt.compilation) &&
         !spillsByLoops(attempt.compilation);
}

FailureOr<Artifact> attn::compileSparingly(ModuleOp module,
                                           const CompileOptions &options) {
  auto first = std::make_unique<Try>(module, options);
  LogicalResult isDone = first->run();
  // What was only estimated, and is little enough, is not assembled yet.
  if (succeeded(isDone) && isGoodEnough(*first))
    isDone = first->compilation.complete();
  int64_t bytes = first->spilledBytes();
  if (failed(isDone) || isGoodEnough(*first) ||
      !first->compilation.isPicked()) {
    if (failed(first->finish(options, succeeded(isDone))))
      return failure();
    return first->compilation.takeArtifact();
  }
  std::string spilling = plan::printPlanCases(first->compilation.getPlans());
  bool isEstimated = first->compilation.isEstimated();
  std::optional<RulePart> part = first->compilation.getPart();
  if (areLoopsToBlame(first->compilation, options.passes)) {
    emitRemark(first->compilation.getLoc())
        << "plan " << spilling << " spills " << bytes
        << " bytes; it is tried without tile-loop-heads";
    FailureOr<Artifact> artifact =
        compileSparingly(module, withoutLoops(options));
    if (succeeded(artifact))
      artifact->partOf = std::move(part);
    return artifact;
  }
  PlanSearch search(module, options);
  std::unique_ptr<Try> best = search.run(std::move(first));
  if (!best)
    return failure();
  if (hasOwnLoops(best->compilation, options.passes)) {
    best = std::make_unique<Try>(module, withoutLoops(options));
    isDone = best->run();
  }
  if (succeeded(isDone))
    isDone = best->compilation.complete();
  if (succeeded(isDone))
    search.finish(*best);
  std::string taken = plan::printPlanCases(best->compilation.getPlans());
  if (succeeded(isDone) && taken != spilling)
    emitRemark(best->compilation.getLoc())
        << "plan " << spilling << " spills " << (isEstimated ? "about " : "")
        << bytes << " bytes; " << taken << " is taken, which spills "
        << (best->spilledBytes() > 0
                ? std::to_string(best->spilledBytes()) + " bytes"
                : "nothing");
  if (failed(best->finish(options, succeeded(isDone))))
    return failure();
  Artifact artifact = best->compilation.takeArtifact();
  artifact.partOf = std::move(part);
  return artifact;
}
