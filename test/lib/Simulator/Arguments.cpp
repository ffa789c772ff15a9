//===- Arguments.cpp - what a simulated program is given --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "attn/Dialect/Warp/IR/Warp.h"

using namespace mlir;
using namespace attn;
using namespace attn::simulator;

/// An argument as the bits of one lane.
static Lanes toLanes(const HostArgument &argument) {
  if (!argument.data)
    return {Part(1, argument.scalar)};
  Lanes lanes = {Part(1, reinterpret_cast<uint64_t>(argument.data)),
                 Part(1, 0)};
  for (int64_t size : argument.sizes)
    lanes.push_back(Part(1, size));
  for (int64_t stride : argument.strides)
    lanes.push_back(Part(1, stride));
  return lanes;
}

/// Bytes from the first to the last element of a tensor.
static int64_t countBytes(const HostArgument &argument, int64_t elementBytes) {
  int64_t last = 0;
  for (auto [size, stride] :
       llvm::zip_equal(argument.sizes, argument.strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * elementBytes;
}

LogicalResult attn::simulator::bindArguments(func::FuncOp host,
                                             ArrayRef<HostArgument> arguments,
                                             Interpreter &interpreter,
                                             GlobalMemory &global) {
  if (arguments.size() != host.getNumArguments())
    return host.emitOpError("has ")
           << host.getNumArguments() << " arguments, got " << arguments.size();
  for (auto [value, argument] :
       llvm::zip_equal(host.getArguments(), arguments)) {
    if (auto memref = dyn_cast<MemRefType>(value.getType())) {
      if (int64_t(argument.sizes.size()) != memref.getRank())
        return host.emitOpError("got an argument of another rank");
      int64_t bytes = (bitsOf(memref.getElementType()) + 7) / 8;
      global.add(argument.data, countBytes(argument, bytes));
    }
    interpreter.set(value, toLanes(argument));
  }
  return success();
}

void attn::simulator::allocate(memref::AllocOp op, Interpreter &host,
                               GlobalMemory &global) {
  MemRefType type = op.getType();
  HostArgument workspace;
  workspace.strides.assign(type.getRank(), 1);
  auto dynamic = op.getDynamicSizes().begin();
  for (int64_t size : type.getShape())
    workspace.sizes.push_back(
        ShapedType::isDynamic(size) ? host.getSigned(*dynamic++) : size);
  int64_t elements = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    workspace.strides[dim] = elements;
    elements *= workspace.sizes[dim];
  }
  constexpr uint8_t poison = 0xff; // NaN
  bool isZeroed = op->hasAttr(warp::WarpDialect::kZeroedAttrName);
  workspace.data =
      global.allocate(elements * ((bitsOf(type.getElementType()) + 7) / 8),
                      isZeroed ? 0 : poison);
  host.set(op, toLanes(workspace));
}
