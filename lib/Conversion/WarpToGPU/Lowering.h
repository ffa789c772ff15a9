//===- Lowering.h - what the files of this conversion share -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversion has two steps. `outlineKernel` (Kernel.cpp) moves the body of
// a `warp.kernel` into a `gpu.func`. Then one dialect conversion replaces every
// value of a warp type: a fragment by the registers that one lane holds, a slot
// or a ring by its byte address in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_LOWERING_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_LOWERING_H

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

/// Named barriers: 0 is that of the block, then come those of turns and of
/// warpgroups, one for each group.
inline constexpr int64_t firstTurnBarrier = 1, firstGroupBarrier = 8;
/// Groups that have both.
inline constexpr int64_t maxGroups = firstGroupBarrier - firstTurnBarrier;

//===----------------------------------------------------------------------===//
// Kernel.cpp
//===----------------------------------------------------------------------===//

/// What the kernels are compiled for.
struct KernelTarget {
  StringRef chip, features;
};

/// The `warp.kernel`s of a host function, in order. One that is not in the
/// entry block is an error.
FailureOr<SmallVector<KernelOp>> findKernels(func::FuncOp host);

/// How `warp.await`s wait: for all but so many copy groups, or not at all,
/// where the next operation is an await that waits for both.
struct AwaitPlan {
  std::optional<int64_t> pending;
};
using AwaitPlans = llvm::DenseMap<Operation *, AwaitPlan>;

/// A box of a tensor as TMA copies it: what the runtime has to describe.
struct TensorMap {
  int64_t argument = 0; // of the host
  int64_t boxRows = 0, boxColumns = 0, swizzleBytes = 0;
  /// Copied at once: all of a tile, or 1.
  int64_t boxPanels = 1;

  bool operator==(const TensorMap &other) const {
    return argument == other.argument && boxRows == other.boxRows &&
           boxColumns == other.boxColumns &&
           swizzleBytes == other.swizzleBytes && boxPanels == other.boxPanels;
  }
};

/// How the operations of a kernel with roles use the barriers of their rings.
struct RolePlan {
  /// A ring as seen by a copy of the producer or an await of the consumer.
  struct Access {
    int64_t barriers = 0; // byte of shared memory of slot 0's full barrier
    int64_t depth = 0;
    int64_t tensorMap = 0; // argument of the kernel function (copies)
    /// From the barriers of one slot to those of the next.
    int64_t stride = RingOp::barrierBytesPerSlot;
    int64_t boxPanels = 1; // of the tensor map
  };
  llvm::DenseMap<Operation *, Access> accesses;
  /// Stores by TMA.
  struct TensorStore {
    int64_t tensorMap = 0;
    bool isAwaited = false; // the slot is one of a ring
  };
  llvm::DenseMap<Operation *, TensorStore> stores;
  /// The number of a release's await, and of the await.
  llvm::DenseMap<Operation *, int64_t> awaitNumbers;
  /// The empty barrier of the slot that await number i gave, once lowered.
  SmallVector<Value> emptyBarriers;

  bool contains(Operation *op) const { return accesses.contains(op); }
};

/// A kernel moved out of its host function.
struct OutlinedKernel {
  gpu::GPUFuncOp function;
  AwaitPlans awaits;
  RolePlan roles;
};

/// Moves `kernel` into a new `gpu.func` called `name`, with the arguments of
/// `host` and what it allocates, and launches it from `host`.
FailureOr<OutlinedKernel> outlineKernel(RewriterBase &rewriter,
                                        func::FuncOp host, KernelOp kernel,
                                        StringRef name,
                                        const KernelTarget &target);

/// The barriers of the slot that an item of a ring uses, and the parity of the
/// phase in which it arrives; i32.
struct ItemBarriers {
  Value full, empty, parity;

  static ItemBarriers get(OpBuilder &builder, Operation *op, Value item,
                          const RolePlan::Access &access);
};

//===----------------------------------------------------------------------===//
// Integers.cpp
//===----------------------------------------------------------------------===//

