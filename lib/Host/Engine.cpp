//===- Engine.cpp - LLVM IR compiled into this process -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Host/Engine.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace attn;

#ifdef __FLT16_MAX__
// What code for processors without half precision calls. They stand in the
// compiler's own library, which a static program may not export.
static _Float16 halfFromSingle(float value) {
  return static_cast<_Float16>(value);
}
static _Float16 halfFromDouble(double value) {
  return static_cast<_Float16>(value);
}
static float singleFromHalf(_Float16 value) { return value; }
#endif

static llvm::orc::SymbolMap
helperFunctions(llvm::orc::MangleAndInterner interner) {
  llvm::orc::SymbolMap symbols;
  [[maybe_unused]] auto add = [&](StringRef name, auto *function) {
    symbols[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                               llvm::JITSymbolFlags::Exported |
                                   llvm::JITSymbolFlags::Callable};
  };
#ifdef __FLT16_MAX__
  add("__truncsfhf2", halfFromSingle);
  add("__truncdfhf2", halfFromDouble);
  add("__extendhfsf2", singleFromHalf);
#endif
  return symbols;
}

static llvm::Expected<std::unique_ptr<ExecutionEngine>>
createEngine(ModuleOp module, unsigned optimization) {
  static bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  auto level = optimization == 0 ? llvm::CodeGenOptLevel::None
                                 : llvm::CodeGenOptLevel::Default;
  builder->setCodeGenOptLevel(level);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  auto transformer =
      makeOptimizingTransformer(optimization, /*sizeLevel=*/0, machine->get());
  ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = level;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  return ExecutionEngine::create(module, options, std::move(*machine));
}

FailureOr<std::unique_ptr<ExecutionEngine>>
attn::createHostEngine(ModuleOp module, unsigned optimization) {
  auto engine = createEngine(module, optimization);
  if (!engine)
    return module.emitError("cannot compile for this processor: ")
           << llvm::toString(engine.takeError());
  (*engine)->registerSymbols(helperFunctions);
  return std::move(*engine);
}
