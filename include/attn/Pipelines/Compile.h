//===- Compile.h - the compiler as a function -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_COMPILE_H
#define ATTN_PIPELINES_COMPILE_H

#include "attn/Pipelines/Gradients.h"
#include "attn/Pipelines/PassSelection.h"
#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <functional>
#include <map>
#include <string>

namespace attn {

/// The rooms a program walks through; each leaves a text.
enum class Room { Attn, Tile, Warp, GPU, NVVM, LLVM, PTX };

/// "attn", "tile", …
StringRef roomName(Room room);
std::optional<Room> findRoom(StringRef name);

/// The program as a room leaves it, with values by the names that they have.
std::string printProgram(ModuleOp module);

struct CompileOptions {
  /// The oldest GPU to run on.
  std::string target = "sm_80";
  /// As in IR, `#attn.plan<…>`, or a rule over plans (ChoosePlans.h); empty:
  /// the operation's own, else the best one known, or several with a rule. The
  /// last is the compiler's pick: where ptxas runs and spills registers, a few
  /// plans that need less of them are tried, and the first one that spills
  /// nothing is taken, or the one that spills least.
  std::string plan;
  /// `plan` is such a pick, of `resolvePlans`.
  bool isPlanPicked = false;
  /// The sizes of a launch: of several plans that one alone is compiled which
  /// is meant for them. The artifact says of which rule it is a part.
  std::optional<LaunchQuantities> sizes;
  /// The same as a number of a plan, each plan of the rule counted once; of
  /// `resolvePlans`.
  std::optional<size_t> variant;
  /// A file of measured plans (attn-bench): the fastest one is taken where no
  /// plan is given; empty: none.
  std::string results;
  /// The name of a GPU: only plans measured on it are taken, from `results`, or
  /// else from the file that comes with the compiler; empty: any, and no such
  /// file.
  std::string gpu;
  /// Optional passes that change in the plan.
  PassRequest passes;
  /// Which function, or one of its attentions, `<name>_attention_<n>`; empty:
  /// the only public one.
  std::string function;
  /// That function, its gradients, or one artifact with both: the gradients are
  /// then its companion; or that function with its tangents.
  FunctionChoice functions = FunctionChoice::Forward;
  GradientRequest gradients;
  /// Of both: the plan of the gradients; `plan` is that of the function.
  std::string backwardPlan;
  /// Plans of functions by their names, before all others.
  struct ResolvedPlan {
    std::string plan;
    bool isPicked = false; // as isPlanPicked
    std::optional<size_t> variant;
  };
  std::map<std::string, ResolvedPlan> plans;
  /// The assembler, or the root of a CUDA Toolkit; empty: ptxas on the PATH.
  std::string ptxas;
  /// Machine code: never, if there is an assembler, or fail without.
  enum class Cubin { No, IfPossible, Required };
  Cubin cubin = Cubin::IfPossible;
  /// Spills and warnings of ptxas are errors.
  bool strict = false;

  /// How many threads may work, on what does not depend on each other; the
  /// artifact is the same with any number of them. 0: one per processor.
  unsigned threads = 0;

  /// Called with the program as each room leaves it.
  std::function<LogicalResult(Room, StringRef)> onRoom;
  /// The first room that it is called for. Those before it are not printed: the
  /// texts of all rooms took a quarter of the instructions on the way to PTX.
  Room firstShown = Room::Attn;
  /// The last room that is wanted; nothing after it is done.
  Room last = Room::PTX;
  /// Called on every pass manager before it runs (instrumentation).
  std::function<LogicalResult(PassManager &)> configure;
  /// Where the times of the steps go.
  TimingScope *timing = nullptr;
};

/// Compiles one function on tensors with one `attn.attention` for a GPU, its
/// gradients, or both: the rooms of the gradients come second. A function with
/// several, or with other operations, gives an artifact with a function for
/// each attention, and a remark (AttentionFunctions.h). What went wrong is a
/// diagnostic. `module` is not changed. Without the last room the artifact has
/// no image.
FailureOr<Artifact> compile(ModuleOp module, const CompileOptions &options);

/// The same options with the plans that `compile` takes, or its rules over
/// plans and the variants of them that are wanted, and without results, GPU,
/// passes and sizes, which say nothing beside them.
FailureOr<CompileOptions> resolvePlans(ModuleOp module,
                                       const CompileOptions &options);

} // namespace attn

#endif // ATTN_PIPELINES_COMPILE_H