/// Arithmetic on i32 with the trivial cases folded away, and the numbers of the
/// running thread.
class Integers {
public:
  Integers(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs);
  Value mul(Value lhs, int64_t rhs);
  /// Unsigned; `rhs` positive.
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitXor(Value lhs, Value rhs);
  Value bitXor(Value lhs, int64_t rhs);
  Value bitAnd(Value lhs, int64_t rhs);
  Value lessThan(Value lhs, int64_t rhs); // signed
  Value fromIndex(Value index);
  Value toIndex(Value value);

  Value thread();
  Value lane();
  Value warp();
  /// The same for all lanes in the eyes of ptxas, too: number of the warp, and
  /// of its group of 4.
  Value uniformWarp();
  Value warpgroup();

private:
  OpBuilder &builder;
  Location loc;
};

/// Arithmetic on i64, for addresses in global memory.
class Addresses {
public:
  Addresses(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value mul(Value lhs, int64_t rhs);
  Value fromIndex(Value index);
  Value fromInt(Value i32);
  /// The number as a pointer to global memory.
  Value toPointer(Value address);

private:
  OpBuilder &builder;
  Location loc;
};

/// The same number (i32 or i64), of unknown origin and computed here: LLVM can
/// neither move what depends on it out of a loop nor turn it into a running
/// value. ptxas drops the move. In a causal kernel (bf16, blocks of 128x64,
/// head dimension 128), which needs all registers, this saves 150 bytes of
/// spills.
Value hideOrigin(OpBuilder &builder, Location loc, Value address);

/// A strided memref taken apart. Strides and sizes are i64 values, constants
/// where the type says so.
struct View {
  MemRefType type;
  Value address; // i64, of the element at index 0
  SmallVector<Value> sizes, strides;
  int64_t elementBytes = 0;

  static FailureOr<View> get(OpBuilder &builder, Location loc, Value memref);
  /// The address of an element; `indices` are i64.
  Value addressOf(OpBuilder &builder, Location loc,
                  ArrayRef<Value> indices) const;
  /// Whether the innermost stride is known to be 1.
  bool isContiguous() const;
  /// Elements of a dimension from i64 index `at` on, as i32: a dimension has
  /// fewer than 2^31 elements, as the coordinates of the warp dialect are i32.
  Value left(OpBuilder &builder, Location loc, unsigned dim, Value at) const;
  /// The same from index `at` on, if it is a constant.
  std::optional<int64_t> knownLeft(unsigned dim, Value at) const;
};

//===----------------------------------------------------------------------===//
// SplatStores.cpp
//===----------------------------------------------------------------------===//

/// Stores of tiles that are one number, constant and repeated to 32 bits.
struct SplatStores {
  llvm::DenseMap<Operation *, llvm::APInt> words;

  /// Reads a function before anything of it is lowered.
  static SplatStores plan(gpu::GPUFuncOp function);
};

//===----------------------------------------------------------------------===//
// Offsets.cpp
//===----------------------------------------------------------------------===//

/// What leads to integers and truth values made of floats: rounded as it is
/// written. Reads a function before anything of it is lowered.
DecisionPaths findDecisionPaths(gpu::GPUFuncOp function);

/// Operands of comparisons and of conversions to floats that are coordinates,
/// plus or minus each other and numbers that all elements share; not of
/// conversions that `exact` names.
struct Positions {
  llvm::DenseSet<std::pair<Operation *, unsigned>> operands;

