//===- Accesses.cpp - memory operations of the simulator ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>

using namespace mlir;
using namespace attn::simulator;

static bool isShared(Type pointer) {
  auto type = dyn_cast<LLVM::LLVMPointerType>(pointer);
  return type && type.getAddressSpace() == 3;
}

/// A load or store of a scalar or a packed vector.
LogicalResult Interpreter::access(Operation *op, Value address, Value value,
                                  bool isStore) {
  int64_t bits = bitsOf(elementOf(value.getType()));
  Lanes &lanes = get(value);
  int64_t bytes = (bits + 7) / 8 * int64_t(lanes.size());
  int64_t partBytes = (bits + 7) / 8;
  Part &addresses = get(address)[0];
  std::vector<uint8_t> buffer(bytes);
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    uint64_t at = addresses[t];
    for (size_t part = 0; part < lanes.size() && isStore; ++part)
      std::memcpy(&buffer[part * partBytes], &lanes[part][t], partBytes);
    std::string message;
    if (isShared(address.getType())) {
      message = isStore ? shared->write(at, bytes, t / 32, buffer.data())
                        : shared->read(at, bytes, t / 32, buffer.data());
    } else {
      message = global.check(at, bytes);
      void *memory = reinterpret_cast<void *>(at);
      if (message.empty() && isStore)
        std::memcpy(memory, buffer.data(), bytes);
      else if (message.empty())
        std::memcpy(buffer.data(), memory, bytes);
    }
    if (!message.empty())
      return op->emitOpError(message) << " (thread " << t << ")";
    for (size_t part = 0; part < lanes.size() && !isStore; ++part) {
      lanes[part][t] = 0;
      std::memcpy(&lanes[part][t], &buffer[part * partBytes], partBytes);
    }
  }
  return success();
}

/// Adds an f32 to one in global memory, lane by lane.
LogicalResult Interpreter::accumulate(Operation *op, Value address,
                                      Value value) {
  Part &addresses = get(address)[0], &numbers = get(value)[0];
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    uint64_t at = addresses[t];
    if (std::string message = global.check(at, sizeof(float)); !message.empty())
      return op->emitOpError(message) << " (thread " << t << ")";
    float sum;
    void *memory = reinterpret_cast<void *>(at);
    std::memcpy(&sum, memory, sizeof(sum));
    sum += toFloat(value.getType(), numbers[t]);
    std::memcpy(memory, &sum, sizeof(sum));
  }
  return success();
}

static int64_t getElementBytes(Type element) {
  return (bitsOf(element) + 7) / 8;
}

/// A load or store of an element of a memref in global memory.
LogicalResult Interpreter::accessElement(Operation *op, Value memref,
                                         ValueRange indices, Value value,
                                         bool isStore) {
  Lanes source = get(memref);
  size_t rank = indices.size();
  int64_t bytes = getElementBytes(value.getType());
  Part &lanes = get(value)[0];
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    int64_t offset = source[1][t];
    for (auto [i, index] : llvm::enumerate(indices))
      offset += getSigned(index, t) * int64_t(source[2 + rank + i][t]);
    uint64_t at = source[0][t] + offset * bytes;
    if (std::string message = global.check(at, bytes); !message.empty())
      return op->emitOpError(message);
    void *memory = reinterpret_cast<void *>(at);
    if (isStore) {
      std::memcpy(memory, &lanes[t], bytes);
    } else {
      lanes[t] = 0;
      std::memcpy(&lanes[t], memory, bytes);
    }
  }
  return success();
}

