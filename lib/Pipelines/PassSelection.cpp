//===- PassSelection.cpp - which of the optional passes run -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/PassSelection.h"

#include "attn/Support/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

/// The first compute capability that a pass does something for.
static constexpr int64_t anywhere = 0, anyGPU = 80, hopper = 90;

namespace {
struct OptionalPass {
  StringLiteral name;
  int64_t sm; // `anywhere`, `anyGPU` or `hopper`
  void (*set)(PassSelection &, bool);
};
} // namespace

// In the order in which they run.
static constexpr OptionalPass optionalPasses[] = {
    {"tile-order-blocks", anywhere,
     [](PassSelection &s, bool run) { s.tile.orderBlocks = run; }},
    {"tile-list-blocks", anywhere,
     [](PassSelection &s, bool run) { s.tile.listBlocks = run; }},
    {"tile-peel-masks", anywhere,
     [](PassSelection &s, bool run) { s.tile.peelMasks = run; }},
    {"tile-group-bounds", hopper,
     [](PassSelection &s, bool run) { s.tile.groupBounds = run; }},
    {"tile-keys-to-ranges", anywhere,
     [](PassSelection &s, bool run) { s.tile.keysToRanges = run; }},
    {"tile-reverse-keys", anywhere,
     [](PassSelection &s, bool run) { s.tile.reverseKeys = run; }},
    {"tile-fold-exp2", anywhere,
     [](PassSelection &s, bool run) { s.tile.foldExp2 = run; }},
    {"tile-overlap-products", anywhere,
     [](PassSelection &s, bool run) { s.tile.overlapProducts = run; }},
    {"tile-lazy-max", anywhere,
     [](PassSelection &s, bool run) { s.tile.lazyMax = run; }},
    {"warp-defer-sum", anyGPU,
     [](PassSelection &s, bool run) { s.warp.deferSum = run; }},
    {"warp-persist", hopper,
     [](PassSelection &s, bool run) { s.warp.persist = run; }},
    {"warp-double-buffer", hopper,
     [](PassSelection &s, bool run) {
       s.warp.doubleBuffer =
           run ? DoubleBuffering::Everywhere : DoubleBuffering::Off;
     }},
    {"warp-specialize", hopper,
     [](PassSelection &s, bool run) { s.warp.specialize = run; }},
    {"warp-buffer", anyGPU,
     [](PassSelection &s, bool run) { s.warp.buffer = run; }},
    {"warp-make-async", hopper,
     [](PassSelection &s, bool run) { s.warp.makeAsync = run; }},
    {"warp-insert-turns", hopper,
     [](PassSelection &s, bool run) { s.warp.insertTurns = run; }},
    {"warp-stage-stores", anyGPU,
     [](PassSelection &s, bool run) { s.warp.stageStores = run; }},
    {"warp-deepen-rings", hopper,
     [](PassSelection &s, bool run) { s.warp.deepenRings = run; }},
};

std::vector<std::string> attn::listOptionalPasses(StringRef target) {
  const TargetInfo *info = findTarget(target.str());
  int64_t sm = info ? info->sm : 0;
  std::vector<std::string> names;
  for (const OptionalPass &pass : optionalPasses)
    if (pass.sm <= sm)
      names.push_back(pass.name.str());
  return names;
}

std::vector<std::string> attn::splitPassNames(StringRef text) {
  std::vector<std::string> names;
  for (StringRef name : llvm::split(text, ','))
    if (name = name.trim(); !name.empty())
      names.push_back(name.str());
  return names;
}

LogicalResult PassSelection::apply(Location loc, const PassRequest &request) {
  const TargetInfo *info = findTarget(tile.target.getValue());
  int64_t sm = info ? info->sm : 0;
  auto set = [&](StringRef name, bool run) -> LogicalResult {
    for (const OptionalPass &pass : optionalPasses)
      if (pass.name == name && pass.sm <= sm) {
        pass.set(*this, run);
        return success();
      }
    InFlightDiagnostic error =
        emitError(loc) << "'" << name << "' is no optional pass on the way to "
                       << tile.target << ", expected one of ";
    llvm::interleaveComma(listOptionalPasses(tile.target.getValue()), error);
    return error;
  };
  for (const std::string &name : request.disabled)
    if (failed(set(name, false)))
      return failure();
  for (const std::string &name : request.enabled)
    if (failed(set(name, true)))
      return failure();
  return success();
}

FailureOr<PassSelection> PassSelection::make(Location loc, StringRef target,
                                             const PassRequest &request) {
  const TargetInfo *info = findTarget(target.str());
  PassSelection selection;
  selection.tile.target = target.str();
  int64_t sm = info ? info->sm : 0;
  selection.tile.reverseKeys = selection.tile.lazyMax = sm >= anyGPU;
  selection.tile.overlapProducts = selection.tile.groupBounds = sm >= hopper;
  if (failed(selection.apply(loc, request)))
    return failure();
  return selection;
}
