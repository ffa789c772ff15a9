//===- StagedStores.cpp - fragments to global memory via slots -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile goes through the slot in parts of the slot's columns. For each part
// a warp writes the rows it holds, and
//
// - reads them back in pieces of 16 bytes, which it writes to global memory: as
//   many lanes side by side as a row has pieces; or,
// - in a role, one thread of the warpgroup has TMA write the group's 64 rows,
//   once all its warps have come. TMA reads the slot until `wait_group.read`,
//   which stands before the next part, and for a slot of a ring after the
//   last, where its release follows. (For the other slots it stands at the end
//   of the role.) Stores via other slots need not be waited for.
//
// SlotWriter.cpp says how registers come into the slot.
//
//===----------------------------------------------------------------------===//

#include "StagedStores.h"

#include "Atoms/Mbarrier.h"
#include "Atoms/Tma.h"
#include "Fragments.h"
#include "Integers.h"
#include "Roles.h"
#include "SlotWriter.h"
#include "Turns.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// One store of a tile via a slot.
class StagedStorer {
public:
  StagedStorer(OpBuilder &builder, StoreOp op, View view, ValueRange values,
               Value slot)
      : builder(builder), op(op), loc(op.getLoc()), ints(builder, loc),
        addresses(builder, loc), view(std::move(view)),
        frag(op.getValue().getType()), fragment(layoutOf(frag)),
        slotType(op.getStaging().getType()), tile(layoutOf(slotType)),
        slot(slot), writer(builder, loc, frag, slotType, values, slot) {
    columns = frag.getShape()[1];
    perPart = std::min(columns, slotType.getShape()[1]);
  }

  /// By the warps themselves.
  void storeChunks(bool isSharedByGroup, bool isInRole);
  /// By TMA, from a role.
  void storeTensor(Value tensorMap, const RolePlan::TensorStore &plan);

private:
  int64_t rowOf(int64_t step) const {
    return step * frag.getWarps() * layout::groupRows;
  }
  void readBack(int64_t firstColumn);
  void storeRow(int64_t pass, Value from, Value to, int64_t firstColumn);
  void meetGroup();

  OpBuilder &builder;
  StoreOp op;
  Location loc;
  Integers ints;
  Addresses addresses;
  View view;
  FragType frag;
  layout::Fragment fragment;
  SlotType slotType;
  layout::SharedTile tile;
  Value slot;
  SlotWriter writer;
  int64_t columns, perPart;
  // Of the running thread.
  Value laneChunk, chunkRow, rowsLeft, columnsLeft, target;
  std::optional<int64_t> knownColumns;
};

} // namespace

//===----------------------------------------------------------------------===//
// The slot to global memory
//===----------------------------------------------------------------------===//

/// What one lane reads in one pass over the rows of a warp: of each row `block`
/// after `block` of pieces.
void StagedStorer::storeRow(int64_t pass, Value from, Value to,
                            int64_t firstColumn) {
  bool panels = slotType.hasPanels();
  int64_t perChunk = tile.elementsPerChunk();
  int64_t lanesPerRow = std::min<int64_t>(
      layout::warpSize, tile.chunksPerRow() & -tile.chunksPerRow());
  int64_t partChunks = llvm::divideCeil(perPart, perChunk);
  OpBuilder::InsertionGuard guard(builder);
  Value inRows = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       rowsLeft, ints.constant(pass));
  auto rows = scf::IfOp::create(builder, loc, inRows, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(rows.thenBlock());
  int64_t perBlock = panels ? tile.chunksPerRow() : lanesPerRow;
  for (int64_t chunk = 0; chunk < partChunks; chunk += lanesPerRow) {
    int64_t begin = firstColumn + chunk * perChunk;
    int64_t end = begin + lanesPerRow * perChunk;
    if (knownColumns && begin >= *knownColumns)
      return;
    OpBuilder::InsertionGuard inner(builder);
    bool isInPart = chunk + lanesPerRow <= partChunks;
    if (!knownColumns || end > *knownColumns || !isInPart) {
      Value inside =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                columnsLeft, ints.constant(begin + perChunk));
      if (!isInPart)
        inside = arith::AndIOp::create(
            builder, loc, inside, ints.lessThan(laneChunk, partChunks - chunk));
      auto branch =
          scf::IfOp::create(builder, loc, inside, /*withElseRegion=*/false);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    int64_t block = chunk / perBlock, inBlock = chunk % perBlock;
    int64_t fromByte = panels ? block * tile.rows * tile.panelBytes +
                                    inBlock * layout::chunkBytes
                              : chunk * layout::chunkBytes;
    auto words = VectorType::get({4}, builder.getI32Type());
    Value piece = LLVM::LoadOp::create(builder, loc, words,
                                       offsetBy(builder, loc, from, fromByte),
                                       layout::chunkBytes);
    LLVM::StoreOp::create(
        builder, loc, piece,
        offsetBy(builder, loc, to,
                 (firstColumn + chunk * perChunk) * tile.elementBytes),
        layout::chunkBytes);
  }
}

