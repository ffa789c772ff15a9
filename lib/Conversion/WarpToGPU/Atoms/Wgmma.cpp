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
// the chain works on the same registers and nothing comes in between (C7510 to
// C7519, see IR/Atoms.h). A wait is a block of its own
// with all registers in flight as tied outputs, so that no use moves above it,
// and with the A registers of its product as inputs, so that nothing is put
// there before.
//
// Fragments over W warps, W a multiple of 4, are what the instruction wants:
// row step t of warpgroup g are rows 16 W t + 64 g … + 63. Where the rows are
// fewer, groups that have the same rows have other columns, which are rows of
// operand b in N.
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"

#include "../Fragments.h"
#include "../Integers.h"

#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

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
  // Written before all is read: no other operand shares their registers, not
  // even where both are zero.
  for (size_t i = 0; i < numTied; ++i)
    list << "=&f,";
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

/// `ending` is what stands after the chain.
static SmallVector<Value> emitChain(OpBuilder &builder, Product product,
                                    StringRef ending) {
  ProductOp op = product.op;
  Location loc = op.getLoc();
  FragType acc = product.accType();
  Integers ints(builder, loc);
  SmallVector<Value> tied = llvm::to_vector(product.acc);
  if (product.startsAtZero) {
    Value undefined = LLVM::UndefOp::create(builder, loc, builder.getF32Type());
    tied.assign(tied.size(), undefined);
  }
  TiedAssembly assembly(builder, loc, tied);
  layout::OperandTile left,
      right = operandTile(product.rightType(), op.getTransposeB()
                                                   ? layout::Major::K
                                                   : layout::Major::MN);
  layout::Fragment layout = layoutOf(acc);
  int64_t columns = 8 * layout.columnSteps();
  Value group = ints.warpgroup(), rightAddress = product.b;
  if (layout.columnGroups() > 1) {
    int64_t rowGroups = layout.rowWarps() / layout::warpsPerGroup;
    rightAddress = ints.add(rightAddress, ints.mul(ints.div(group, rowGroups),
                                                   right.rowOffset(columns)));
    group = ints.rem(group, rowGroups);
  }
  std::string low = assembly.input(descriptorLow(ints, right, rightAddress));

  SlotType slot = product.leftSlot();
  std::string leftLow;
  SmallVector<std::string> registers;
  if (slot) {
    left = operandTile(slot, op.getTransposeA() ? layout::Major::MN
                                                : layout::Major::K);
    Value address =
        ints.add(product.a.front(),
                 ints.mul(group, left.rowOffset(layout::groupOfWarpsRows)));
    leftLow = assembly.input(descriptorLow(ints, left, address));
  } else {
    for (Value value : product.a)
      registers.push_back(assembly.input(
          LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), value)));
  }

  llvm::raw_ostream &out = assembly.out();
  StringRef type =
      product.rightType().getElementType().isBF16() ? "bf16" : "f16";
  int64_t steps = right.numSteps();
  int64_t perStep = columns / 2;
  out << "{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; ";
  for (int64_t t = 0, e = layout.rowSteps(); t < e; ++t)
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
      out << ", right, " << (product.startsAtZero && step == 0 ? 0 : 1)
          << ", 1, 1, " << (slot ? (op.getTransposeA() ? "1, " : "0, ") : "")
          << (op.getTransposeB() ? 0 : 1) << "; ";
    }
  out << "wgmma.commit_group.sync.aligned; " << ending << "}";
  return assembly.create();
}

SmallVector<Value> attn::warp::emitWgmma(OpBuilder &builder, Product product) {
  return emitChain(builder, product, "wgmma.wait_group.sync.aligned 0; ");
}

SmallVector<Value> attn::warp::issueWgmma(OpBuilder &builder, Product product) {
  return emitChain(builder, product, "");
}

SmallVector<Value> attn::warp::waitForWgmma(OpBuilder &builder, Location loc,
                                            int64_t pending, ValueRange tied,
                                            ValueRange left) {
  TiedAssembly assembly(builder, loc, tied);
  for (Value value : left)
    assembly.input(
        LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), value));
  assembly.out() << "wgmma.wait_group.sync.aligned " << pending << ";";
  return assembly.create();
}
