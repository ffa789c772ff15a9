//===- Fragments.cpp - fragments as the registers of one lane -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One value per register, in the order of attn/Layout/Fragments.h. Fragments of
// 16-bit floats keep two neighbouring columns in one vector<2xT>, accumulators
// too: the conversion from f32 is then one instruction per pair, and the step
// from accumulator to A operand renames values.
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"

#include "Integers.h"
#include "MaskWords.h"
#include "Offsets.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

layout::Fragment attn::warp::layoutOf(FragType type) {
  return type.getLayout();
}

layout::SharedTile attn::warp::layoutOf(SlotType type) {
  return type.getLayout();
}

bool attn::warp::isPacked(FragType type) {
  Type element = type.getElementType();
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16 &&
         type.getShape()[1] > layout::laneColumns;
}

/// Elements that one lane holds.
static int64_t countElements(FragType type) {
  layout::Fragment fragment = layoutOf(type);
  return fragment.numRegisters() * fragment.elementsPerRegister();
}

Value attn::warp::extract(OpBuilder &builder, Location loc, Value vector,
                          int64_t number) {
  Value at = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                      builder.getI32IntegerAttr(number));
  return LLVM::ExtractElementOp::create(builder, loc, vector, at);
}

Value attn::warp::makePair(OpBuilder &builder, Location loc, Value low,
                           Value high) {
  auto type = VectorType::get(2, low.getType());
  Value pair = LLVM::PoisonOp::create(builder, loc, type);
  const std::array<Value, 2> values = {low, high};
  for (auto [i, value] : llvm::enumerate(values)) {
    Value at = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(i));
    pair = LLVM::InsertElementOp::create(builder, loc, pair, value, at);
  }
  return pair;
}

Value attn::warp::exchange(OpBuilder &builder, Location loc, Value value,
                           int64_t distance) {
  Integers ints(builder, loc);
  return NVVM::ShflOp::create(builder, loc, value.getType(), ints.constant(-1),
                              value, ints.constant(distance), ints.constant(31),
                              NVVM::ShflKind::bfly, UnitAttr());
}

SmallVector<Value> attn::warp::unpack(OpBuilder &builder, Location loc,
                                      FragType type, ValueRange values) {
  if (!isPacked(type))
    return llvm::to_vector(values);
  SmallVector<Value> elements;
  for (Value pair : values) {
    elements.push_back(extract(builder, loc, pair, 0));
    elements.push_back(extract(builder, loc, pair, 1));
  }
  return elements;
}

SmallVector<Value> attn::warp::pack(OpBuilder &builder, Location loc,
                                    FragType type, ArrayRef<Value> elements) {
  if (!isPacked(type))
    return llvm::to_vector(elements);
  SmallVector<Value> values;
  for (size_t i = 0; i < elements.size(); i += 2)
    values.push_back(makePair(builder, loc, elements[i], elements[i + 1]));
  return values;
}

Value attn::warp::laneRow(Integers &ints, const layout::Fragment &fragment) {
  Value warp = ints.warp();
  if (fragment.columnGroups() > 1)
    warp = ints.rem(warp, fragment.rowWarps());
  return ints.add(ints.mul(warp, layout::groupRows), ints.div(ints.lane(), 4));
}

Value attn::warp::laneColumn(Integers &ints, const layout::Fragment &fragment) {
  Value column = ints.mul(ints.rem(ints.lane(), 4), 2);
  if (fragment.columnGroups() == 1)
    return column;
  Value group = ints.div(ints.warp(), fragment.rowWarps());
  return ints.add(column, ints.mul(group, 8 * fragment.columnSteps()));
}

int64_t attn::warp::sliceRegister(const layout::Fragment &layout, Type type,
                                  int64_t reg) {
  auto fragment = dyn_cast<FragType>(type);
  if (!fragment)
    return 0;
  bool fullRows = fragment.getShape()[0] == layout.rows;
  bool fullColumns = fragment.getShape()[1] == layout.columns;
  if (fullRows && fullColumns)
    return reg;
  if (fullRows)
    return layout.rowSliceRegister(reg);
  return fullColumns ? layout.columnSliceRegister(reg) : 0;
}

void attn::warp::populateFragmentTypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) -> Type {
    return isa<SlotType, RingType, MailboxType>(type)
               ? IntegerType::get(type.getContext(), 32)
               : type;
  });
  converter.addConversion([](FragType type, SmallVectorImpl<Type> &types) {
    Type element = type.getElementType();
    if (isPacked(type))
      types.append(countElements(type) / 2, VectorType::get(2, element));
    else
      types.append(countElements(type), element);
    return success();
  });
  converter.addConversion(
      [&converter](PendingType type, SmallVectorImpl<Type> &types) {
        return converter.convertTypes(type.getFragment(), types);
      });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// The scalar, once per register.
