//===- Atoms.cpp - what instructions accept ---------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Atoms.h"

#include "attn/Support/TargetInfo.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

const ProductTraits &attn::warp::getTraits(ProductAtom atom) {
  switch (atom) {
  case ProductAtom::MmaSync:
    return layout::mmaSync;
  case ProductAtom::MmaTF32:
    return layout::mmaTF32;
  case ProductAtom::FmaF32:
    return layout::fmaF32;
  case ProductAtom::Wgmma:
    return layout::wgmma;
  }
  llvm_unreachable("no such atom");
}

ProductAtom attn::warp::chooseProductAtom(const TargetInfo &target,
                                          Type element, bool ieee) {
  if (element.isF32())
    return ieee ? ProductAtom::FmaF32 : ProductAtom::MmaTF32;
  return target.hasWarpgroups ? ProductAtom::Wgmma : ProductAtom::MmaSync;
}

/// How the descriptors of wgmma see an operand.
static LogicalResult verifyDescriptor(ProductOp op, StringRef operand,
                                      SlotType slot, layout::Major major) {
  std::string wrong = layout::OperandTile{slot.getLayout(), major}.check();
  if (wrong.empty())
    return success();
  return op.emitOpError("of ")
         << stringifyProductAtom(op.getAtom()) << " cannot read operand "
         << operand << ": " << wrong;
}

/// Groups of warps that have different columns of the accumulator read parts of
/// operand b.
static std::string findPartsObstacle(ProductOp op,
                                     const ProductTraits &traits) {
  layout::Fragment acc = op.getAcc().getType().getLayout();
  if (acc.columnGroups() == 1)
    return "";
  if (!traits.sharesColumns || acc.rowWarps() % traits.warpsAtOnce != 0)
    return "its rows do not spread over the warps";
  if (!traits.readsPanels)
    return layout::checkColumnParts(acc, traits);
  auto major = op.getTransposeB() ? layout::Major::K : layout::Major::MN;
  return layout::OperandTile{op.getB().getType().getLayout(), major}.checkParts(
      acc.columnGroups());
}

LogicalResult attn::warp::verifyAtom(ProductOp op) {
  SlotType b = op.getB().getType();
  FragType acc = op.getAcc().getType();
  const ProductTraits &traits = getTraits(op.getAtom());
  auto refuse = [&] {
    return op.emitOpError("of ") << stringifyProductAtom(op.getAtom());
  };
  // (C1)
  if (b.getElementType().getIntOrFloatBitWidth() != traits.elementBits)
    return refuse() << " has operands of " << b.getElementType()
                    << ", expected "
                    << (traits.elementBits == 32 ? "f32" : "f16 or bf16");
  // (C2)
  auto a = dyn_cast<SlotType>(op.getA().getType());
  for (SlotType slot : {a ? a : b, b})
    if (slot.hasPanels() != traits.readsPanels)
      return refuse() << " reads " << slot << ", expected "
                      << (traits.readsPanels ? "panels" : "no panels");
  // (C3)
  if (acc.getWarps() % traits.warpsAtOnce != 0)
    return refuse() << " is over " << acc.getWarps()
                    << " warps, expected groups of " << traits.warpsAtOnce;
  // (C4)
  if (int64_t k = b.getShape()[op.getTransposeB() ? 1 : 0]; k % traits.depth)
    return refuse() << " sums " << k << " products, expected a multiple of "
                    << traits.depth;
  if (traits.maxColumns != 0 && acc.getShape()[1] > traits.maxColumns)
    return refuse() << " has " << acc.getShape()[1]
                    << " columns, expected at most " << traits.maxColumns;
  // (C7)
  if (std::string wrong = findPartsObstacle(op, traits); !wrong.empty())
    return refuse() << " has an accumulator of " << acc << ": " << wrong;
  // (C5)
  if (op.getTransposeA() && !traits.transposesA)
    return refuse() << " transposes operand a, expected a slot of MxK";
  // (C6)
  if (!traits.readsPanels)
    return success();
  if (failed(verifyDescriptor(op, "b", b,
                              op.getTransposeB() ? layout::Major::K
                                                 : layout::Major::MN)))
    return failure();
  return a ? verifyDescriptor(op, "a", a,
                              op.getTransposeA() ? layout::Major::MN
                                                 : layout::Major::K)
           : success();
}

std::string attn::warp::findTMAObstacle(MemRefType view, SlotType slot,
                                        int64_t rows) {
  // Dimensions of a tensor map, and what its boxes have of each.
  constexpr int64_t maxRank = 4, maxBox = 256;
  bool isRow = rows == 1;
  if (!isRow && !slot.hasPanels())
    return "a slot has no panels";
  if (view.getRank() > maxRank)
    return "a view has more dimensions than a tensor map";
  if (isRow && slot.getShape()[1] > maxBox)
    return "a row has more columns than one copy of a tensor map";
  if (rows > maxBox)
    return "a tile has more rows than one copy of a tensor map";
  return "";
}
