//===- Simulator.cpp - GPU kernels run lane by lane on the CPU -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Simulator/Simulator.h"

#include "Interpreter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace attn::simulator;

/// An argument as the same bits in every lane.
static Lanes spread(const Argument &argument, int64_t threads) {
  if (!argument.data)
    return {Part(threads, argument.scalar)};
  Lanes lanes = {Part(threads, reinterpret_cast<uint64_t>(argument.data)),
                 Part(threads, 0)};
  for (int64_t size : argument.sizes)
    lanes.push_back(Part(threads, size));
  for (int64_t stride : argument.strides)
    lanes.push_back(Part(threads, stride));
  return lanes;
}

/// Bytes from the first to the last element of a tensor.
static int64_t countBytes(const Argument &argument, int64_t elementBytes) {
  int64_t last = 0;
  for (auto [size, stride] :
       llvm::zip_equal(argument.sizes, argument.strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * elementBytes;
}

namespace {
/// A host function with its arguments.
class Simulation {
public:
  LogicalResult run(func::FuncOp host, ArrayRef<Argument> arguments);

private:
  LogicalResult launch(Interpreter &caller, gpu::LaunchFuncOp op);
  LogicalResult runBlock(gpu::GPUFuncOp kernel, ArrayRef<Lanes> arguments,
                         int64_t threads, int64_t sharedBytes,
                         const BlockPlace &place);

  GlobalMemory global;
};
} // namespace

LogicalResult Simulation::runBlock(gpu::GPUFuncOp kernel,
                                   ArrayRef<Lanes> arguments, int64_t threads,
                                   int64_t sharedBytes,
                                   const BlockPlace &place) {
  SharedMemory shared(sharedBytes);
  Interpreter interpreter(threads, place, &shared, global);
  for (auto [arg, lanes] :
       llvm::zip_equal(kernel.getBody().getArguments(), arguments)) {
    Lanes wide;
    for (const Part &part : lanes)
      wide.push_back(Part(threads, part[0]));
    interpreter.set(arg, std::move(wide));
  }
  if (failed(interpreter.run(kernel.getBody().front())))
    return failure();
  if (shared.hasCopiesInFlight())
    return kernel.emitOpError("ends while copies are in flight");
  return success();
}

LogicalResult Simulation::launch(Interpreter &caller, gpu::LaunchFuncOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(
      op, op.getKernelAttr());
  if (!kernel)
    return op.emitOpError("names no gpu.func");
  SmallVector<Lanes> arguments;
  for (Value operand : op.getKernelOperands())
    arguments.push_back(caller.get(operand));
  auto size = [&](Value value) { return caller.getSigned(value); };
  int64_t threads = size(op.getBlockSizeX()) * size(op.getBlockSizeY()) *
                    size(op.getBlockSizeZ());
  Value dynamic = op.getDynamicSharedMemorySize();
  BlockPlace place;
  place.grid = {size(op.getGridSizeX()), size(op.getGridSizeY()),
                size(op.getGridSizeZ())};
  auto &[x, y, z] = place.block;
  for (z = 0; z < place.grid[2]; ++z)
    for (y = 0; y < place.grid[1]; ++y)
      for (x = 0; x < place.grid[0]; ++x)
        if (failed(runBlock(kernel, arguments, threads,
                            dynamic ? size(dynamic) : 0, place)))
          return failure();
  return success();
}

LogicalResult Simulation::run(func::FuncOp host, ArrayRef<Argument> arguments) {
  if (arguments.size() != host.getNumArguments())
    return host.emitOpError("has ")
           << host.getNumArguments() << " arguments, got " << arguments.size();
  Interpreter interpreter(/*threads=*/1, BlockPlace(), /*shared=*/nullptr,
                          global);
  for (auto [arg, argument] : llvm::zip_equal(host.getArguments(), arguments)) {
    if (auto memref = dyn_cast<MemRefType>(arg.getType())) {
      if (int64_t(argument.sizes.size()) != memref.getRank())
        return host.emitOpError("got an argument of another rank");
      global.add(argument.data,
                 countBytes(argument, bitsOf(memref.getElementType()) / 8));
    }
    interpreter.set(arg, spread(argument, 1));
  }
  interpreter.launch = [&](Operation *op) {
    return launch(interpreter, cast<gpu::LaunchFuncOp>(op));
  };
  return interpreter.run(host.getBody().front());
}

LogicalResult attn::simulator::simulate(func::FuncOp host,
                                        ArrayRef<Argument> arguments) {
  return Simulation().run(host, arguments);
}
