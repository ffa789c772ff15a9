//===- HostProgram.cpp - an attention function compiled into this process -*-
// C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Host/HostProgram.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Support/Version.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace attn;

HostProgram::HostProgram() = default;
HostProgram::HostProgram(HostProgram &&) = default;
HostProgram &HostProgram::operator=(HostProgram &&) = default;
HostProgram::~HostProgram() = default;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static LogicalResult runPasses(ModuleOp module,
                               function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext());
  build(manager);
  return manager.run(module);
}

/// A copy of the module with the one function.
static OwningOpRef<ModuleOp> isolate(ModuleOp module, StringRef name) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (auto function : llvm::make_early_inc_range(copy->getOps<func::FuncOp>()))
    if (function.getName() != name)
      function.erase();
  return copy;
}

static LogicalResult lowerToLLVM(ModuleOp module, const HostOptions &options,
                                 Artifact &description) {
  if (options.kind != HostOptions::Kind::Tiled) {
    OracleOptions oracle;
    oracle.precision = options.kind == HostOptions::Kind::OracleF64
                           ? OraclePrecision::F64
                           : OraclePrecision::Input;
    return runPasses(module, [&](OpPassManager &manager) {
      buildOraclePipeline(manager, oracle);
    });
  }
  PassSelection selection;
  selection.tile = options.tile;
  if (failed(selection.apply(module.getLoc(), options.passes)))
    return failure();
  if (failed(runPasses(module, [&](OpPassManager &manager) {
        buildAttnToTilePipeline(manager, selection.tile);
      })))
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    if (auto plan =
            function->getAttrOfType<PlanAttr>(AttnDialect::kPlanAttrName)) {
      llvm::raw_string_ostream stream(description.plan);
      stream << plan;
    }
  return runPasses(module, buildTileToLLVMPipeline);
}

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

FailureOr<HostProgram> HostProgram::compile(ModuleOp module, StringRef name,
                                            const HostOptions &options) {
  FailureOr<func::FuncOp> function = findFunction(module, name);
  if (failed(function))
    return failure();
  HostProgram program;
  Artifact &description = program.description;
  if (failed(describeSignature(*function, description)))
    return failure();
  description.target = "cpu";
  description.compilerVersion = versionString;
  KernelInfo &kernel = description.kernels.emplace_back();
  kernel.entry = description.name;
  for (LaunchExpr &blocks : kernel.grid)
    blocks.value = 1; // the loop over blocks is inside
  program.needsContiguousOutputs = options.kind != HostOptions::Kind::Tiled;
  if (options.kind == HostOptions::Kind::OracleF64)
    for (ArgumentInfo &info : description.arguments)
      if (info.isOutput)
        info.element = ElementKind::F64;

  OwningOpRef<ModuleOp> copy = isolate(module, function->getName());
  if (failed(lowerToLLVM(*copy, options, description)))
    return failure();
  auto engine = createEngine(*copy, options.optimization);
  if (!engine)
    return module.emitError("cannot compile for this processor: ")
           << llvm::toString(engine.takeError());
  program.engine = std::move(*engine);
  program.engine->registerSymbols(helperFunctions);
  auto entry = program.engine->lookupPacked(description.name);
  if (!entry)
    return module.emitError("cannot link the compiled function: ")
           << llvm::toString(entry.takeError());
  program.entry = *entry;
  return program;
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

static bool isContiguous(const runtime::Argument &tensor) {
  int64_t stride = 1;
  for (int64_t i = tensor.rank; i-- > 0;) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != stride)
      return false;
    stride *= tensor.sizes[i];
  }
  return true;
}

runtime::Status HostProgram::invoke(const runtime::Arguments &arguments) const {
  auto call = runtime::prepareLaunch(description, arguments);
  if (!call.ok())
    return call.status();
  if (needsContiguousOutputs)
    for (size_t i = 0; i < arguments.size(); ++i)
      if (description.arguments[i].isOutput && !isContiguous(arguments[i]))
        return runtime::Status::error("output '" +
                                      description.arguments[i].name +
                                      "' of an oracle must be contiguous");
  SmallVector<void *> slots;
  for (uint64_t &parameter : call->parameters)
    slots.push_back(&parameter);
  entry(slots.data());
  return runtime::Status();
}