std::optional<LogicalResult> Interpreter::executeMemory(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<memref::DimOp>([&](memref::DimOp dim) {
        std::optional<int64_t> index = dim.getConstantIndex();
        int64_t number = index ? *index : getSigned(dim.getIndex());
        get(dim)[0] = get(dim.getSource())[2 + number];
        return success();
      })
      .Case<memref::ExtractStridedMetadataOp>([&](auto meta) {
        Lanes source = get(meta.getSource());
        get(meta.getBaseBuffer())[0] = source[0];
        get(meta.getOffset())[0] = source[1];
        size_t rank = meta.getSizes().size();
        for (size_t i = 0; i < rank; ++i) {
          get(meta.getSizes()[i])[0] = source[2 + i];
          get(meta.getStrides()[i])[0] = source[2 + rank + i];
        }
        return success();
      })
      .Case<memref::ExtractAlignedPointerAsIndexOp>([&](auto pointer) {
        get(pointer)[0] = get(pointer.getSource())[0];
        return success();
      })
      .Case<memref::AssumeAlignmentOp>([&](auto assume) -> LogicalResult {
        Lanes source = get(assume.getMemref());
        if (source[0][0] % assume.getAlignment() != 0)
          return assume.emitOpError("got a misaligned argument");
        get(assume.getResult()) = source;
        return success();
      })
      .Case<memref::LoadOp>([&](memref::LoadOp load) {
        return accessElement(op, load.getMemRef(), load.getIndices(),
                             load.getResult(), /*isStore=*/false);
      })
      .Case<memref::StoreOp>([&](memref::StoreOp store) {
        return accessElement(op, store.getMemRef(), store.getIndices(),
                             store.getValue(), /*isStore=*/true);
      })
      .Case<LLVM::AddressOfOp>([&](auto) {
        // The shared memory of a block begins at 0.
        get(op->getResult(0))[0].assign(threads, 0);
        return success();
      })
      .Case<LLVM::GEPOp>([&](LLVM::GEPOp gep) -> std::optional<LogicalResult> {
        if (gep.getIndices().size() != 1)
          return std::nullopt;
        int64_t bytes = getElementBytes(gep.getElemType());
        Part &from = get(gep.getBase())[0], &to = get(gep)[0];
        auto index = *gep.getIndices().begin();
        auto number = dyn_cast<IntegerAttr>(index);
        for (int64_t t = 0; t < threads; ++t)
          to[t] = from[t] + bytes * (number ? number.getInt()
                                            : getSigned(cast<Value>(index), t));
        return success();
      })
      .Case<LLVM::LoadOp>([&](auto load) {
        return access(op, load.getAddr(), load.getRes(), /*isStore=*/false);
      })
      .Case<LLVM::StoreOp>([&](auto store) {
        return access(op, store.getAddr(), store.getValue(), /*isStore=*/true);
      })
      .Case<LLVM::InlineAsmOp>(
          [&](auto assembly) -> std::optional<LogicalResult> {
            if (assembly.getAsmString() !=
                "red.relaxed.gpu.global.add.f32 [$0], $1;")
              return std::nullopt;
            return accumulate(op, op->getOperand(0), op->getOperand(1));
          })
      .Case<LLVM::ExtractValueOp>(
          [&](auto extract) -> std::optional<LogicalResult> {
            if (extract.getPosition().size() != 1)
              return std::nullopt;
            get(extract)[0] =
                get(extract.getContainer())[extract.getPosition()[0]];
            return success();
          })
      .Case<LLVM::InsertValueOp>(
          [&](auto insert) -> std::optional<LogicalResult> {
            if (insert.getPosition().size() != 1)
              return std::nullopt;
            get(insert.getRes()) = get(insert.getContainer());
            get(insert.getRes())[insert.getPosition()[0]] =
                get(insert.getValue())[0];
            return success();
          })
      .Case<LLVM::ExtractElementOp>([&](auto extract) {
        get(extract)[0] =
            get(extract.getVector())[getSigned(extract.getPosition())];
        return success();
      })
      .Case<LLVM::InsertElementOp>([&](auto insert) {
        get(insert) = get(insert.getVector());
        get(insert)[getSigned(insert.getPosition())] =
            get(insert.getValue())[0];
        return success();
      })
      .Default([](Operation *) { return std::nullopt; });
}
