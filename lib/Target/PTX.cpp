//===- PTX.cpp - kernels as LLVM IR and PTX -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX.h"

#include "attn/Support/TargetInfo.h"
#include "attn/Target/Jobs.h"
#include "attn/Target/NegatedExtremes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <atomic>
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

namespace {
/// Leaves passes of the back end out. Strength reduction takes a fourth of its
/// time; a second numbering of values 13 of 216 ms from a program to PTX, and
/// it finds next to nothing: of 26 programs for sm_90a 18 had the same opcodes
/// and labels without it, the others a few labels less or more.
class NoRepetition : public llvm::OptPassGate {
public:
  bool shouldRunPass(StringRef name, StringRef) const override {
    return name != "slsr" && name != "gvn";
  }
  bool isEnabled() const override { return true; }
};
} // namespace

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

/// The passes of -O3 that change kernels, in its order: a quarter of them, in
/// 0.6 of the time. With all of them the PTX was the same for 99 of 103
/// modules, kernels and gradients of many masks and scores for both targets; in
/// the others operands of one `and` were the other way round.
static constexpr char passesOfWarps[] =
    "function(simplifycfg,sroa<modify-cfg>,early-cse),"
    "ipsccp,"
    "function(instcombine<no-verify-fixpoint>,simplifycfg,"
    "early-cse<memssa>,"
    "speculative-execution<only-if-divergent-target>,"
    "correlated-propagation,simplifycfg,"
    "instcombine<no-verify-fixpoint>,aggressive-instcombine,"
    "reassociate,constraint-elimination,"
    "loop-mssa(licm<no-allowspeculation>,"
    "loop-rotate<header-duplication;no-prepare-for-lto>,"
    "licm<allowspeculation>),"
    "simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop(indvars),gvn,sccp,"
    "instcombine<no-verify-fixpoint>,correlated-propagation,"
    "simplifycfg<hoist-common-insts;sink-common-insts>,"
    "instcombine<no-verify-fixpoint>,"
    "simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts>,"
    "loop-mssa(licm<allowspeculation>),div-rem-pairs)";

/// Those that matter where warpgroups multiply, in 0.6 of the time of the ones
/// above. On an H100 kernels of sm_90a, forward and gradients, ran 0.995 to
/// 1.007 times as fast as with those (22 kernels at 4 lengths); those of sm_80
/// ran down to 0.97 times as fast.
static constexpr char passesOfGroups[] =
    "function(simplifycfg,sroa<modify-cfg>,early-cse,"
    "instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>,reassociate,"
    "loop-mssa(licm<no-allowspeculation>,"
    "loop-rotate<header-duplication;no-prepare-for-lto>,"
    "licm<allowspeculation>),"
    "simplifycfg,loop(indvars),gvn,instcombine<no-verify-fixpoint>,"
    "simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts>,"
    "div-rem-pairs)";

static bool hasWarpgroups(const llvm::TargetMachine &machine) {
  const TargetInfo *target = findTarget(machine.getTargetCPU());
  return target && target->hasWarpgroups;
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
  llvm::ModulePassManager passes;
  bool hasCalls = llvm::any_of(module, [](const llvm::Function &function) {
    return !function.isDeclaration() && !function.use_empty();
  });
  if (level >= 3 && !hasCalls)
    llvm::cantFail(builder.parsePassPipeline(
        passes, hasWarpgroups(machine) ? passesOfGroups : passesOfWarps));
  else
    passes = builder.buildPerModuleDefaultPipeline(levelOf(level));
  passes.run(module, modules);
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

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

using FunctionNames = SmallVector<StringRef>;

/// The kernels of each part: one of its own for each that is a large part of
/// the module, the last one for the others. The largest is first: threads here
/// and in ptxas take them in order, and none shall begin with it when the
/// others are done. Nothing: all kernels stay together.
static SmallVector<FunctionNames> chooseParts(gpu::GPUModuleOp kernels) {
  constexpr unsigned large = 8; // an eighth of all
  // A constant that two parts define would be there twice, and a function that
  // others call is not taken from them.
  bool isShared =
      llvm::any_of(kernels.getOps<LLVM::GlobalOp>(), [](LLVM::GlobalOp global) {
        return global.getValueOrNull() || global.getInitializerBlock();
      });
  SmallVector<std::pair<unsigned, StringRef>> counts;
  unsigned all = 0;
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    unsigned count = 0;
    function.walk([&](Operation *op) {
      ++count;
      FlatSymbolRefAttr used;
      if (auto call = dyn_cast<LLVM::CallOp>(op))
        used = call.getCalleeAttr();
      else if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
        used = address.getGlobalNameAttr();
      if (used)
        if (auto other = kernels.lookupSymbol<LLVM::LLVMFuncOp>(used))
          isShared |= !other.isExternal();
    });
    counts.emplace_back(count, function.getName());
    all += count;
  }
  llvm::stable_sort(
      counts, [](const auto &a, const auto &b) { return a.first > b.first; });
  SmallVector<FunctionNames> parts;
  for (auto [count, name] : counts)
    if (count * large >= all)
      parts.push_back({name});
  if (parts.size() <= 1 || isShared)
    return {};
  size_t numLarge = parts.size();
  if (numLarge < counts.size())
    parts.emplace_back();
  for (auto [count, name] : llvm::drop_begin(counts, numLarge))
    parts.back().push_back(name);
  return parts;
}

/// As LLVM IR. The pipeline has verified the module.
static std::unique_ptr<llvm::Module> translateAll(gpu::GPUModuleOp kernels,
                                                  llvm::LLVMContext &context) {
  return translateModuleToLLVMIR(kernels, context, kernels.getName(),
                                 /*disableVerification=*/true);
}

