//===- Interpreter.h - one operation for all lanes of a block -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_INTERPRETER_H
#define ATTN_TEST_SIMULATOR_INTERPRETER_H

#include "Memory.h"
#include "Simulator.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace attn::simulator {

/// The lanes of one scalar: raw bits, zero extended.
using Part = std::vector<uint64_t>;
/// A value: one part per scalar of a vector or struct, or per element that a
/// lane holds of a fragment. A memref has its address, offset, sizes and
/// strides.
using Lanes = std::vector<Part>;

/// Where a block stands in its grid.
struct BlockPlace {
  std::array<int64_t, 3> block = {0, 0, 0}, grid = {1, 1, 1};
};

/// Runs regions for a number of lanes that advance together. The part of an
/// operation's group (arith, memory, …) stands in the file of that name.
class Interpreter {
public:
  Interpreter(int64_t threads, const BlockPlace &place, SharedMemory *shared,
              const GlobalMemory &global)
      : threads(threads), place(place), shared(shared), global(global),
        mask(threads, 1), groups(threads, std::vector<Group>(1)) {}

  /// Runs the operations of a block before its terminator.
  LogicalResult run(Block &block);
  LogicalResult execute(Operation *op);
  /// The lanes of a value; a new value has as many parts as its type.
  Lanes &get(Value value);
  void set(Value value, Lanes lanes) { values[value] = std::move(lanes); }
  /// What one lane holds of a scalar.
  int64_t getSigned(Value value, int64_t thread = 0);

  /// Called for `gpu.launch_func` and `memref.alloc` of a host function.
  std::function<LogicalResult(Operation *)> onHost;

private:
  // Nothing: not an operation of the group.
  std::optional<LogicalResult> executeArithmetic(Operation *op);
  std::optional<LogicalResult> executeMath(Operation *op);
  std::optional<LogicalResult> executeMemory(Operation *op);
  std::optional<LogicalResult> executeMachine(Operation *op);
  std::optional<LogicalResult> executeControl(Operation *op);

  LogicalResult unary(Operation *op, llvm::function_ref<uint64_t(uint64_t)>);
  LogicalResult binary(Operation *op,
                       llvm::function_ref<uint64_t(uint64_t, uint64_t)>);
  LogicalResult floats(Operation *op,
                       llvm::function_ref<float(float, float, float)>);
  LogicalResult constant(Operation *op, Attribute value);
  LogicalResult bitcast(Operation *op);
  LogicalResult access(Operation *op, Value address, Value value, bool isStore);
  LogicalResult accumulate(Operation *op, Value address, Value value);
  LogicalResult accessElement(Operation *op, Value memref, ValueRange indices,
                              Value value, bool isStore);
  LogicalResult copyAsync(Operation *op);
  LogicalResult waitGroups(Operation *op, size_t younger);
  LogicalResult loadMatrix(Operation *op);
  LogicalResult multiply(Operation *op);
  LogicalResult shuffle(Operation *op);
  LogicalResult vote(Operation *op);
  LogicalResult runIf(Operation *op);
  LogicalResult runFor(Operation *op);

  /// An asynchronous copy of one lane: what will be written.
  struct Copy {
    int64_t address;
    std::vector<uint8_t> data;
  };
  using Group = std::vector<Copy>;

  int64_t threads;
  BlockPlace place;
  SharedMemory *shared;
  const GlobalMemory &global;
  std::vector<uint8_t> mask;
  llvm::DenseMap<Value, Lanes> values;
  /// Per lane, oldest first; the last is not committed yet.
  std::vector<std::vector<Group>> groups;
};

/// Bits of an element as the type says; pointers and index have 64.
int64_t bitsOf(Type type);
/// The number of parts of a value of this type.
int64_t countParts(Type type);
/// The scalar type of every part of a vector or fragment, or the type itself.
Type elementOf(Type type);

/// Floats of a type as raw bits, and back.
float toFloat(Type type, uint64_t bits);
uint64_t fromFloat(Type type, float value);

/// The low bits of a number, and them with their sign.
uint64_t truncate(uint64_t bits, int64_t width);
int64_t extend(uint64_t bits, int64_t width);

/// Binds the arguments of a host function to the tensors and scalars given,
/// which become the memory that the program may touch.
LogicalResult bindArguments(func::FuncOp host, ArrayRef<HostArgument> arguments,
                            Interpreter &interpreter, GlobalMemory &global);
/// Fresh memory for a workspace, of zeros if the operation says so.
void allocate(memref::AllocOp op, Interpreter &host, GlobalMemory &global);

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_INTERPRETER_H