  bool has(Operation *op, unsigned operand) const {
    return operands.contains({op, operand});
  }
  /// Reads a function before anything of it is lowered.
  static Positions plan(gpu::GPUFuncOp function, const DecisionPaths &exact);
};

/// lhs + rhs, or lhs - rhs, one value plus constants again if one side is; at
/// most one sum per pair of values, and one with a constant per element.
std::optional<SmallVector<Value>> addOffsets(Operation *op, ArrayRef<Value> lhs,
                                             ArrayRef<Value> rhs,
                                             OpBuilder &builder);
/// base + c < limit as c < limit - base: what differs between elements is an
/// immediate operand. The difference saturates, so that it is right for every
/// limit.
std::optional<SmallVector<Value>>
compareOffsets(arith::CmpIOp op, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
               const Positions &positions, OpBuilder &builder);
/// float(base + c) as float(base) + c, which is exact below 2^24 and rounds
/// twice beyond: conversions are slow, sums are not.
std::optional<SmallVector<Value>> convertOffsets(CastOp op,
                                                 ArrayRef<Value> values,
                                                 const Positions &positions,
                                                 OpBuilder &builder);
/// Products of base + c with a factor, plus something: those of the base, plus
/// c times the factor, where `op` may be reassociated and elements share the
/// first.
std::optional<SmallVector<Value>>
scaleOffsets(math::FmaOp op, ArrayRef<Value> numbers, ArrayRef<Value> factors,
             ArrayRef<Value> addends, OpBuilder &builder);

//===----------------------------------------------------------------------===//
// MaskWords.cpp
//===----------------------------------------------------------------------===//

/// column < limit, or another comparison with a sign, for the columns that a
/// lane has of a row, as tests of the bits of one word; none if they are not
/// such columns.
std::optional<SmallVector<Value>> testColumns(OpBuilder &builder, Location loc,
                                              arith::CmpIPredicate predicate,
                                              ArrayRef<int64_t> columns,
                                              Value limit);
/// The numbers of elements, those of one word after the other.
SmallVector<size_t> orderByWords(ArrayRef<Value> elements);
/// A test of a bit once more, here; what is none stays as it is.
Value repeatTest(OpBuilder &builder, Location loc, Value element);
/// `and` or `or` of elements that are tests of the same bits of words, as tests
/// of one word.
std::optional<SmallVector<Value>> joinTests(Operation *op, ArrayRef<Value> lhs,
                                            ArrayRef<Value> rhs,
                                            OpBuilder &builder);

//===----------------------------------------------------------------------===//
// Fragments.cpp
//===----------------------------------------------------------------------===//

/// The layout of a fragment, as the IR-free algebra knows it.
layout::Fragment layoutOf(FragType type);
layout::SharedTile layoutOf(SlotType type);

/// Whether the lane's registers hold two neighbouring columns each: 16-bit
/// floats, as the instructions want them.
bool isPacked(FragType type);

/// A vector<2xT> of two values.
Value makePair(OpBuilder &builder, Location loc, Value low, Value high);

/// One value per element, in the order of attn/Layout/Fragments.h, from the
/// values a fragment was converted to; and back.
SmallVector<Value> unpack(OpBuilder &builder, Location loc, FragType type,
                          ValueRange values);
SmallVector<Value> pack(OpBuilder &builder, Location loc, FragType type,
                        ArrayRef<Value> elements);

/// Row of the tile that register 0 of a fragment over `warps` warps holds in
/// this lane (16 warp + lane / 4), and its column (2 (lane mod 4)).
Value laneRow(Integers &ints);
Value laneColumn(Integers &ints);

/// Fragments become registers, slots and rings become addresses.
void populateFragmentTypeConversions(TypeConverter &converter);

void populateFragmentPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns,
                              const Positions &positions);

//===----------------------------------------------------------------------===//
// Math.cpp
//===----------------------------------------------------------------------===//

/// Replaces the scalar math of a lowered kernel by instructions of the GPU. The
/// error names an operation that has none. `precise`: exponentials, quotients
/// are right to the last bit or two of f32, as those of a processor are.
LogicalResult lowerMath(gpu::GPUFuncOp function, bool precise);

/// A quotient of scalars, rounded as IEEE 754 has it.
Value divideExactly(OpBuilder &builder, Location loc, Value lhs, Value rhs);
/// Quotients of scalars that `exact` names become such.
void lowerExactQuotients(RewriterBase &rewriter, gpu::GPUFuncOp function,
                         const DecisionPaths &exact);
/// Powers of 2 and e that all elements share (of scalars) become accurate ones.
void lowerSharedPowers(RewriterBase &rewriter, gpu::GPUFuncOp function);

