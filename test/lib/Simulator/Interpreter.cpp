//===- Interpreter.cpp - one operation for all lanes of a block -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::simulator;

int64_t attn::simulator::bitsOf(Type type) {
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
}

Type attn::simulator::elementOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getElementType();
  if (auto fragment = dyn_cast<warp::FragType>(type))
    return fragment.getElementType();
  return type;
}

int64_t attn::simulator::countParts(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements();
  if (auto fragment = dyn_cast<warp::FragType>(type)) {
    layout::Fragment layout = fragment.getLayout();
    return layout.numRegisters() * layout.elementsPerRegister();
  }
  if (auto memref = dyn_cast<MemRefType>(type))
    return 2 + 2 * memref.getRank();
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type)) {
    int64_t parts = 0;
    for (Type field : structure.getBody())
      parts += countParts(field);
    return parts;
  }
  return 1;
}

uint64_t attn::simulator::truncate(uint64_t bits, int64_t width) {
  return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

int64_t attn::simulator::extend(uint64_t bits, int64_t width) {
  return width == 64 ? int64_t(bits)
                     : llvm::SignExtend64(bits, unsigned(width));
}

float attn::simulator::toFloat(Type type, uint64_t bits) {
  if (type.isF32())
    return llvm::bit_cast<float>(uint32_t(bits));
  if (type.isBF16())
    return llvm::bit_cast<float>(uint32_t(bits << 16));
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  APFloat value(semantics, APInt(bitsOf(type), bits));
  bool lossy;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lossy);
  return value.convertToFloat();
}

uint64_t attn::simulator::fromFloat(Type type, float number) {
  if (type.isF32())
    return llvm::bit_cast<uint32_t>(number);
  if (type.isBF16() && number == number) {
    // To nearest, ties to even; a NaN goes the long way.
    uint32_t bits = llvm::bit_cast<uint32_t>(number);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  APFloat value(number);
  bool lossy;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &lossy);
  return value.bitcastToAPInt().getZExtValue();
}

Lanes &Interpreter::get(Value value) {
  Lanes &lanes = values[value];
  if (lanes.empty())
    lanes.assign(countParts(value.getType()), Part(threads, 0));
  return lanes;
}

int64_t Interpreter::getSigned(Value value, int64_t thread) {
  uint64_t bits = get(value)[0][thread];
  return extend(bits, bitsOf(value.getType()));
}

LogicalResult Interpreter::execute(Operation *op) {
  // References into `values` stay valid only if no value is added: add first.
  for (Value result : op->getResults())
    (void)get(result);
  for (Value operand : op->getOperands())
    (void)get(operand);
  if (std::optional<LogicalResult> done = executeArithmetic(op))
    return *done;
  if (std::optional<LogicalResult> done = executeMath(op))
    return *done;
  if (std::optional<LogicalResult> done = executeMemory(op))
    return *done;
  if (std::optional<LogicalResult> done = executeMachine(op))
    return *done;
  if (std::optional<LogicalResult> done = executeControl(op))
    return *done;
  return op->emitOpError("is not known to the simulator");
}

LogicalResult Interpreter::run(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(execute(&op)))
      return failure();
  return success();
}