void StagedStorer::readBack(int64_t firstColumn) {
  int64_t lanesPerRow = std::min<int64_t>(
      layout::warpSize, tile.chunksPerRow() & -tile.chunksPerRow());
  int64_t rowsPerPass = layout::warpSize / lanesPerRow;
  unsigned rank = view.type.getRank();
  if (!laneChunk) {
    Value lane = ints.lane();
    laneChunk = ints.rem(lane, lanesPerRow);
    chunkRow = ints.add(ints.mul(ints.warp(), layout::groupRows),
                        ints.div(lane, lanesPerRow));
    SmallVector<Value> at;
    for (Value index : op.getIndices())
      at.push_back(addresses.fromIndex(index));
    knownColumns = view.knownLeft(rank - 1, op.getIndices()[rank - 1]);
    at[rank - 2] = addresses.add(at[rank - 2], addresses.fromInt(chunkRow));
    at[rank - 1] = addresses.add(
        at[rank - 1],
        addresses.fromInt(ints.mul(laneChunk, tile.elementsPerChunk())));
    rowsLeft = view.left(builder, loc, rank - 2, at[rank - 2]);
    columnsLeft = view.left(builder, loc, rank - 1, at[rank - 1]);
    target = view.addressOf(builder, loc, at);
  }
  Value rowBytes = addresses.mul(view.strides[rank - 2], view.elementBytes);
  for (int64_t t = 0; t < fragment.rowSteps(); ++t)
    for (int64_t inGroup = 0; inGroup < layout::groupRows;
         inGroup += rowsPerPass) {
      int64_t pass = rowOf(t) + inGroup;
      Value row = ints.add(chunkRow, pass);
      Value chunk = ints.bitXor(
          laneChunk, ints.rem(ints.div(row, tile.rowsPerXor()), tile.period()));
      Value offset =
          ints.add(ints.mul(row, tile.chunksPerRow() * layout::chunkBytes),
                   ints.mul(chunk, layout::chunkBytes));
      Value from = ints.toPointer(ints.add(slot, offset));
      Value to = addresses.add(
          target, addresses.mul(rowBytes, addresses.constant(pass)));
      storeRow(pass, from, addresses.toPointer(to), firstColumn);
    }
}

void StagedStorer::storeChunks(bool isSharedByGroup, bool isInRole) {
  // Warps of a group read the operand in this slot together.
  if (isSharedByGroup && isInRole)
    meetGroup();
  else if (isSharedByGroup)
    gpu::BarrierOp::create(builder, loc);
  Value everyLane = ints.constant(-1);
  for (int64_t column = 0; column < columns; column += perPart) {
    NVVM::SyncWarpOp::create(builder, loc, everyLane);
    writer.write(column);
    NVVM::SyncWarpOp::create(builder, loc, everyLane);
    readBack(column);
  }
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

/// All threads of the warpgroup have come.
void StagedStorer::meetGroup() {
  NVVM::BarrierOp::create(
      builder, loc, /*res=*/Type(),
      ints.add(ints.blockWarpgroup(), firstGroupBarrier),
      ints.constant(layout::warpsPerGroup * layout::warpSize),
      /*reductionOp=*/NVVM::BarrierReductionAttr(),
      /*reductionPredicate=*/Value());
}

void StagedStorer::storeTensor(Value tensorMap,
                               const RolePlan::TensorStore &plan) {
  Value thread =
      ints.rem(ints.thread(), layout::warpsPerGroup * layout::warpSize);
  Value groupRow = ints.mul(ints.warpgroup(), layout::groupOfWarpsRows);
  for (int64_t column = 0; column < columns; column += perPart) {
    emitBulkWait(builder, loc, column == 0 ? plan.younger : 0);
    meetGroup();
    writer.write(column);
    emitProxyFence(builder, loc);
    meetGroup();
    for (int64_t t = 0; t < fragment.rowSteps(); ++t)
      emitTensorStore(builder, loc, tensorMap, op.getIndices(),
                      ints.add(groupRow, rowOf(t)), column, perPart, slotType,
                      slot, thread, op.getAccumulate());
    emitBulkCommit(builder, loc);
  }
  if (plan.isAwaited)
    emitBulkWait(builder, loc, /*pending=*/0);
}

namespace {

struct LowerStagedStore final : OpConversionPattern<StoreOp> {
  LowerStagedStore(const TypeConverter &converter, MLIRContext *context,
                   const RolePlan &roles)
      : OpConversionPattern(converter, context, /*benefit=*/2), roles(roles) {}

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // Without TMA elements are added one by one.
    if (!op.getStaging() ||
        (op.getAccumulate() && op.getAtom() == CopyAtom::Plain))
      return failure();
    FailureOr<View> view = View::get(rewriter, op.getLoc(), op.getView());
    if (failed(view))
      return failure();
    if (!view->isContiguous())
      return op.emitOpError("goes via a slot to a memref whose innermost "
                            "stride is not 1: ")
             << view->type;
    StagedStorer storer(rewriter, op, std::move(*view), adaptor.getValue(),
                        adaptor.getStaging().front());
    if (op.getAtom() == CopyAtom::Plain)
      storer.storeChunks(
          /*isSharedByGroup=*/isReadByWgmma(op.getStaging().getType()),
          /*isInRole=*/!roles.accesses.empty());
    else
      storeTensor(op, storer);
    rewriter.eraseOp(op);
    return success();
  }

private:
  void storeTensor(StoreOp op, StagedStorer &storer) const {
    RolePlan::TensorStore store = roles.stores.lookup(op);
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    storer.storeTensor(function.getArgument(store.tensorMap), store);
  }

  const RolePlan &roles;
};

} // namespace

void attn::warp::populateStagedStorePatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns,
                                             const RolePlan &roles) {
  patterns.add<LowerStagedStore>(converter, patterns.getContext(), roles);
}