struct LowerSplat final : OpConversionPattern<SplatOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplatOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType type = op.getResult().getType();
    Value value = adaptor.getScalar();
    int64_t count = countElements(type);
    if (isPacked(type)) {
      value = makePair(rewriter, op.getLoc(), value, value);
      count /= 2;
    }
    rewriter.replaceOpWithMultiple(op, {SmallVector<Value>(count, value)});
    return success();
  }
};

/// Register numbers of the value for every register of the stretched tile.
struct LowerBroadcast final : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BroadcastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FragType from = op.getValue().getType(), to = op.getResult().getType();
    layout::Fragment target = layoutOf(to);
    bool fullRows = from.getShape()[0] == to.getShape()[0];
    bool fullColumns = from.getShape()[1] == to.getShape()[1];
    SmallVector<Value> source = unpack(rewriter, loc, from, adaptor.getValue());
    SmallVector<Value> result;
    for (int64_t i = 0, e = countElements(to); i < e; ++i) {
      int64_t reg = i;
      if (!fullRows && !fullColumns)
        reg = 0;
      else if (!fullColumns)
        reg = target.rowSliceRegister(i);
      else if (!fullRows)
        reg = target.columnSliceRegister(i);
      result.push_back(source[reg]);
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, to, result)});
    return success();
  }
};

/// Element by element; f32 to 16 bits by the instruction for pairs.
struct LowerCast final : OpConversionPattern<CastOp> {
  LowerCast(const TypeConverter &converter, MLIRContext *context,
            const Positions &positions)
      : OpConversionPattern(converter, context), positions(positions) {}

  LogicalResult
  matchAndRewrite(CastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FragType from = op.getValue().getType(), to = op.getResult().getType();
    SmallVector<Value> source = unpack(rewriter, loc, from, adaptor.getValue());
    SmallVector<Value> result;
    if (std::optional<SmallVector<Value>> fromOffsets =
            convertOffsets(op, source, positions, rewriter)) {
      result = *fromOffsets;
    } else if (from.getElementType().isF32() && isPacked(to)) {
      for (size_t i = 0; i < source.size(); i += 2)
        result.push_back(truncatePair(rewriter, loc, source[i], source[i + 1],
                                      to.getElementType()));
    } else {
      for (Value value : source)
        result.push_back(
            cast(rewriter, loc, op.getKind(), value, to.getElementType()));
      result = pack(rewriter, loc, to, result);
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

private:
  static Value truncatePair(OpBuilder &builder, Location loc, Value low,
                            Value high, Type element) {
    auto type = VectorType::get(2, element);
    if (element.isBF16())
      return NVVM::ConvertF32x2ToBF16x2Op::create(builder, loc, type, high, low,
                                                  /*random_bits=*/Value(),
                                                  NVVM::FPRoundingMode::RN);
    return NVVM::ConvertF32x2ToF16x2Op::create(builder, loc, type, high, low,
                                               /*random_bits=*/Value(),
                                               NVVM::FPRoundingMode::RN);
  }

  static Value cast(OpBuilder &b, Location loc, CastKind kind, Value value,
                    Type type) {
    switch (kind) {
    case CastKind::TruncF:
      return arith::TruncFOp::create(b, loc, type, value);
    case CastKind::ExtF:
      return arith::ExtFOp::create(b, loc, type, value);
    case CastKind::SIToFP:
      return arith::SIToFPOp::create(b, loc, type, value);
    case CastKind::UIToFP:
      return arith::UIToFPOp::create(b, loc, type, value);
    case CastKind::FPToSI:
      return arith::FPToSIOp::create(b, loc, type, value);
    case CastKind::FPToUI:
      return arith::FPToUIOp::create(b, loc, type, value);
    case CastKind::TruncI:
      return arith::TruncIOp::create(b, loc, type, value);
    case CastKind::ExtSI:
      return arith::ExtSIOp::create(b, loc, type, value);
    case CastKind::ExtUI:
      return arith::ExtUIOp::create(b, loc, type, value);
    case CastKind::Bitcast:
      return arith::BitcastOp::create(b, loc, type, value);
    }
    llvm_unreachable("unknown cast kind");
  }

  const Positions &positions;
};

/// acc -> a. 16 bits: the pairs of an accumulator already are the registers of
/// the A operand, in the same order. 32 bits: a permutation.
struct LowerConvert final : OpConversionPattern<ConvertOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ConvertOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType to = op.getResult().getType();
    layout::Fragment target = layoutOf(to);
    int64_t perValue = isPacked(to) ? 2 : 1;
    SmallVector<Value> result;
    for (int64_t reg = 0, e = target.numRegisters(); reg < e; ++reg)
      result.push_back(
          adaptor.getValue()[target.accRegisterOfA(reg, 0) / perValue]);
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

/// Selects register by register.
struct LowerSelect final : OpConversionPattern<SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FragType type = op.getResult().getType();
    SmallVector<Value> ifTrue =
        unpack(rewriter, loc, type, adaptor.getTrueValue());
    SmallVector<Value> ifFalse =
        unpack(rewriter, loc, type, adaptor.getFalseValue());
    SmallVector<Value> conditions(adaptor.getCondition());
    SmallVector<Value> result(conditions.size());
    for (size_t number : orderByWords(conditions)) {
      Value condition = repeatTest(rewriter, loc, conditions[number]);
      result[number] = arith::SelectOp::create(rewriter, loc, condition,
                                               ifTrue[number], ifFalse[number]);
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, result)});
    return success();
  }
};