/// Some of the kernels as LLVM IR, with all that is no kernel. Meanwhile they
/// are in a module of their own.
static std::unique_ptr<llvm::Module> translatePart(gpu::GPUModuleOp kernels,
                                                   const FunctionNames &names,
                                                   llvm::LLVMContext &context) {
  OwningOpRef<gpu::GPUModuleOp> part(
      cast<gpu::GPUModuleOp>(kernels->cloneWithoutRegions()));
  Block &body = part->getBodyRegion().emplaceBlock();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  for (Operation &op : *kernels.getBody())
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
        !function || function.isExternal())
      builder.clone(op);
  SmallVector<std::pair<Operation *, Operation *>> places;
  for (StringRef name : names) {
    Operation *function = kernels.lookupSymbol(name);
    places.emplace_back(function, function->getNextNode());
    function->moveBefore(&body, body.end());
  }
  std::unique_ptr<llvm::Module> module = translateAll(*part, context);
  for (auto [function, next] : llvm::reverse(places))
    function->moveBefore(kernels.getBody(),
                         next ? next->getIterator() : kernels.getBody()->end());
  return module;
}

FailureOr<KernelCode> KernelCode::translate(gpu::GPUModuleOp kernels,
                                            unsigned threads) {
  KernelCode code(kernels);
  markGridConstants(kernels);
  SmallVector<FunctionNames> chosen = chooseParts(kernels);
  code.parts.resize(std::max<size_t>(chosen.size(), 1));
  for (auto [number, part] : llvm::enumerate(code.parts)) {
    FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
        createMachine(kernels);
    if (failed(machine))
      return failure();
    part.machine = std::move(*machine);
    part.module = chosen.empty()
                      ? translateAll(kernels, *part.context)
                      : translatePart(kernels, chosen[number], *part.context);
    if (!part.module)
      return kernels.emitOpError("cannot be translated to LLVM IR");
    part.module->setTargetTriple(part.machine->getTargetTriple());
    part.module->setDataLayout(part.machine->createDataLayout());
    if (failed(checkComplete(kernels, *part.module)))
      return failure();
    markConvergent(*part.module);
  }
  unsigned level = targetOf(kernels).getO();
  runJobs(code.parts.size(), threads, [&](size_t number) {
    Part &part = code.parts[number];
    optimize(*part.module, *part.machine, level);
    rewriteNegatedExtremes(*part.module);
  });
  return code;
}

std::optional<RegisterLiveness>
KernelCode::countLiveRegisters(StringRef kernel) const {
  for (const Part &part : parts)
    if (const llvm::Function *function = part.module->getFunction(kernel);
        function && !function->isDeclaration())
      return attn::countLiveRegisters(*function);
  return std::nullopt;
}

void KernelCode::drop(StringRef kernel) {
  for (Part &part : parts)
    if (llvm::Function *function = part.module->getFunction(kernel))
      function->eraseFromParent();
}

std::string KernelCode::print() const {
  llvm::LLVMContext context;
  auto all = std::make_unique<llvm::Module>(
      parts.front().module->getModuleIdentifier(), context);
  all->setTargetTriple(parts.front().module->getTargetTriple());
  all->setDataLayout(parts.front().module->getDataLayout());
  llvm::Linker linker(*all);
  for (const Part &part : parts) {
    SmallVector<char, 0> bitcode;
    llvm::raw_svector_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(*part.module, stream);
    llvm::MemoryBufferRef buffer(StringRef(bitcode.data(), bitcode.size()),
                                 "kernels");
    linker.linkInModule(
        llvm::cantFail(llvm::parseBitcodeFile(buffer, context)));
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << *all;
  return text;
}

/// Appends the kernels of a part to a text: what stands once in it, its head
/// and shared memory, is in the first part's.
static void appendKernels(StringRef ptx, std::string &text,
                          llvm::StringSet<> &declared) {
  constexpr StringLiteral head = ".address_size 64\n\n";
  bool isFirst = text.empty();
  size_t end = ptx.find(head);
  assert(end != StringRef::npos && "PTX without a head");
  if (isFirst)
    text = ptx.take_front(end + head.size());
  StringRef rest = ptx.drop_front(end + head.size());
  while (!rest.empty()) {
    auto [line, tail] = rest.split('\n');
    rest = tail;
    if (!line.starts_with(".extern") || declared.insert(line).second)
      (text += line) += '\n';
  }
}

FailureOr<std::string> KernelCode::emitPTX(unsigned threads,
                                           bool reducesStrength) {
  std::atomic<bool> isWritten = true;
  runJobs(parts.size(), threads, [&](size_t number) {
    Part &part = parts[number];
    static NoRepetition gate; // the context keeps it
    if (!reducesStrength && hasWarpgroups(*part.machine))
      part.context->setOptPassGate(gate);
    llvm::raw_svector_ostream stream(part.ptx);
    llvm::legacy::PassManager passes;
    if (part.machine->addPassesToEmitFile(passes, stream, nullptr,
                                          llvm::CodeGenFileType::AssemblyFile))
      isWritten = false;
    else
      passes.run(*part.module);
  });
  if (!isWritten)
    return kernels.emitOpError("cannot be written as PTX");
  if (parts.size() == 1)
    return std::string(parts.front().ptx);
  std::string text;
  llvm::StringSet<> declared;
  for (const Part &part : parts)
    appendKernels(part.ptx, text, declared);
  return text;
}
