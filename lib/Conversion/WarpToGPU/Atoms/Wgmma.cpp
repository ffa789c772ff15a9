//===- Wgmma.cpp - wgmma.mma_async m64nNk16 -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of tiles is one block of assembly: fence, the chain of
// instructions, commit. Its accumulators are outputs tied to inputs, so that
// the chain works on the same registers and nothing comes in between; ptxas
// gives up overlapping (C7510 … C7519) otherwise. A wait is a block of its own
// with all registers in flight as tied outputs, so that no use moves above it,
// and with the A registers of its product as inputs, so that nothing is put
// there before.
//
// Fragments over W warps, W a multiple of 4, are what the instruction wants:
// row step t of warpgroup g are rows 16 W t + 64 g … + 63.
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"

#include "../Fragments.h"
#include "../Integers.h"

#include "attn/Dialect/Warp/Analysis/PendingMmas.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// Whether every element is the constant zero.
static bool isZero(Value acc) {
  auto splat = acc.getDefiningOp<SplatOp>();
  FloatAttr value;
  return splat && matchPattern(splat.getScalar(), m_Constant(&value)) &&
         value.getValue().isPosZero();
}

ProductsInFlight ProductsInFlight::plan(gpu::GPUFuncOp function) {
  ProductsInFlight plan;
  function.walk([&](Operation *op) {
    if (auto mma = dyn_cast<MmaOp>(op); mma && isZero(mma.getAcc()))
      plan.startAtZero.insert(op);
    auto issue = dyn_cast<MmaAsyncOp>(op);
    if (!issue)
      return;
    if (isZero(issue.getAcc()))
      plan.startAtZero.insert(op);
    int64_t number = plan.numbers.size();
    plan.numbers[op] = number;
  });
  plan.products.resize(plan.numbers.size());
  function.walk([&](WaitOp op) {
    Wait &wait = plan.waits[op];
    wait.product = plan.numbers.at(getIssue(op));
    wait.pending = countYoungerMmas(op);
    for (MmaAsyncOp issue : getInFlight(op))
      wait.inFlight.push_back(plan.numbers.at(issue));
  });
  return plan;
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

namespace {

/// A block of assembly with tied accumulators: operand i is accumulator i.
class TiedAssembly {
public:
  TiedAssembly(OpBuilder &builder, Location loc, ValueRange tied)
      : builder(builder), loc(loc), operands(tied), numTied(tied.size()),
        stream(text) {}

  /// Adds an input and returns its name in the text.
  std::string input(Value value) {
    operands.push_back(value);
    // Inputs come after the outputs and the inputs tied to them.
    return "$" + std::to_string(numTied + operands.size() - 1);
  }
  llvm::raw_ostream &out() { return stream; }

  /// Creates the block; gives the new accumulators.
  SmallVector<Value> create();

private:
  OpBuilder &builder;
  Location loc;
  SmallVector<Value> operands;
  size_t numTied;
  std::string text;
  llvm::raw_string_ostream stream;
};

} // namespace

SmallVector<Value> TiedAssembly::create() {
  std::string constraints;
  llvm::raw_string_ostream list(constraints);
  for (size_t i = 0; i < numTied; ++i)
    list << "=f,";
  for (size_t i = 0; i < numTied; ++i)
    list << i << ",";
  for (size_t i = numTied; i < operands.size(); ++i)
    list << "r,";
  list << "~{memory}";
  SmallVector<Type> types(numTied, builder.getF32Type());
  Type type = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  auto block = LLVM::InlineAsmOp::create(
      builder, loc, type, operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  SmallVector<Value> results;
  for (size_t i = 0; i < numTied; ++i)
    results.push_back(LLVM::ExtractValueOp::create(
        builder, loc, builder.getF32Type(), block.getResult(0), i));
  return results;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static layout::OperandTile operandTile(SlotType slot, layout::Major major) {
  return {layoutOf(slot), major};
}

/// The low half of the tile's first descriptor, i32.
static Value descriptorLow(Integers &ints, const layout::OperandTile &operand,
                           Value address) {
  constexpr int64_t addressBits = 0x3FFFF, unit = 16;
  Value start = ints.div(ints.bitAnd(address, addressBits), unit);
  return ints.add(start, operand.low());
}

namespace {

/// What `warp.mma` and `warp.mma_async` say.
struct WgmmaProduct {
  Operation *op;
  Type aType;
  SlotType b;
  FragType acc;
  bool transposeA, transposeB, startsAtZero;

  template <typename Op>
  static WgmmaProduct get(Op op, const ProductsInFlight &products) {
    return {op,
            op.getA().getType(),
            cast<SlotType>(op.getB().getType()),
            cast<FragType>(op.getAcc().getType()),
            op.getTransposeA(),
            op.getTransposeB(),
            products.startAtZero.contains(op)};
  }

  LogicalResult check() const;
  /// `ending` is what stands after the chain.
  SmallVector<Value> emit(OpBuilder &builder, ValueRange a, Value bAddress,
                          ValueRange accumulators, StringRef ending) const;

  layout::OperandTile left(SlotType slot) const {
    return operandTile(slot, transposeA ? layout::Major::MN : layout::Major::K);
  }
  layout::OperandTile right() const {
    return operandTile(b, transposeB ? layout::Major::K : layout::Major::MN);
  }
};

} // namespace

LogicalResult WgmmaProduct::check() const {
  Type element = b.getElementType();
  if (!element.isF16() && !element.isBF16())
    return op->emitOpError("expected operands of f16 or bf16, got ") << element;
  if (!acc.getElementType().isF32())
    return op->emitOpError("expected an f32 accumulator, got ")
           << acc.getElementType();
  if (acc.getWarps() % layout::warpsPerGroup != 0)
    return op->emitOpError("expected whole warpgroups of 4 warps, got ")
           << acc.getWarps() << " warps";
  if (acc.getShape()[1] > layout::maxWgmmaColumns)
    return op->emitOpError("expected at most ")
           << layout::maxWgmmaColumns << " columns, got " << acc.getShape()[1];
  if (std::string wrong = right().check(); !wrong.empty())
    return op->emitOpError("cannot read its right operand: ") << wrong;
  if (auto slot = dyn_cast<SlotType>(aType))
    if (std::string wrong = left(slot).check(); !wrong.empty())
      return op->emitOpError("cannot read its left operand: ") << wrong;
  return success();
}

SmallVector<Value> WgmmaProduct::emit(OpBuilder &builder, ValueRange a,
                                      Value bAddress, ValueRange accumulators,
                                      StringRef ending) const {
  Location loc = op->getLoc();
  Integers ints(builder, loc);
  SmallVector<Value> tied = llvm::to_vector(accumulators);
  if (startsAtZero) {
    Value undefined = LLVM::UndefOp::create(builder, loc, builder.getF32Type());
    tied.assign(tied.size(), undefined);
  }
  TiedAssembly assembly(builder, loc, tied);
  layout::OperandTile right = this->right();
  std::string low = assembly.input(descriptorLow(ints, right, bAddress));

  auto slot = dyn_cast<SlotType>(aType);
  layout::OperandTile left;
  std::string leftLow;
  SmallVector<std::string> registers;
  if (slot) {
    left = this->left(slot);
    Value address =
        ints.add(a.front(), ints.mul(ints.warpgroup(),
                                     left.rowOffset(layout::groupOfWarpsRows)));
    leftLow = assembly.input(descriptorLow(ints, left, address));
  } else {
    for (Value value : a)
      registers.push_back(assembly.input(
          LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), value)));
  }

  llvm::raw_ostream &out = assembly.out();
  StringRef type = b.getElementType().isBF16() ? "bf16" : "f16";
  int64_t columns = acc.getShape()[1], steps = right.numSteps();
  int64_t perStep = columns / 2;
  out << "{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; ";
  for (int64_t t = 0, e = layoutOf(acc).rowSteps(); t < e; ++t)
    for (int64_t step = 0; step < steps; ++step) {
      constexpr int64_t unit = 16;
      if (slot)
        out << "add.s32 low, " << leftLow << ", "
            << (left.rowOffset(t * acc.getWarps() * layout::groupRows) +
                left.stepOffset(step)) /
                   unit
            << "; mov.b64 left, {low, " << left.high() << "}; ";
      out << "add.s32 low, " << low << ", " << right.stepOffset(step) / unit
          << "; mov.b64 right, {low, " << right.high()
          << "}; wgmma.mma_async.sync.aligned.m64n" << columns << "k16.f32."
          << type << "." << type << " {";
      for (int64_t i = 0; i < perStep; ++i)
        out << (i ? ", $" : "$") << t * perStep + i;
      out << "}, ";
      if (slot) {
        out << "left";
      } else {
        auto four = ArrayRef(registers).slice((t * steps + step) * 4, 4);
        out << "{" << llvm::join(four, ", ") << "}";
      }
      out << ", right, " << (startsAtZero && step == 0 ? 0 : 1) << ", 1, 1, "
          << (slot ? (transposeA ? "1, " : "0, ") : "") << (transposeB ? 0 : 1)
          << "; ";
    }
  out << "wgmma.commit_group.sync.aligned; " << ending << "}";
  return assembly.create();
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// The product and a wait for it, in one block. Slots without panels are left
/// to mma.sync.
struct LowerMmaOfPanels final : OpConversionPattern<MmaOp> {
  LowerMmaOfPanels(const TypeConverter &converter, MLIRContext *context,
                   ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context, /*benefit=*/2),
        inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getB().getType().hasPanels())
      return failure();
    WgmmaProduct product = WgmmaProduct::get(op, inFlight);
    if (failed(product.check()))
      return failure();
    rewriter.replaceOpWithMultiple(
        op,
        {product.emit(rewriter, adaptor.getA(), adaptor.getB().front(),
                      adaptor.getAcc(), "wgmma.wait_group.sync.aligned 0; ")});
    return success();
  }

private:
  ProductsInFlight &inFlight;
};