//===----------------------------------------------------------------------===//
// Roles.cpp
//===----------------------------------------------------------------------===//

/// The tensor maps that the roles of a kernel need, without repetition; and for
/// each copy and each store via a slot, in the order of a walk, its map's place
/// in that list (-1: the store is not by TMA).
struct TensorMaps {
  SmallVector<TensorMap> maps;
  SmallVector<int64_t> ofCopies, ofStores;

  /// The place of a map, which is added if it is new.
  int64_t add(TensorMap map);
};
FailureOr<TensorMaps> collectTensorMaps(KernelOp kernel);

/// Finds the rings behind the operations of a kernel function that was cloned
/// from `kernel`; its tensor maps are the arguments from `firstMap` on.
RolePlan planRoles(KernelOp kernel, gpu::GPUFuncOp function,
                   const TensorMaps &maps, int64_t firstMap);

/// Replaces roles by branches on the warp's number: consumer warps first, so
/// that a consumer warp's number is that of its rows. Sets up barriers and
/// registers.
LogicalResult lowerRoles(RewriterBase &rewriter, gpu::GPUFuncOp function,
                         const RolePlan &plan);

/// Replaces what differs between the groups of a consumer by arithmetic.
void lowerParts(RewriterBase &rewriter, gpu::GPUFuncOp function);

/// Replaces turns by their bodies between named barriers.
LogicalResult lowerTurns(RewriterBase &rewriter, gpu::GPUFuncOp function);

//===----------------------------------------------------------------------===//
// Order.cpp
//===----------------------------------------------------------------------===//

/// Moves integers to their first use: one element after the other.
void orderIntegers(gpu::GPUFuncOp function);

//===----------------------------------------------------------------------===//
// Atoms/Mbarrier.cpp, Atoms/Tma.cpp
//===----------------------------------------------------------------------===//

/// A PTX statement with i32 inputs and no result; it touches memory.
void emitStatement(OpBuilder &builder, Location loc, StringRef text,
                   ValueRange operands = {});

/// Sets up the barrier at an address (i32) for `count` arrivals.
void emitBarrierInit(OpBuilder &builder, Location loc, Value barrier,
                     int64_t count);
/// Makes the set-up barriers known to TMA.
void emitBarrierInitFence(OpBuilder &builder, Location loc);
/// Waits until the phase of a parity (i32) is complete.
void emitBarrierWait(OpBuilder &builder, Location loc, Value barrier,
                     Value parity);
/// One arrival, by lane 0 of the warp.
void emitBarrierArrive(OpBuilder &builder, Location loc, Value barrier);
/// One arrival, by a lane of the warp, that also expects `bytes` by TMA.
void emitBarrierExpect(OpBuilder &builder, Location loc, Value barrier,
                       int64_t bytes);
/// A lane of the warp starts the copy of a tile, in boxes of so many panels:
/// one, or all of them; `barrier` counts its bytes.
LogicalResult emitTensorCopy(OpBuilder &builder, Location loc, Value tensorMap,
                             int64_t boxPanels, ValueRange indices,
                             SlotType slot, Value base, Value barrier);
/// One thread (number 0 of `thread`) starts storing 64 rows of a slot, from
/// `row` on (i32), one box per panel: `columns` columns, the slot's first one
/// at `firstColumn` of the box at `indices`.
void emitTensorStore(OpBuilder &builder, Location loc, Value tensorMap,
                     ValueRange indices, Value row, int64_t firstColumn,
                     int64_t columns, SlotType slot, Value base, Value thread);
/// Closes the group of the thread's stores by TMA; waits until none of them
/// reads shared memory.
void emitBulkCommit(OpBuilder &builder, Location loc);
void emitBulkWait(OpBuilder &builder, Location loc);
/// What this thread wrote to shared memory is known to wgmma and TMA.
void emitProxyFence(OpBuilder &builder, Location loc);

//===----------------------------------------------------------------------===//
// Atoms/Wgmma.cpp
//===----------------------------------------------------------------------===//

