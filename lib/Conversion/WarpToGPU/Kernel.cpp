//===- Kernel.cpp - the kernel function and its launch -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "Copies.h"
#include "Meetings.h"
#include "NarrowIndices.h"
#include "Roles.h"

#include "attn/Dialect/Warp/Analysis/BlockNumbers.h"
#include "attn/Dialect/Warp/Analysis/PendingCopies.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn::warp;

namespace attn::warp {

FailureOr<SmallVector<KernelOp>> findKernels(func::FuncOp host) {
  SmallVector<KernelOp> kernels;
  WalkResult walk = host.walk([&](KernelOp kernel) {
    if (kernel->getBlock() != &host.getBody().front()) {
      kernel.emitError("expected the kernel in the entry block of a function");
      return WalkResult::interrupt();
    }
    kernels.push_back(kernel);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return kernels;
}

/// What the host allocates: arguments of every kernel.
static SmallVector<Value> hostMemory(func::FuncOp host) {
  SmallVector<Value> memory;
  for (auto alloc : host.getOps<memref::AllocOp>())
    memory.push_back(alloc.getResult());
  return memory;
}

/// The operations outside the kernel that its body needs, in order. They are
/// computed again in the kernel, so they must be free of effects.
static FailureOr<SetVector<Operation *>> capturedSlice(KernelOp kernel) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(kernel.getBody(), captured);
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [](Operation *op) { return !isa<memref::AllocOp>(op); };
  SetVector<Operation *> slice;
  for (Value value : captured)
    if (value.getDefiningOp() && options.filter(value.getDefiningOp()))
      if (failed(getBackwardSlice(value, &slice, options)))
        return kernel.emitError("cannot compute what the kernel captures");
  for (Operation *op : slice)
    if (!isMemoryEffectFree(op))
      return op->emitError("a kernel cannot capture the result of an operation "
                           "with effects");
  return slice;
}

/// Which arguments of the host the kernel copies from or stores to in blocks of
/// 16 bytes, so that their base and strides must be multiples of that.
static llvm::SmallDenseSet<unsigned> blockArguments(KernelOp kernel) {
  llvm::SmallDenseSet<unsigned> arguments;
  auto add = [&](Value view) {
    if (auto argument = dyn_cast<BlockArgument>(view))
      if (argument.getOwner()->isEntryBlock())
        arguments.insert(argument.getArgNumber());
  };
  kernel.walk([&](Operation *op) {
    // Threads copy a row element by element.
    auto isByElement = [&](ArrayRef<int64_t> shape) {
      return shape[0] == 1 && !kernel.hasRoles();
    };
    if (auto copy = dyn_cast<CopyOp>(op)) {
      if (!isByElement(copy.getSlot().getType().getShape()))
        add(copy.getView());
    } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      if (!isByElement(copy.getRing().getType().getShape()))
        add(copy.getView());
    } else if (auto products = dyn_cast<DotRowsOp>(op)) {
      add(products.getLhs());
      add(products.getRhs());
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      if (!store.getRows())
        add(store.getView());
    }
  });
  return arguments;
}

/// The module of the kernels of `host`; the first one makes it.
static gpu::GPUModuleOp moduleOf(RewriterBase &rewriter, func::FuncOp host,
                                 const KernelTarget &target) {
  std::string name = (host.getName() + "_kernels").str();
  auto symbols = host->getParentOfType<ModuleOp>();
  if (auto module = symbols.lookupSymbol<gpu::GPUModuleOp>(name))
    return module;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(host);
  MLIRContext *context = host.getContext();
  auto targetAttr =
      NVVM::NVVMTargetAttr::get(context, /*optLevel=*/3, "nvptx64-nvidia-cuda",
                                target.chip, target.features);
  return gpu::GPUModuleOp::create(rewriter, host.getLoc(), name,
                                  ArrayRef<Attribute>{targetAttr});
}

/// Replaces the kernel by the launch of `function`.
static void launch(RewriterBase &rewriter, func::FuncOp host, KernelOp kernel,
                   gpu::GPUFuncOp function,
                   const llvm::SmallDenseSet<unsigned> &blocks,
                   ArrayRef<TensorMapAttr> maps) {
  rewriter.setInsertionPoint(kernel);
  Location loc = kernel.getLoc();
  SmallVector<Value> operands;
  for (BlockArgument argument : host.getArguments()) {
    if (!blocks.contains(argument.getArgNumber())) {
      operands.push_back(argument);
      continue;
    }
    operands.push_back(memref::AssumeAlignmentOp::create(
        rewriter, loc, argument, layout::chunkBytes));
  }
  llvm::append_range(operands, hostMemory(host));
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value one = index(1);
  Value shared = arith::ConstantIntOp::create(
      rewriter, loc, kernel.getSharedBytes().value_or(0), 32);
  // The runtime makes the maps at launch, from what the attribute says.
  SmallVector<Attribute> descriptions(maps.begin(), maps.end());
  for (size_t number = 0; number < maps.size(); ++number)
    operands.push_back(LLVM::ZeroOp::create(
        rewriter, loc, LLVM::LLVMPointerType::get(rewriter.getContext())));
  auto launchOp = gpu::LaunchFuncOp::create(
      rewriter, loc, function,
      gpu::KernelDim3{kernel.getGridX(), kernel.getGridY(), kernel.getGridZ()},
      gpu::KernelDim3{index(kernel.getWarps() * layout::warpSize), one, one},
      shared, operands);
  if (!maps.empty())
    launchOp->setAttr(WarpDialect::kTensorMapsAttrName,
                      rewriter.getArrayAttr(descriptions));
  if (kernel.getResident())
    launchOp->setAttr(WarpDialect::kResidentAttrName, rewriter.getUnitAttr());
  if (kernel.getStart())
    launchOp->setAttr(WarpDialect::kEarlyAttrName, rewriter.getUnitAttr());
  rewriter.eraseOp(kernel);
}

/// The await after `await` with nothing but arithmetic in between.
static AwaitOp nextAwait(AwaitOp await) {
  Operation *next = await->getNextNode();
  while (next && isPure(next) && next->getNumRegions() == 0)
    next = next->getNextNode();
  return dyn_cast_or_null<AwaitOp>(next);
}

/// The plans of a kernel's awaits.
static FailureOr<AwaitPlans> planAwaits(KernelOp kernel) {
  AwaitPlans plans;
  if (kernel.hasRoles())
    return plans; // they wait at barriers
  std::optional<int64_t> carried;
  WalkResult walk = kernel.walk([&](AwaitOp await) {
    FailureOr<int64_t> count = countYoungerCopies(await);
    if (failed(count)) {
      await.emitOpError("waits for a ring that nothing fills");
      return WalkResult::interrupt();
    }
    int64_t pending = std::min(*count, carried.value_or(*count));
    if (nextAwait(await)) {
      carried = pending;
      plans[await] = {};
    } else {
      carried.reset();
      plans[await] = {pending};
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return plans;
}

/// A whole tile: moving its user down would keep it alive.
static bool isTile(Value value) {
  auto type = dyn_cast<FragType>(value.getType());
  return type && llvm::all_of(type.getShape(), [](int64_t size) {
           return size > layout::laneColumns;
         });
}

/// Moves pure operations that read no tile down to their first user. What is
/// computed early (the columns of a masked block, the row limits of the last
/// loop) would be alive where the accumulators take all registers, and neither
/// LLVM nor ptxas moves it down past the barriers.
static void sinkToUsers(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        sinkToUsers(inner);
    if (!isPure(&op) || op.getNumRegions() != 0 || op.use_empty() ||
        llvm::any_of(op.getOperands(), isTile))
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (!first || here->isBeforeInBlock(first))
        first = here;
    }
    op.moveBefore(first);
  }
}

/// What kernels divide by a number that is not constant are numbers of blocks
/// and of heads, which are below 2^31. In 64 bits that would be a call, for
/// which registers are saved.
static void narrowDivisions(gpu::GPUFuncOp function) {
  function.walk([](Operation *op) {
    if (!isa<arith::DivSIOp, arith::DivUIOp>(op) ||
        !op->getResult(0).getType().isIndex() ||
        matchPattern(op->getOperand(1), m_Constant()))
      return;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    SmallVector<Value> words;
    for (Value operand : op->getOperands())
      words.push_back(arith::IndexCastOp::create(
          builder, loc, builder.getI32Type(), operand));
    Value narrow;
    if (isa<arith::DivSIOp>(op))
      narrow = arith::DivSIOp::create(builder, loc, words[0], words[1]);
    else
      narrow = arith::DivUIOp::create(builder, loc, words[0], words[1]);
    op->getResult(0).replaceAllUsesWith(arith::IndexCastOp::create(
        builder, loc, builder.getIndexType(), narrow));
    op->erase();
  });
}

/// What a block does first for the kernels before it and after it: it waits for
/// those, and lets these start, at once if they wait themselves. Kernels that
/// run beside this one do not: to them all is complete that this one found so.
static void awaitKernels(RewriterBase &rewriter, KernelOp kernel) {
  Location loc = kernel.getLoc();
  auto control = [&](NVVM::GridDepActionKind kind) {
    NVVM::GriddepcontrolOp::create(rewriter, loc, kind);
  };
  std::optional<Start> start = kernel.getStart(), ofNext;
  if (KernelOp next = kernel.getNextKernel())
    ofNext = next.getStart();
  if (ofNext == Start::Early)
    control(NVVM::GridDepActionKind::launch_dependents);
  if (start == Start::Early)
    control(NVVM::GridDepActionKind::wait);
  // They may run on other multiprocessors, with caches of their own.
  if (start == Start::Beside || ofNext == Start::Beside)
    NVVM::MembarOp::create(rewriter, loc, NVVM::MemScopeKind::GPU);
  if (ofNext == Start::Beside)
    control(NVVM::GridDepActionKind::launch_dependents);
}

/// A tensor map is 128 bytes of parameter memory, whose address TMA takes.
static void describeTensorMap(gpu::GPUFuncOp function, int64_t argument) {
  constexpr int64_t bytes = 128, alignment = 64;
  MLIRContext *context = function.getContext();
  Builder builder(context);
  function.setArgAttr(
      argument, LLVM::LLVMDialect::getByValAttrName(),
      TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), bytes)));
  function.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(alignment));
}