/// Only the issue.
struct LowerMmaAsync final : OpConversionPattern<MmaAsyncOp> {
  LowerMmaAsync(const TypeConverter &converter, MLIRContext *context,
                ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context), inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(MmaAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    WgmmaProduct product = WgmmaProduct::get(op, inFlight);
    if (failed(product.check()))
      return failure();
    SmallVector<Value> result = product.emit(
        rewriter, adaptor.getA(), adaptor.getB().front(), adaptor.getAcc(), "");
    ProductsInFlight::Product &state =
        inFlight.products[inFlight.numbers.at(op)];
    state.accumulators = result;
    if (isa<FragType>(op.getA().getType()))
      state.left = llvm::to_vector(adaptor.getA());
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

private:
  ProductsInFlight &inFlight;
};

/// Registers of everything in flight go through the wait.
struct LowerWait final : OpConversionPattern<WaitOp> {
  LowerWait(const TypeConverter &converter, MLIRContext *context,
            ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context), inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(WaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const ProductsInFlight::Wait &wait = inFlight.waits.at(op);
    SmallVector<Value> tied;
    for (int64_t number : wait.inFlight)
      llvm::append_range(tied, inFlight.products[number].accumulators);
    TiedAssembly assembly(rewriter, op.getLoc(), tied);
    for (Value value : inFlight.products[wait.product].left)
      assembly.input(LLVM::BitcastOp::create(rewriter, op.getLoc(),
                                             rewriter.getI32Type(), value));
    assembly.out() << "wgmma.wait_group.sync.aligned " << wait.pending << ";";
    SmallVector<Value> results = assembly.create();
    auto next = results.begin();
    for (int64_t number : wait.inFlight)
      for (Value &value : inFlight.products[number].accumulators)
        value = *next++;
    rewriter.replaceOpWithMultiple(
        op, {inFlight.products[wait.product].accumulators});
    return success();
  }

private:
  ProductsInFlight &inFlight;
};

} // namespace

void attn::warp::populateWgmmaPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       ProductsInFlight &inFlight) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerMmaOfPanels, LowerMmaAsync, LowerWait>(converter, context,
                                                           inFlight);
}
