//===- Tma.cpp - copies of boxes by the tensor memory accelerator -*- C++
//-*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor map has four dimensions, the innermost first: column, row, head,
// batch. One copy fills one panel, the last one also beyond the tensor's
// columns, with zeros; what lies outside counts as bytes that arrive.
//
//===----------------------------------------------------------------------===//

#include "../Lowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

LogicalResult attn::warp::emitTensorCopy(OpBuilder &builder, Location loc,
                                         Value tensorMap, ValueRange indices,
                                         SlotType slot, Value base,
                                         Value barrier) {
  constexpr size_t rank = 4;
  if (indices.size() > rank)
    return emitError(loc) << "expected a memref of at most " << rank
                          << " dimensions, got " << indices.size();
  Integers ints(builder, loc);
  layout::SharedTile tile = layoutOf(slot);
  SmallVector<Value> coordinates;
  for (Value index : llvm::reverse(indices))
    coordinates.push_back(ints.fromIndex(index));
  while (coordinates.size() < rank)
    coordinates.push_back(ints.constant(0));
  Value column = coordinates.front();
  for (int64_t panel = 0; panel < tile.numPanels(); ++panel) {
    coordinates.front() = ints.add(column, panel * tile.panelColumns());
    SmallVector<Value> operands = {
        ints.add(base, panel * tile.rows * tile.panelBytes), tensorMap,
        barrier};
    llvm::append_range(operands, coordinates);
    LLVM::InlineAsmOp::create(
        builder, loc, TypeRange(), operands,
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile."
        "mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2];",
        "r,l,r,r,r,r,r,~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(builder.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  }
  return success();
}