FailureOr<OutlinedKernel> outlineKernel(RewriterBase &rewriter,
                                        func::FuncOp host, KernelOp kernel,
                                        StringRef name,
                                        const KernelTarget &target) {
  constexpr int64_t firstWithStarts = 90;
  const TargetInfo *info = findTarget(target.chip.str());
  if (kernel.getStart() && (!info || info->sm < firstWithStarts))
    return kernel.emitOpError("starts(")
           << stringifyStart(*kernel.getStart()) << "), which " << target.chip
           << " cannot; expected sm_90a";
  FailureOr<SetVector<Operation *>> slice = capturedSlice(kernel);
  FailureOr<AwaitPlans> plans = planAwaits(kernel);
  FailureOr<TensorMaps> maps = collectTensorMaps(kernel);
  if (failed(slice) || failed(plans) || failed(maps))
    return failure();
  llvm::SmallDenseSet<unsigned> blocks = blockArguments(kernel);

  OpBuilder::InsertionGuard guard(rewriter);
  gpu::GPUModuleOp module = moduleOf(rewriter, host, target);
  rewriter.setInsertionPointToEnd(module.getBody());
  SmallVector<Value> memory = llvm::to_vector_of<Value>(host.getArguments());
  llvm::append_range(memory, hostMemory(host));
  SmallVector<Type> arguments = llvm::to_vector(ValueRange(memory).getTypes());
  auto firstMap = static_cast<int64_t>(arguments.size());
  arguments.append(maps->maps.size(),
                   LLVM::LLVMPointerType::get(rewriter.getContext()));
  auto type = rewriter.getFunctionType(arguments, {});
  auto function = gpu::GPUFuncOp::create(rewriter, kernel.getLoc(), name, type);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    rewriter.getUnitAttr());
  function.setKnownBlockSize(std::array<int32_t, 3>{
      static_cast<int32_t>(kernel.getWarps() * layout::warpSize), 1, 1});

  for (size_t i = 0; i < maps->maps.size(); ++i)
    describeTensorMap(function, firstMap + i);
  // Blocks with roles fill a multiprocessor, so many; to have more blocks of
  // one warp, which only prepare, ptxas would spill.
  if (kernel.hasRoles() || kernel.getWarps() == 1)
    function->setAttr(
        NVVM::NVVMDialect::getMinctasmAttrName(),
        rewriter.getI32IntegerAttr(kernel.getBlocksPerSM().value_or(1)));

  Block *entry = &function.getBody().front();
  rewriter.setInsertionPointToStart(entry);
  IRMapping map;
  map.map(memory, entry->getArguments().take_front(firstMap));
  for (auto [from, to] : llvm::zip(memory, entry->getArguments()))
    to.setLoc(from.getLoc()); // which names it in printed IR
  for (Operation *op : *slice)
    rewriter.clone(*op, map);
  const std::array dims = {gpu::Dimension::x, gpu::Dimension::y,
                           gpu::Dimension::z};
  const std::array<Value, 3> sizes = {kernel.getGridX(), kernel.getGridY(),
                                      kernel.getGridZ()};
  for (auto [argument, dim, size] :
       llvm::zip_equal(kernel.getBody().getArguments(), dims, sizes)) {
    auto number = gpu::BlockIdOp::create(rewriter, kernel.getLoc(), dim);
    if (std::optional<int64_t> most = getMostBelow(size))
      setMost(number, *most);
    map.map(argument, number.getResult());
  }
  awaitKernels(rewriter, kernel);
  for (Operation &op : kernel.getBody().front().without_terminator())
    rewriter.clone(op, map);
  gpu::ReturnOp::create(rewriter, kernel.getLoc());
  sinkToUsers(*entry);
  narrowDivisions(function);
  if (failed(narrowIndices(function)))
    return failure();

  OutlinedKernel outlined;
  outlined.function = function;
  outlined.waitsAtEnd = kernel.getStart() == Start::Beside;
  outlined.roles = planRoles(kernel, map, *maps, firstMap);
  for (auto &[await, plan] : *plans)
    outlined.awaits[map.lookup(await)] = plan;
  for (auto &[store, plan] : planStoreFrags(kernel, *plans))
    outlined.storeFrags[map.lookup(store)] = plan;
  launch(rewriter, host, kernel, function, blocks, maps->maps);
  return outlined;
}

} // namespace attn::warp
