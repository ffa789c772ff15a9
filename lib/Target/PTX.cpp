//===- PTX.cpp - kernels as LLVM IR and PTX -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace attn;

// The one back end of this library; tools may have linked others.
extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

void attn::initializeGPUBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

static NVVM::NVVMTargetAttr targetOf(gpu::GPUModuleOp kernels) {
  if (ArrayAttr targets = kernels.getTargetsAttr())
    for (Attribute target : targets)
      if (auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target))
        return nvvm;
  return {};
}

static FailureOr<std::unique_ptr<llvm::TargetMachine>>
createMachine(gpu::GPUModuleOp kernels) {
  initializeGPUBackend();
  NVVM::NVVMTargetAttr target = targetOf(kernels);
  if (!target)
    return kernels.emitOpError("has no #nvvm.target");
  llvm::Triple triple(target.getTriple());
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return kernels.emitOpError("has target ")
           << target.getTriple() << ": " << error;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.getChip(), target.getFeatures(), llvm::TargetOptions(),
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return kernels.emitOpError("cannot be compiled for ") << target;
  return machine;
}

static llvm::OptimizationLevel levelOf(unsigned level) {
  switch (level) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // A kernel's loops are as unrolled as its plan wants them.
  tuning.LoopUnrolling = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(levelOf(level)).run(module, modules);
}

/// Calls of functions that nobody defines, such as libdevice's.
static LogicalResult checkComplete(gpu::GPUModuleOp kernels,
                                   const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      return kernels.emitError("a kernel calls '")
             << function.getName()
             << "', which no GPU instruction computes and this compiler does "
                "not define";
  return success();
}

/// Tensor maps, pointers aligned to 64 bytes, are parameters of 128 bytes by
/// value that are read where they are. On the way from the gpu dialect these
/// attributes would be refused or lost.
static void markGridConstants(gpu::GPUModuleOp kernels) {
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto alignment = function.getArgAttrOfType<IntegerAttr>(
              i, LLVM::LLVMDialect::getAlignAttrName());
          alignment && alignment.getInt() == 64) {
        MLIRContext *context = function.getContext();
        Type bytes =
            LLVM::LLVMArrayType::get(IntegerType::get(context, 8), 128);
        function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                            TypeAttr::get(bytes));
        function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                            UnitAttr::get(context));
      }
}

/// Assembly with effects belongs to whole warps: it must not move into or out
/// of branches, which the dialect has no word for.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
          if (auto *text =
                  llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()))
            if (llvm::StringRef(text->getConstraintString())
                    .contains("~{memory}"))
              call->setConvergent();
}

FailureOr<std::unique_ptr<llvm::Module>>
attn::translateKernels(gpu::GPUModuleOp kernels, llvm::LLVMContext &context) {
  FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      createMachine(kernels);
  if (failed(machine))
    return failure();
  markGridConstants(kernels);
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, kernels.getName());
  if (!module)
    return kernels.emitOpError("cannot be translated to LLVM IR");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  if (failed(checkComplete(kernels, *module)))
    return failure();
  markConvergent(*module);
  optimize(*module, **machine, targetOf(kernels).getO());
  return module;
}

FailureOr<std::string> attn::emitPTX(gpu::GPUModuleOp kernels,
                                     llvm::Module &module) {
  FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      createMachine(kernels);
  if (failed(machine))
    return failure();
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return kernels.emitOpError("cannot be written as PTX");
  passes.run(module);
  return std::string(text);
}