/// First the lane's own columns; then, unless each lane is to keep its own part
/// (Mx4), the four lanes of a row exchange.
struct LowerReduce final : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType from = op.getValue().getType(), to = op.getResult().getType();
    Type element = from.getElementType();
    if (!element.isF32() && !element.isInteger(32))
      return op.emitOpError("can reduce f32 and i32, got ") << element;
    Location loc = op.getLoc();
    layout::Fragment source = layoutOf(from);
    SmallVector<Value> rows(countElements(to));
    for (auto [reg, value] : llvm::enumerate(adaptor.getValue())) {
      Value &row = rows[source.rowSliceRegister(reg)];
      row = row ? combine(rewriter, loc, op.getKind(), row, value) : value;
    }
    if (to.getShape()[1] == 1)
      for (int64_t distance : {1, 2})
        for (Value &row : rows)
          row = combine(rewriter, loc, op.getKind(), row,
                        exchange(rewriter, loc, row, distance));
    rewriter.replaceOpWithMultiple(op, {rows});
    return success();
  }

private:
  static Value combine(OpBuilder &b, Location loc, ReduceKind kind, Value lhs,
                       Value rhs) {
    bool isFloat = isa<FloatType>(lhs.getType());
    if (kind == ReduceKind::Add)
      return isFloat ? arith::AddFOp::create(b, loc, lhs, rhs).getResult()
                     : arith::AddIOp::create(b, loc, lhs, rhs).getResult();
    return isFloat ? arith::MaxNumFOp::create(b, loc, lhs, rhs).getResult()
                   : arith::MaxSIOp::create(b, loc, lhs, rhs).getResult();
  }
};

/// A vote of the warp on what its lanes hold.
struct LowerAny final : OpConversionPattern<AnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AnyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    Value mine;
    for (Value value : adaptor.getValue())
      mine = mine ? arith::OrIOp::create(rewriter, loc, mine, value).getResult()
                  : value;
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, rewriter.getI1Type(),
                                                  ints.constant(-1), mine,
                                                  NVVM::VoteSyncKind::any);
    return success();
  }
};

/// Of the lane's registers, then of all lanes.
struct LowerExtreme final : OpConversionPattern<ExtremeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExtremeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    bool isLeast = op.getKind() == ExtremeKind::Least;
    Value mine = adaptor.getValue().front();
    for (Value value : adaptor.getValue().drop_front())
      mine =
          isLeast
              ? arith::MinSIOp::create(rewriter, loc, mine, value).getResult()
              : arith::MaxSIOp::create(rewriter, loc, mine, value);
    rewriter.replaceOpWithNewOp<NVVM::ReduxOp>(
        op, rewriter.getI32Type(), mine,
        isLeast ? NVVM::ReduxKind::MIN : NVVM::ReduxKind::MAX,
        Integers(rewriter, loc).constant(-1));
    return success();
  }
};

/// The lane's first coordinate plus a constant per register.
struct LowerCoords final : OpConversionPattern<CoordsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CoordsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType type = op.getResult().getType();
    layout::Fragment fragment = layoutOf(type);
    Integers ints(rewriter, op.getLoc());
    bool rows = op.getAxis() == 0;
    Value first =
        ints.add(adaptor.getBase(),
                 rows ? laneRow(ints, fragment) : laneColumn(ints, fragment));
    SmallVector<Value> result;
    for (int64_t reg = 0, e = fragment.numRegisters(); reg < e; ++reg) {
      // Lane 0 of warp 0: what is left is the same for every lane.
      layout::Coord coord = fragment.coordOf({0, 0, reg, 0});
      result.push_back(ints.add(first, rows ? coord.row : coord.column));
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

} // namespace

void attn::warp::populateFragmentPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          const Positions &positions) {
  patterns.add<LowerCast>(converter, patterns.getContext(), positions);
  patterns.add<LowerSplat, LowerBroadcast, LowerConvert, LowerSelect,
               LowerReduce, LowerAny, LowerExtreme, LowerCoords>(
      converter, patterns.getContext());
}
