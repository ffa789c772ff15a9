//===- Simulator.cpp - GPU kernels run lane by lane on the CPU -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simulator/Simulator.h"

#include "Interpreter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace attn::simulator;

namespace {
/// A host function with its arguments.
class Simulation {
public:
  LogicalResult run(func::FuncOp host, ArrayRef<HostArgument> arguments);

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

LogicalResult Simulation::run(func::FuncOp host,
                              ArrayRef<HostArgument> arguments) {
  Interpreter interpreter(/*threads=*/1, BlockPlace(), /*shared=*/nullptr,
                          global);
  if (failed(bindArguments(host, arguments, interpreter, global)))
    return failure();
  interpreter.onHost = [&](Operation *op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return allocate(alloc, interpreter, global), success();
    return launch(interpreter, cast<gpu::LaunchFuncOp>(op));
  };
  return interpreter.run(host.getBody().front());
}

LogicalResult attn::simulator::simulate(func::FuncOp host,
                                        ArrayRef<HostArgument> arguments) {
  return Simulation().run(host, arguments);
}