/// Products by their number, what each wait has to hold, and the registers as
/// the lowering goes along.
struct ProductsInFlight {
  struct Product {
    SmallVector<Value> accumulators, left;
  };
  struct Wait {
    int64_t product = 0, pending = 0;
    SmallVector<int64_t> inFlight;
  };
  llvm::DenseMap<Operation *, int64_t> numbers;
  llvm::DenseMap<Operation *, Wait> waits;
  llvm::DenseSet<Operation *> startAtZero;
  SmallVector<Product> products;

  /// Reads a function before anything of it is lowered.
  static ProductsInFlight plan(gpu::GPUFuncOp function);
};

void populateWgmmaPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns,
                           ProductsInFlight &inFlight);

/// Which register of an operand that stretches to `layout` belongs to a
/// register of that; 0 for a scalar.
int64_t sliceRegister(const layout::Fragment &layout, Type type, int64_t reg);

//===----------------------------------------------------------------------===//
// Elementwise.cpp, Copies.cpp, Stores.cpp, StagedStores.cpp,
// Atoms/MmaSync.cpp, Atoms/MmaTf32.cpp, Atoms/FmaF32.cpp
//===----------------------------------------------------------------------===//

void populateElementwisePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 const Positions &positions,
                                 const DecisionPaths &exact);
void populateCopyPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns, const AwaitPlans &awaits,
                          RolePlan &roles);
/// warp.draw, warp.send and warp.receive (Mailbox.cpp).
void populateNumberPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns, const RolePlan &roles);
/// warp.search (Searches.cpp).
void populateSearchPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);
void populateStorePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateSplatStorePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns,
                                const SplatStores &stores);
void populateStagedStorePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 const RolePlan &roles);
void populateMmaPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns);
void populateMmaTf32Patterns(const TypeConverter &converter,
                             RewritePatternSet &patterns);
void populateFmaF32Patterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);

//===----------------------------------------------------------------------===//
// Atoms/Ldmatrix.cpp, Atoms/CpAsync.cpp
//===----------------------------------------------------------------------===//

/// Reads 16-bit matrices of a slot with ldmatrix. One object serves one
/// operand of one mma, so that the lane's part of the address is computed once
/// per distinct xor of the swizzle; all the rest are constants.
class MatrixReader {
public:
  /// How the four 8x8 matrices m0 … m3 of one x4 lie in the tile, and whether
  /// they are transposed on the way.
  enum class Order {
    RowsFirst,    // m1 is below m0, m2 right of m0; as the A operand
    ColumnsFirst, // m1 is right of m0, m2 below m0; B from the key tile
    Transposed    // rows first, transposed; B from the value tile
  };

  MatrixReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
               Order order, Value firstRow = {});

  /// The four matrices of the 16x16 box at a row (multiple of 8) and a column
  /// (multiple of 16), each as one i32 per lane.
  SmallVector<Value> read(int64_t row, int64_t column);
  /// The first two of the four, m0 and m1.
  SmallVector<Value> readHalf(int64_t row, int64_t column);
  /// The lane's pointer to shared memory for such a box.
  Value address(int64_t row, int64_t column);

private:
  SmallVector<Value> read(int64_t row, int64_t column, int64_t num);

  OpBuilder &builder;
  Location loc;
  layout::SharedTile tile;
  Order order;
  Value laneAddress; // i32
  SmallVector<Value> pointers;
};

/// Starts the 16-byte copies of one tile; `base` is the address of the slot.
LogicalResult emitTileCopy(OpBuilder &builder, Location loc, Value memref,
                           ValueRange indices, SlotType slot, Value base,
                           int64_t threads);
/// The address (i32) of a byte of shared memory, for `op`'s kernel.
Value sharedAddress(OpBuilder &builder, Operation *op, int64_t offset,
                    int64_t alignment = layout::SharedTile().alignment());
void emitCommit(OpBuilder &builder, Location loc);
/// Waits until at most `pending` of the thread's youngest groups are
/// unfinished.
void emitWait(OpBuilder &builder, Location loc, int64_t pending);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_LOWERING_H
